/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers the three questions of a reader who has never seen the project: how many clients, what breaks first, what to
 * buy. Each answer says what it is based on, or why it is not known. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/host/res.h"
#include "loadgen/report/sections/found.h"

#define BUSY 0.9
#define BETWEEN_MAX 6	/* most numbers of clients between the capacity's two ends that are named */

/* "workload echo, 64 bytes a message, over software RDMA on an emulated CPU" */
static const char *setting(struct page *p)
{
	const json_t *env = json_at(p->run, "environment.clients");
	bool software = json_is_true(json_at(env, "rdma_device.is_software"));
	bool emulated = json_is_true(json_at(env, "is_emulated_cpu"));
	const char *size = found_only_connects(p) || !p->points->n_sizes ?
			   "" : page_text(p, ", %s a message", page_bytes(p, p->points->sizes[0]));

	return page_text(p, "workload %s%s%s%s%s", page_text_at(p->run, "config.workload", "unknown"), size,
			 found_socket(p) ? page_text(p, ", over %s", found_socket(p)) :
			 software ? ", over software RDMA" : emulated ? ", over RDMA" : "",
			 emulated ? " on an emulated CPU" : "",
			 software || emulated ? ": not hardware figures" : "");
}

static void __attribute__((format(printf, 5, 6)))
how_many(struct page *p, enum doc_tone tone, const char *id, const char *answer, const char *fmt, ...)
{
	const char *why;
	va_list ap;

	va_start(ap, fmt);
	why = page_vtext(p, fmt, ap);
	va_end(ap);
	doc_answer(p->doc, tone, id, "How many clients?", answer,
		   page_text(p, "%s Measured with %s.", why, setting(p)));
}

static const char *objective(struct page *p)
{
	const char *slo = json_text_at(p->run, "config.slo");

	return slo ? page_text(p, "the objective %s", slo) : "the objective";
}

/* " In between, tries disagree (165 met it in 2 of 5)." */
static const char *between_words(struct page *p, const struct found *c)
{
	const char *list = "";
	const json_t *row;
	size_t i;

	if (!c->scatters)
		return "";
	json_array_foreach(c->between, i, row) {
		if (i == BETWEEN_MAX) {
			list = page_text(p, "%s, ...", list);
			break;
		}
		list = page_text(p, "%s%s%s met it in %s of %s", list, i ? ", " : "",
				 page_count(p, json_number_at(row, "clients")),
				 page_count(p, json_number_at(row, "met")),
				 page_count(p, json_number_at(row, "tries")));
	}
	return page_text(p, " %s, tries disagree (%s).", isfinite(c->high) ? "In between" : "Of larger numbers", list);
}

/* Names the server's own limit: if the server was full, the result does not show what the machine can do. */
static const char *cap_words(struct page *p, const struct found *c)
{
	double limit = json_number_at(p->run, "server_config.max_clients");

	if (!c->capped)
		return "";
	return page_text(p, " %s (--max-clients): raise it to learn what the machine can do.", isfinite(limit) ?
			 page_text(p, "%s is the server's own limit", page_count(p, limit)) : "The server was full");
}

static const char *doubt_words(struct page *p, const struct found *c)
{
	if (c->confirmed)
		return "";
	return c->unsteady > 0 ? page_text(p, " That is not confirmed: %s of these tries were not steady, or were "
					   "disturbed.", page_count(p, c->unsteady)) :
	       " That is not confirmed, so read it as a range.";
}

