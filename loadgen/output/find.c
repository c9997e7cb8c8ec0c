/* SPDX-License-Identifier: BSD-2-Clause */
/* See find.h. */
#include "loadgen/output/find.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/rdma/pump.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/read.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/output/load_hosts.h"

#define NAMED_MAX 6	/* most numbers within the interval that the text names */

const json_t *find_breaking(const struct outcome *oc)
{
	uint32_t clients = oc->cfg->find_rate ? 0 : capacity_result(&oc->capacity, CAPACITY_BREAK).upper.clients;
	json_t *step;
	size_t i;

	json_array_foreach(oc->steps, i, step) {
		const json_t *failure = json_object_get(step, "hard_failure");

		if (clients && json_is_object(failure) && json_number_at(step, "target_clients") == clients)
			return failure;
	}
	return NULL;
}

static json_t *clients_json(uint32_t n)
{
	return n ? json_integer(n) : json_null();
}

const char *find_hosts_at_limit(const struct outcome *oc, double number, char *text, size_t size)
{
	json_t *hosts = oc->hosts ? load_hosts_json(oc->hosts) : NULL, *step;
	char names[READ_NAMES_MAX];
	size_t i;

	text[0] = '\0';
	json_array_foreach(oc->steps, i, step) {
		if (json_number_at(step, oc->cfg->find_rate ? "offered_per_s" : "target_clients") != number ||
		    !*read_saturated_hosts(hosts, step, names))
			continue;
		snprintf(text, size, "%s had no more to give: add hosts", names);
	}
	json_decref(hosts);
	return text;
}

/* True if the server refused clients of a step with this number because it was full. */
static bool is_capped(const struct outcome *oc, uint32_t clients)
{
	char full[96];
	json_t *step, *f;
	size_t i, k;

	fail_code_text(&(struct fail){ .kind = FAIL_REFUSED, .code = REFUSE_FULL }, full, sizeof(full));
	json_array_foreach(oc->steps, i, step)
		json_array_foreach(json_object_get(step, "failures"), k, f) {
			const char *code = json_text_at(f, "code");

			if (!oc->cfg->find_rate && json_number_at(step, "target_clients") == clients && code &&
			    strcmp(code, full) == 0)
				return true;
		}
	return false;
}

static bool is_between(const struct capacity_row *row, const struct capacity_result *c)
{
	return row->clients > c->lower.clients && (!c->upper.clients || row->clients < c->upper.clients);
}

static void __attribute__((format(printf, 3, 4))) append_text(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + used, size - used, fmt, ap);
	va_end(ap);
}

/* "; in between, tries disagree (165 met it in 2 of 5, 170 met it in 1 of 2)" */
static void append_between(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	const char *before = c->upper.clients ? "; in between, tries disagree (" :
			     "; of larger numbers, tries disagree (";
	uint32_t named = 0;

	for (uint32_t i = 0; i < oc->capacity.n; i++) {
		const struct capacity_row *row = &oc->capacity.rows[i];

		if (!is_between(row, c))
			continue;
		if (named++ == NAMED_MAX) {
			append_text(text, size, ", ...");
			break;
		}
		append_text(text, size, "%s%u met it in %u of %u", before, row->clients,
			    row->count[CAPACITY_SLO][SLO_PASS], capacity_tries(row));
		before = ", ";
	}
	append_text(text, size, ")");
}

static json_t *between_json(const struct outcome *oc, const struct capacity_result *c, const char *unit)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < oc->capacity.n; i++) {
		const struct capacity_row *row = &oc->capacity.rows[i];

		if (is_between(row, c))
			json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:i}", unit, row->clients, "met",
				row->count[CAPACITY_SLO][SLO_PASS], "tries", capacity_tries(row), "unsteady",
				row->unsteady));
	}
	return list;
}

