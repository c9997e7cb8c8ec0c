/* SPDX-License-Identifier: BSD-2-Clause */
/* See find.h. */
#include "loadgen/output/find.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/rdma/pump.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/read.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/output/load_hosts.h"

const json_t *find_breaking(const struct outcome *oc)
{
	uint32_t clients = oc->cfg->find_rate ? 0 : capacity_result(&oc->capacity, CAPACITY_BREAK).failed;
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

static const char *slo_reason(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	const char *what = oc->cfg->find_rate ? "operations a second" : "clients";
	char hosts[READ_NAMES_MAX + 64];

	if (oc->cfg->slo.n == 0)
		return "no --slo was given";
	if (oc->cfg->sizes.n > 1)
		return "several message sizes: each has a capacity of its own";
	if (c->passed == 0 && c->failed == 0)
		return "no step was judged";
	if (c->clients == 0)
		snprintf(text, size, "%u %s did not meet the SLO, and fewer were not found to", c->failed, what);
	else if (c->failed == 0)
		snprintf(text, size, "%u %s, the most that were tried, met the SLO", c->passed, what);
	else if (c->inconclusive && *find_hosts_at_limit(oc, c->failed, hosts, sizeof(hosts)))
		snprintf(text, size, "%u %s met the SLO; with %u, %s", c->passed, what, c->failed, hosts);
	else if (c->inconclusive)
		snprintf(text, size, "%u %s met the SLO; with %u the generator had no more to give, or too few "
			 "samples were taken to tell", c->passed, what, c->failed);
	else
		snprintf(text, size, "%u %s met the SLO, and %u did not%s", c->passed, what, c->failed,
			 c->non_monotone ? "; a tenth more did again: read it as a range" : "");
	return text;
}

static const char *break_reason(const struct outcome *oc, const struct capacity_result *c, char *text, size_t size)
{
	const char *broke = json_text_at(find_breaking(oc), "text");

	if (oc->cfg->sizes.n > 1)
		return "several message sizes: each has a breaking point of its own";
	if (c->passed == 0 && c->failed == 0)
		return "no step was judged";
	if (c->failed == 0)
		snprintf(text, size, "nothing broke up to %u clients, the most that were tried", c->passed);
	else
		snprintf(text, size, "%s", broke ? broke : "not all clients were held");
	return text;
}

static json_t *boundary_json(const struct capacity_result *c, const char *reason)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:i, s:i, s:s}", "clients", clients_json(c->clients), "low",
			 clients_json(c->passed), "high", clients_json(c->failed), "at_least", c->at_least, "confirmed",
			 c->confirmed, "passes", c->seen, "tries", c->tries, "reason", reason);
}

json_t *find_rate_json(const struct outcome *oc)
{
	struct capacity_result slo = capacity_result(&oc->capacity, CAPACITY_SLO);
	char text[384];

	if (!oc->cfg->find_rate)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:i, s:i, s:s}", "per_s", clients_json(slo.clients), "low",
			 clients_json(slo.passed), "high", clients_json(slo.failed), "at_least", slo.at_least,
			 "confirmed", slo.confirmed, "passes", slo.seen, "tries", slo.tries, "reason",
			 slo_reason(oc, &slo, text, sizeof(text)));
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

	hard = boundary_json(&broke, break_reason(oc, &broke, text, sizeof(text)));
	if (json_object_set(hard, "failure", failure ? failure : json_null())) {
		json_decref(hard);
		hard = NULL;	/* out of memory: json_pack then fails too */
	}
	return json_pack("{s:o, s:o, s:o}", "slo_capacity",
			 boundary_json(&slo, slo_reason(oc, &slo, text, sizeof(text))),
			 "knee", curve_knee_json(oc->steps, threads_sleep(oc)), "first_hard_failure", hard);
}

void find_add_verdict(struct outcome *oc)
{
	struct capacity_result slo = capacity_result(&oc->capacity, CAPACITY_SLO);
	struct capacity_result broke = capacity_result(&oc->capacity, CAPACITY_BREAK);
	enum criterion_result result = oc->search_done ? CRITERION_PASS : CRITERION_INCONCLUSIVE;
	char text[384], measured[420];

	if (oc->cfg->slo.n == 0) {
		verdict_add_capacity(oc->verdict, "capacity", broke.passed,
				     break_reason(oc, &broke, text, sizeof(text)), result);
		return;
	}
	if (oc->search_done && slo.clients == 0)
		result = slo.inconclusive ? CRITERION_INCONCLUSIVE : CRITERION_FAIL;
	else if (!slo.confirmed)
		result = CRITERION_INCONCLUSIVE;
	snprintf(measured, sizeof(measured), "%s (%s%u of %u)", slo_reason(oc, &slo, text, sizeof(text)),
		 slo.confirmed ? "confirmed, " : "not confirmed, ", slo.seen, slo.tries);
	verdict_add_capacity(oc->verdict, oc->cfg->find_rate ? "rate" : "capacity",
			     oc->cfg->find_rate ? (uint32_t)oc->cfg->clients : slo.clients, measured, result);
}