static bool answer_by_objective(struct page *p)
{
	struct found c;
	const char *met, *missed;

	if (!found_read(p, "slo_capacity", &c) || !isfinite(c.clients))
		return false;
	met = page_text(p, "With %s %s was met%s", page_clients(p, c.clients), objective(p), c.tries > 0 ?
			page_text(p, " in %s of %s tries", page_count(p, c.passes), page_count(p, c.tries)) : "");
	missed = c.upper_tries > 0 ? page_text(p, "missed in %s of %s", page_count(p, c.missed),
					       page_count(p, c.upper_tries)) : "not";
	if (!isfinite(c.high) && c.scatters)
		how_many(p, DOC_WARN, "clients-met-scatters", page_text(p, "At least %s", page_count(p, c.clients)),
			 "%s, and no larger number missed it in all of its tries.%s", met, between_words(p, &c));
	else if (!isfinite(c.high))
		how_many(p, DOC_GOOD, "clients-met-to-the-end", page_text(p, "At least %s", page_count(p, c.clients)),
			 "%s, and no larger number was tried; a larger --clients tries more.", met);
	else if (c.at_least && *found_hosts_at_limit(p, c.clients))
		how_many(p, DOC_WARN, "clients-met-add-hosts", "Add hosts",
			 "%s; with %s the load hosts were at their own limit (%s), so the server's is not known.", met,
			 page_count(p, c.high), found_hosts_at_limit(p, c.clients));
	else if (c.at_least)
		how_many(p, DOC_WARN, "clients-met-then-unknown", page_text(p, "At least %s", page_count(p, c.clients)),
			 "%s; with %s the load generator was at its own limit, CPU time was taken away (stolen, "
			 "throttled), or there were too few samples to tell.", met, page_count(p, c.high));
	else
		how_many(p, c.confirmed ? DOC_GOOD : DOC_WARN, c.confirmed ? "clients-met" : "clients-met-unconfirmed",
			 page_text(p, "%s to %s", page_count(p, c.clients), page_count(p, c.high)),
			 "%s, with %s it was %s.%s%s%s", met, page_count(p, c.high), missed, between_words(p, &c),
			 cap_words(p, &c), doubt_words(p, &c));
	return true;
}

/* True if a step with that many clients really failed, and was not merely undecided. */
static bool has_failed_objective(const struct points *points, double clients)
{
	for (size_t i = 0; i < points->n; i++)
		if (points->v[i].clients == clients && found_missed_term(&points->v[i]))
			return true;
	return false;
}

/* Answers if an objective was given and no step met it. */
static bool answer_objective_missed(struct page *p)
{
	double held = found_most_held(p->points);
	struct found c;

	if (!json_text_at(p->run, "config.slo") || !found_read(p, "slo_capacity", &c) || !isfinite(c.high))
		return false;
	if (has_failed_objective(p->points, c.high))
		how_many(p, DOC_BAD, "clients-missed",
			 c.high > 1 ? page_text(p, "Fewer than %s", page_count(p, c.high)) : "None",
			 "Not even %s met %s.", page_clients(p, c.high), objective(p));
	else
		how_many(p, DOC_WARN, "clients-undecided", "Not known", "Whether %s is met is not known: with %s there "
			 "were too few samples, the load generator was at its own limit, or CPU time was taken away "
			 "(stolen, throttled). A longer --duration helps, or a separate machine for the load "
			 "generator. %s held without a failure.", objective(p),
			 page_clients(p, c.high),
			 isfinite(held) ? page_text(p, "%s were", page_clients(p, held)) : "None was");
	return true;
}

/* The number of clients beyond which they get slower, for runs without an objective. */
static const char *knee_words(struct page *p)
{
	struct found c;

	found_knee(p, &c);
	if (!isfinite(c.clients) || c.at_least)
		return "";
	return page_text(p, " The knee is at about %s clients: %s", page_count(p, c.clients),
			 page_sentence(p, c.reason ? c.reason : "more clients add little throughput"));
}

static void answer_by_clients_held(struct page *p)
{
	double held = found_most_held(p->points);
	const struct point *bad = found_first_not_held(p->points);

	if (isfinite(held) && !bad && *found_hosts_at_limit(p, held))
		how_many(p, DOC_WARN, "clients-held-add-hosts", "Add hosts",
			 "%s were held at once and nothing failed, but load "
			 "hosts were at their own limit (%s), so the server's is not known.", page_clients(p, held),
			 found_hosts_at_limit(p, held));
	else if (isfinite(held) && !bad)
		how_many(p, DOC_PLAIN, "clients-all-held", page_text(p, "At least %s", page_count(p, held)),
			 "%s were held at once and nothing failed. The run tried no more; --find-capacity does.%s %s",
			 page_clients(p, held), knee_words(p), json_text_at(p->run, "config.slo") ?
			 "Each message size has its own objective: the criteria below say which were met." :
			 "No objective says how slow is too slow; --slo sets one.");
	else if (isfinite(held))
		how_many(p, DOC_WARN, "clients-between",
			 page_text(p, "%s to %s", page_count(p, held), page_count(p, bad->clients)), "All of %s were "
			 "held, of %s some were lost. --find-capacity searches between them.", page_clients(p, held),
			 page_count(p, bad->clients));
	else if (bad)
		how_many(p, DOC_BAD, "clients-fewer", page_text(p, "Fewer than %s", page_count(p, bad->clients)),
			 "Some of %s were lost, and that was the smallest step. Smaller ones (--steps) show how many "
			 "can be held.", page_clients(p, bad->clients));
	else
		doc_answer(p->doc, DOC_WARN, "clients-unknown", "How many clients?", "Not known",
			   "The run had no step.");
}