/* Writes both ends of the interval, with the tries of each. */
static void say_ends(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	const char *what = oc->cfg->find_rate ? "operations a second" : "clients";
	char low[96], hosts[READ_NAMES_MAX + 64];
	const struct capacity_end *l = &c->lower, *u = &c->upper;

	snprintf(low, sizeof(low), "%u %s met the SLO in %u of %u tries", l->clients, what, l->agree, l->tries);
	if (!l->clients)
		snprintf(text, size, "%u %s missed the SLO in %u of %u tries, and no smaller number was found to meet "
			 "it", u->clients, what, u->agree, u->tries);
	else if (c->inconclusive && *find_hosts_at_limit(oc, u->clients, hosts, sizeof(hosts)))
		snprintf(text, size, "at least %u: %s; with %u, %s", l->clients, low, u->clients, hosts);
	else if (c->inconclusive)
		snprintf(text, size, "at least %u: %s; with %u the generator had no more to give or CPU time was taken "
			 "away, or too few samples were taken to tell", l->clients, low, u->clients);
	else if (u->clients)
		snprintf(text, size, "%u to %u: %s, %u missed it in %u of %u", l->clients, u->clients, low, u->clients,
			 u->agree, u->tries);
	else
		snprintf(text, size, "at least %u: %s, and %s", l->clients, low, c->scatters ?
			 "no larger number missed it in all of its tries" : "more were not tried");
}

/* Names the server's own limit as the reason: with such a limit the result does not show what the machine can do. */
static void append_cap(const struct outcome *oc, char *text, size_t size)
{
	double limit = loadgen_n_targets(oc->cfg) > 1 ? NAN : json_number_at(oc->server_infos[0], "config.max_clients");

	if (isfinite(limit))
		append_text(text, size, "; %.0f is the server's own limit (--max-clients)", limit);
	else
		append_text(text, size, "; the server was full (--max-clients)");
	append_text(text, size, ": raise it to learn what the machine can do");
}

/* The reason why the result is not confirmed, to append to its text; "" if it is confirmed or needs no reason. */
static const char *doubt_text(const struct capacity_result *c)
{
	if (c->confirmed || c->inconclusive || (!c->lower.clients && c->upper.tries >= CAPACITY_TRIES))
		return "";
	if (c->exhausted)
		return "; not confirmed: the search ended at its maximum number of probes";
	if (c->lower.unsteady + c->upper.unsteady)
		return "; not confirmed: too many of these tries were not steady, or were disturbed";
	return c->scatters ? "; not confirmed: tries disagree up to the most that were tried" :
	       "; not confirmed: too few tries";
}

static const char *slo_reason(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	if (oc->cfg->slo.n == 0)
		return "no --slo was given";
	if (oc->cfg->sizes.n > 1)
		return "several message sizes: each has a capacity of its own";
	if (!c->lower.clients && !c->upper.clients)
		return c->scatters ? "no number met the SLO in all of its tries" : "no step was judged";
	say_ends(oc, c, text, size);
	if (c->scatters)
		append_between(oc, c, text, size);
	if (is_capped(oc, c->upper.clients))
		append_cap(oc, text, size);
	append_text(text, size, "%s", doubt_text(c));
	return text;
}

static const char *break_reason(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	const char *broke = json_text_at(find_breaking(oc), "text");

	if (oc->cfg->sizes.n > 1)
		return "several message sizes: each has a breaking point of its own";
	if (!c->lower.clients && !c->upper.clients)
		return c->scatters ? "each number of clients broke in some tries, and none in all" :
				     "no step was judged";
	if (!c->upper.clients && c->scatters)
		snprintf(text, size, "nothing broke up to %u clients; some larger numbers broke in some tries, and "
			 "none in all", c->lower.clients);
	else if (!c->upper.clients)
		snprintf(text, size, "nothing broke up to %u clients, the most that were tried", c->lower.clients);
	else
		snprintf(text, size, "%s", broke ? broke : "not all clients were held");
	return text;
}

/* `at`: the end of the interval, lower or upper, that counts as the boundary. */
static json_t *boundary_json(const struct capacity_result *c, const char *unit, const struct capacity_end *at,
			     const char *reason)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:i, s:i, s:s}", unit, clients_json(at->clients), "low",
			 clients_json(c->lower.clients), "high", clients_json(c->upper.clients), "at_least",
			 c->at_least, "confirmed", c->confirmed, "passes", at->agree, "tries", at->tries, "reason",
			 reason);
}