static void __attribute__((format(printf, 5, 6)))
breaks(struct page *p, enum doc_tone tone, const char *id, const char *answer, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	doc_answer(p->doc, tone, id, "What breaks first?", answer, page_vtext(p, fmt, ap));
	va_end(ap);
}

static bool answer_by_failure(struct page *p)
{
	const char *resource, *text, *meaning;
	struct found c;

	if (!found_read(p, "first_hard_failure", &c) || !c.failure)
		return false;
	resource = found_resource_words(json_text_at(c.failure, "resource"));
	text = json_text_at(c.failure, "text");
	meaning = json_text_at(c.failure, "meaning");
	/* "the server's --max-clients" already names the side. */
	if (meaning && text && strstr(text, meaning))
		meaning = NULL;
	breaks(p, DOC_BAD, page_text(p, "breaks-%s", page_json(p, json_at(c.failure, "resource"))),
	       page_text(p, "%s, at %s", strstr(resource, "server") ? resource : found_limit_words(p, c.failure),
			 page_clients(p, found_break_at(p, &c))),
	       "%s%s%s%s", page_sentence(p, text ? text : "The run does not say more"), meaning ? " " : "",
	       page_sentence(p, meaning), c.tries > 0 ? page_text(p, " Seen in %s of %s tries.",
	       page_count(p, c.passes), page_count(p, c.tries)) : "");
	return true;
}

/* The first failure in any of the point's runs; NULL: none. */
static const json_t *first_failure(const struct point *point)
{
	const json_t *failure = NULL;

	for (size_t k = 0; k < point->n && !failure; k++)
		failure = json_array_get(json_at(point->steps[k], "failures"), 0);
	return failure;
}

static const char *least_held(struct page *p, const struct point *point)
{
	struct estimate held = point_range(point, "connected_held");

	return page_count(p, held.low < point->clients ? held.low : held.value);
}

/* The most frequent failure of the smallest step that lost clients. */
static bool answer_by_lost_clients(struct page *p)
{
	const struct point *bad = found_first_not_held(p->points);
	const json_t *failure = bad ? first_failure(bad) : NULL;
	const char *code = json_text_at(failure, "code"), *stage = json_text_at(failure, "stage");

	if (!bad)
		return false;
	breaks(p, DOC_BAD, "breaks-lost-clients",
	       page_text(p, "%s at %s", code ? code : "Clients lost", stage ? stage : page_clients(p, bad->clients)),
	       "Of %s %s were held. %s", page_clients(p, bad->clients), least_held(p, bad),
	       page_sentence(p, json_text_at(failure, "meaning")));
	return true;
}

/* Names the limit that is reached first if straight lines through the steps are extended. */
static const char *projection_words(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0);
	double at = json_number_at(first, "projected_clients");

	if (!isfinite(at))
		return "";
	return page_text(p, " The first limit to be reached would be %s, projected at about %s.",
			 found_limit_words(p, first), page_clients(p, at));
}

static const char *cpu_words(struct page *p)
{
	const char *words = found_cpu_words(p, BUSY);

	return words ? page_text(p, " %s This limits throughput.", words) : "";
}

/* The limit that comes after the objective: a failure seen in the run, or the first projected limit. */
static const char *next_words(struct page *p)
{
	const struct point *first = found_first_not_held(p->points);
	const char *code;

	if (!first)
		return page_text(p, " No client failed.%s", projection_words(p));
	code = json_text_at(first_failure(first), "code");
	return page_text(p, " The smallest step in which clients failed had %s: %s were held%s.",
			 page_count(p, first->clients), least_held(p, first), code ? page_text(p, " (%s)", code) : "");
}

/* Answers with the fewest clients that missed the objective. A smaller number of which only some runs missed it does
 * not count. */
static bool answer_by_missed_term(struct page *p)
{
	const json_t *term = NULL;
	double at = NAN;
	struct found c;

	if (!found_read(p, "slo_capacity", &c))
		c.high = NAN;
	for (size_t i = 0; i < p->points->n && !term; i++) {
		if (isfinite(c.high) && p->points->v[i].clients != c.high)
			continue;
		term = found_missed_term(&p->points->v[i]);
		at = p->points->v[i].clients;
	}
	if (!term)
		return false;
	breaks(p, DOC_WARN, "breaks-objective",
	       page_text(p, "The objective %s", page_json(p, json_at(term, "expression"))), "With %s it was %s: "
	       "clients get too slow before connections fail.%s%s", page_clients(p, at),
	       page_in_unit(p, json_number_at(term, "measured"), json_text_at(term, "unit")), cpu_words(p),
	       next_words(p));
	return true;
}