static json_t *end_json(const struct capacity_end *e, const char *unit, const char *agree)
{
	if (!e->clients)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i}", unit, e->clients, agree, e->agree, "tries", e->tries, "unsteady",
			 e->unsteady);
}

/* slo_capacity, or slo_rate. NULL when out of memory. */
static json_t *interval_json(const struct outcome *oc, const struct capacity_result *c, const char *unit)
{
	char text[640];
	json_t *o = boundary_json(c, unit, &c->lower, slo_reason(oc, c, text, sizeof(text)));
	json_t *interval = json_pack("{s:o, s:o, s:o, s:b, s:s?}", "lower", end_json(&c->lower, unit, "met"), "upper",
				     end_json(&c->upper, unit, "missed"), "between",
				     c->lower.clients || c->upper.clients ? between_json(oc, c, unit) : json_array(),
				     "scatters", c->scatters, "capped_by",
				     is_capped(oc, c->upper.clients) ? "max_clients" : NULL);

	if (json_object_update(o, interval)) {
		json_decref(o);
		o = NULL;	/* out of memory */
	}
	json_decref(interval);
	return o;
}

json_t *find_rate_json(const struct outcome *oc)
{
	struct capacity_result slo = capacity_result(&oc->capacity, CAPACITY_SLO);

	return oc->cfg->find_rate ? interval_json(oc, &slo, "per_s") : json_null();
}

/* The capacity in clients; none for a search for a rate, whose probes are operations a second. */
static struct capacity_result of_clients(const struct outcome *oc, enum capacity_boundary of)
{
	static const struct capacity_result none;

	return oc->cfg->find_rate ? none : capacity_result(&oc->capacity, of);
}

/* True if threads of both ends sleep when they have nothing to do. */
static bool threads_sleep(const struct outcome *oc)
{
	const char *of_server = json_text_at(oc->server_infos[0], "config.poll");

	return oc->cfg->poll == POLL_EVENT && of_server && strcmp(of_server, "event") == 0;
}

json_t *find_json(const struct outcome *oc)
{
	struct capacity_result slo = of_clients(oc, CAPACITY_SLO), broke = of_clients(oc, CAPACITY_BREAK);
	json_t *failure = (json_t *)find_breaking(oc), *hard;
	char text[384];

	hard = boundary_json(&broke, "clients", &broke.upper, break_reason(oc, &broke, text, sizeof(text)));
	if (json_object_set(hard, "failure", failure ? failure : json_null())) {
		json_decref(hard);
		hard = NULL;	/* out of memory: json_pack then fails too */
	}
	return json_pack("{s:o, s:o, s:o}", "slo_capacity", interval_json(oc, &slo, "clients"), "knee",
			 curve_knee_json(oc->steps, threads_sleep(oc)), "first_hard_failure", hard);
}

void find_add_verdict(struct outcome *oc)
{
	struct capacity_result slo = capacity_result(&oc->capacity, CAPACITY_SLO);
	struct capacity_result broke = capacity_result(&oc->capacity, CAPACITY_BREAK);
	enum criterion_result result = oc->search_done ? CRITERION_PASS : CRITERION_INCONCLUSIVE;
	char text[640], measured[660];

	if (oc->cfg->slo.n == 0) {
		verdict_add_capacity(oc->verdict, "capacity", broke.lower.clients,
				     break_reason(oc, &broke, text, sizeof(text)), result);
		return;
	}
	if (oc->search_done && !slo.lower.clients)
		result = slo.inconclusive ? CRITERION_INCONCLUSIVE : CRITERION_FAIL;
	else if (!slo.confirmed)
		result = CRITERION_INCONCLUSIVE;
	snprintf(measured, sizeof(measured), "%s%s", slo_reason(oc, &slo, text, sizeof(text)),
		 slo.confirmed ? " (confirmed)" : "");
	verdict_add_capacity(oc->verdict, oc->cfg->find_rate ? "rate" : "capacity",
			     oc->cfg->find_rate ? (uint32_t)oc->cfg->clients : slo.lower.clients, measured, result);
}