static void answer_nothing_broke(struct page *p)
{
	double held = found_most_held(p->points);
	struct found knee;

	found_knee(p, &knee);
	if (!isfinite(held))
		breaks(p, DOC_WARN, "breaks-no-step", "Not known", "The run had no step.");
	else if (isfinite(knee.clients) && !knee.at_least)
		breaks(p, DOC_PLAIN, "breaks-knee", "Speed, not connections", "Nothing failed up to %s. The knee is at "
		       "%s: %s%s%s", page_clients(p, held), page_count(p, knee.clients),
		       page_sentence(p, knee.reason ? knee.reason : "more clients gain little"), cpu_words(p),
		       projection_words(p));
	else
		breaks(p, DOC_GOOD, "breaks-nothing", page_text(p, "Nothing up to %s", page_count(p, held)),
		       "No client failed.%s%s%s",
		       knee.reason ? page_text(p, " Speed: %s", page_sentence(p, knee.reason)) : "", cpu_words(p),
		       projection_words(p));
}

/* If a setting was the first limit, advises raising it, because that costs less than another server. */
static const char *raise_words(struct page *p)
{
	static const char *const settings[] = { "max_clients", "nofile", "ports", "memlock" };
	const char *resource, *meaning;
	struct found c;

	if (found_slow_first(p) || !found_read(p, "first_hard_failure", &c) || !c.failure)
		return "";
	resource = json_text_at(c.failure, "resource");
	meaning = json_text_at(c.failure, "meaning");
	for (size_t i = 0; resource && meaning && i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(resource, settings[i]) == 0)
			return page_text(p, " What broke is a setting; raise it first: %s", page_sentence(p, meaning));
	return "";
}

static void answer_what_to_buy(struct page *p)
{
	static const char question[] = "What to buy for twice as many?";
	const json_t *row = json_array_get(json_at(p->plan_for_twice, "rows"), 0);
	double capacity = json_number_at(p->plan_for_twice, "capacity_clients"), hosts = json_number_at(row, "hosts");
	double memory = json_number_at(row, "memory_bytes");
	bool at_least = json_is_true(json_at(p->plan_for_twice, "at_least"));
	const char *here, *all;

	if (!isfinite(hosts) || !isfinite(capacity)) {
		doc_answer(p->doc, DOC_WARN, "buy-unknown", question, "Not known", json_text_at(p->run, "config.slo") ?
			   "No number of clients is known to meet the objective." : "No step held its clients.");
		return;
	}
	here = page_text(p, "This one has %s CPU%s and %s;",
			 page_count(p, res_cpus_of(json_at(p->run, "environment.server"))),
			 res_cpus_of(json_at(p->run, "environment.server")) == 1 ? "" : "s",
			 page_bytes(p, res_memory_of(json_at(p->run, "environment.server"))));
	all = page_text(p, "together they would use %s CPUs and %s, by the lines through the steps.",
			page_count(p, json_number_at(row, "cores")),
			isfinite(memory) ? page_bytes(p, memory) : "an unknown amount of memory");
	doc_answer(p->doc, DOC_PLAIN, "buy-servers", question,
		   page_text(p, "%s%s server%s like this one", at_least ? "At most " : "", page_count(p, hosts),
			     hosts == 1 ? "" : "s"),
		   page_text(p, "For %s: %s on each, which leaves %s of a server's capacity (%s%s) free. %s %s%s%s",
			     page_clients(p, json_number_at(row, "clients")),
			     page_count(p, json_number_at(row, "clients_per_host")),
			     p->headroom > 0 ? page_percent(p, p->headroom) : "nothing", at_least ? "at least " : "",
			     page_count(p, capacity), here, all,
			     at_least ? " The most that one server can hold was not found, so fewer may do." : "",
			     raise_words(p)));
}

void answers_add(struct page *p)
{
	if (!answer_by_objective(p) && !answer_objective_missed(p))
		answer_by_clients_held(p);
	if (!(found_slow_first(p) && answer_by_missed_term(p)) && !answer_by_failure(p) && !answer_by_lost_clients(p) &&
	    !answer_by_missed_term(p))
		answer_nothing_broke(p);
	answer_what_to_buy(p);
}
