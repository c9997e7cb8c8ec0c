/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict: answers, badges, the three capacities, the criteria. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/validity.h"
#include "loadgen/report/sections/found.h"

#define BUSY 0.9
#define CPUS_FULL 0.95

static void add_flag_badges(struct page *p)
{
	for (int i = 0; i < VALIDITY_FLAGS; i++) {
		const struct validity_flag *v = &validity_flags[i];
		struct found_flag f = found_flag(p->points, i);
		const char *hosts = i == VALIDITY_generator_saturated ? found_hosts_at_limit(p, 0) : "";

		if (f.steps && v->badge)
			doc_badge(p->doc, DOC_WARN, page_text(p, "badge-%s", v->name),
				  page_text(p, "%s (%zu of %zu)", v->badge, f.steps, f.of),
				  page_text(p, "In %zu of %zu steps, the smallest with %s: %s.%s", f.steps, f.of,
					    page_clients(p, f.least), v->meaning, *hosts ?
					    page_text(p, " Add hosts: %s had no more to give.", hosts) : ""));
	}
}

static void add_place_badges(struct page *p)
{
	const json_t *env = json_at(p->run, "environment.clients");
	const char *device = json_text_at(env, "rdma_device.name");
	double busy = found_cpu_share(p, false);

	if (found_socket(p))
		doc_badge(p->doc, DOC_WARN, "badge-transport", page_text(p, "over %s", found_socket(p)),
			  json_is_true(json_at(p->run, "config.transport_fell_back")) ?
			  "--transport auto found no RDMA device on the generator's machine: messages went over TCP, "
			  "not over RDMA." :
			  "Messages went over the kernel's sockets, not over RDMA. Packet sequence numbers of queue "
			  "pairs do not apply.");
	if (json_is_true(json_at(env, "rdma_device.is_software")))
		doc_badge(p->doc, DOC_WARN, "badge-software", "software RDMA",
			  page_text(p, "The device %s is software (Soft-RoCE or siw): its times and rates are not "
				    "those of an adapter.", device ? device : ""));
	if (json_is_true(json_at(env, "is_emulated_cpu")))
		doc_badge(p->doc, DOC_WARN, "badge-emulated", "emulated CPU", "Each instruction is emulated, so "
			  "everything takes many times as long as on hardware. Counts are valid, times and rates are "
			  "not.");
	else if (json_is_true(json_at(env, "is_virtual_machine")))
		doc_badge(p->doc, DOC_WARN, "badge-virtual", "virtual machine",
			  "Other guests of the host may have taken CPU time from this run.");
	if (found_share_machine(p))
		doc_badge(p->doc, DOC_WARN, "badge-one-machine", "one machine for both", "Server and load generator "
			  "shared CPUs and memory. On a machine of its own the server could do more.");
	if (busy > CPUS_FULL)
		doc_badge(p->doc, DOC_WARN, "badge-cpus-full", "CPUs full",
			  page_text(p, "With the most clients the CPUs of %s were %s busy.", found_machine_words(p),
				    page_percent(p, busy)));
}

enum outcome { OUTCOME_NOT_JUDGED, OUTCOME_PASS, OUTCOME_INCONCLUSIVE, OUTCOME_FAIL, OUTCOME_N };

static enum outcome outcome_of(const json_t *criterion)
{
	const char *result = page_text_at(criterion, "result", "");

	if (strcmp(result, "fail") == 0)
		return OUTCOME_FAIL;
	if (strcmp(result, "not_judged") == 0)
		return OUTCOME_NOT_JUDGED;
	return strcmp(result, "pass") == 0 ? OUTCOME_PASS : OUTCOME_INCONCLUSIVE;
}

static bool is_search(const struct page *p)
{
	return json_is_true(json_at(p->run, "config.find_capacity")) ||
		json_is_true(json_at(p->run, "config.find_rate"));
}

static void add_outcome_badge(struct page *p)
{
	static const struct { enum doc_tone tone; const char *id, *text, *meaning; } badges[] = {
		[OUTCOME_NOT_JUDGED] = { DOC_WARN, "badge-not-judged", "not judged", "No criterion was judged." },
		[OUTCOME_PASS] = { DOC_GOOD, "badge-pass", "all criteria met",
				   "Each criterion below that was judged was met." },
		[OUTCOME_INCONCLUSIVE] = { DOC_WARN, "badge-inconclusive", "inconclusive",
					   "Some criteria could not be judged." },
		[OUTCOME_FAIL] = { DOC_BAD, "badge-fail", "a criterion failed",
				   "The table of criteria says which, and what was measured." },
	};
	enum outcome worst = OUTCOME_NOT_JUDGED;
	bool judged = false, search = is_search(p);
	const json_t *c;
	size_t i;

	json_array_foreach(json_at(p->run, "verdict"), i, c) {
		judged |= json_text_at(c, "result") != NULL;
		if (json_text_at(c, "result") && outcome_of(c) > worst)
			worst = outcome_of(c);
	}
	if (judged)
		doc_badge(p->doc, badges[worst].tone, badges[worst].id,
			  worst == OUTCOME_PASS && search ? "found" : badges[worst].text, badges[worst].meaning);
	else
		doc_badge(p->doc, DOC_WARN, "badge-not-judged", "not judged", "No step was judged.");
}

static const char *reason_words(const char *reason)
{
	static const struct page_words reasons[] = {
		{ "max_reached", "all steps ran" }, { "error_rate", "a step held fewer than 99 % of its clients" },
		{ "step_timeout", "connecting a step took longer than --step-timeout" },
		{ "resource_exhausted", "a resource ran out" }, { "aborted", "it was interrupted" },
		{ "server_lost", "the server was lost" }, { "generator_failed", "the load generator failed" },
		{ "generator_saturated", "the load generator was at its own limit" },
		{ "memory_floor", "a machine was about to run out of memory" },
		{ "cpu_floor", "a machine had no CPU left" },
		{ "host_lost", "a load host was lost" },
	};

	return page_words(reasons, sizeof(reasons) / sizeof(reasons[0]), reason, "unknown");
}

static void say_end(struct page *p)
{
	const char *status = page_text_at(p->run, "run.status", ""), *reason = json_text_at(p->run, "run.stop_reason");
	const char *detail = json_text_at(p->run, "run.stop_detail"), *words = reason_words(reason);
	const char *for_what = json_is_true(json_at(p->run, "config.find_rate")) ? "a rate" : "the capacity";
	bool search = is_search(p);
	bool completed = strcmp(status, "completed") == 0;

	/* "the server was lost: <detail>." */
	words = detail && *detail ? page_text(p, "%s: %s", words, page_sentence(p, detail)) : page_sentence(p, words);
	if (search && completed)
		doc_text(p->doc, "end-found", "The search for %s is complete.%s%s", for_what,
			 detail && *detail ? " What broke: " : "", page_sentence(p, detail));
	else if (search && reason && strcmp(reason, "aborted") != 0)
		doc_text(p->doc, "end-search", "The search for %s ended: %s", for_what, words);
	else if (completed)
		doc_text(p->doc, "end-completed", "The run is complete: %s.", reason_words(reason));
	else
		doc_note(p->doc, DOC_WARN, "end-early", "The run %s early: %s",
			 strcmp(status, "aborted") == 0 ? "was interrupted" : "stopped", words);
}

static void say_limiting_resource(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0);
	double at = json_number_at(first, "projected_clients");
	const char *cpu = found_cpu_words(p, BUSY);
	struct found hard;

	found_read(p, "first_hard_failure", &hard);
	if (hard.failure && !found_slow_first(p))
		doc_text(p->doc, page_text(p, "limiting-%s", page_json(p, json_at(hard.failure, "resource"))),
			 "Limiting resource: %s, at %s.", found_limit_words(p, hard.failure),
			 page_clients(p, found_break_at(p, &hard)));
	else if (cpu)
		doc_text(p->doc, "limiting-cpu", "Limiting resource: CPU time. %s", cpu);
	else if (isfinite(at))
		doc_text(p->doc, "limiting-projected", "Limiting resource: none was reached. The first would be %s, at "
			 "about %s.", found_limit_words(p, first), page_clients(p, at));
	else
		doc_text(p->doc, "limiting-none", "Limiting resource: this run found none.");
}

static void add_capacity(struct page *p, struct doc_table *t, const char *name, const struct found *c,
			 const char *otherwise)
{
	page_add(t, DOC_PLAIN, "ss00sss", name, found_clients_words(p, c), c->low, c->high,
		 c->tries > 0 ? page_text(p, "%s of %s", page_count(p, c->passes), page_count(p, c->tries)) : "–",
		 !isfinite(c->clients) ? "–" : c->confirmed ? "yes" : "no",
		 c->reason && *c->reason ? c->reason : otherwise);
}

void table_capacities(struct page *p)
{
	struct doc_table *t = page_table(p, "capacities", "The three capacities, each with the most clients that were "
					 "still good and the fewest that were not. A step is still good if it held 99 "
					 "% of its clients.", "capacity;clients#;still good#clients;no "
					 "longer#clients;seen#;confirmed;why");
	struct found slo, knee, hard;
	bool known = found_read(p, "slo_capacity", &slo);
	const struct point *bad = found_first_not_held(p->points);

	found_knee(p, &knee);
	found_read(p, "first_hard_failure", &hard);
	if (!known) {
		hard.low = found_most_held(p->points);
		hard.high = hard.clients = bad ? bad->clients : NAN;
		hard.at_least = !bad;
		hard.reason = "from the steps of this run, which did not search for it";
	}
	add_capacity(p, t, "objective met (SLO)", &slo, "no objective was given (--slo)");
	add_capacity(p, t, "knee", &knee, "");
	add_capacity(p, t, "first hard failure", &hard, "");
}

#define CRITERIA_MAX 200

/* A criterion of a step, over the step's repetitions. */
struct criterion {
	const json_t *worst;
	size_t runs, passed;
};

static bool is_same_criterion(const json_t *a, const json_t *b)
{
	const char *x = json_text_at(a, "criterion"), *y = json_text_at(b, "criterion");
	double size_a = json_number_at(a, "message_bytes"), size_b = json_number_at(b, "message_bytes");

	return x && y && strcmp(x, y) == 0 && json_number_at(a, "clients") == json_number_at(b, "clients") &&
	       (size_a == size_b || (isnan(size_a) && isnan(size_b)));
}

static size_t collect_criteria(const json_t *run, struct criterion *v)
{
	const json_t *c;
	size_t i, n = 0;

	json_array_foreach(json_at(run, "verdict"), i, c) {
		size_t k = 0;

		while (k < n && !is_same_criterion(v[k].worst, c))
			k++;
		if (k == CRITERIA_MAX || !json_text_at(c, "criterion"))
			continue;
		if (k == n)
			v[n++] = (struct criterion){ .worst = c };
		v[k].runs++;
		v[k].passed += outcome_of(c) == OUTCOME_PASS;
		if (outcome_of(c) > outcome_of(v[k].worst))
			v[k].worst = c;
	}
	return n;
}

static void add_criterion(struct page *p, struct doc_table *t, const struct criterion *c)
{
	static const char *const words[] = { "not judged", "pass", "inconclusive", "fail" };
	static const enum doc_tone tones[] = { DOC_PLAIN, DOC_GOOD, DOC_WARN, DOC_BAD };
	double clients = json_number_at(c->worst, "clients");
	enum outcome outcome = outcome_of(c->worst);

	page_row(p, t, tones[outcome], clients > 0 ? clients : NAN, json_number_at(c->worst, "message_bytes"));
	page_cells(t, "sssss", json_text_at(c->worst, "criterion"), json_text_at(c->worst, "required"),
		   json_text_at(c->worst, "measured"), words[outcome],
		   outcome == OUTCOME_NOT_JUDGED ? "–" : page_text(p, "%zu of %zu", c->passed, c->runs));
}

static void table_criteria(struct page *p)
{
	struct criterion *v = page_room(p, CRITERIA_MAX, sizeof(*v));
	size_t n = v ? collect_criteria(p->run, v) : 0, of[OUTCOME_N] = { 0 };
	struct doc_table *t;

	doc_heading(p->doc, "Success criteria");
	for (size_t i = 0; i < n; i++)
		of[outcome_of(v[i].worst)]++;
	if (n == 0) {
		doc_text(p->doc, "criteria-none", "None was judged: no step was completed.");
		return;
	}
	doc_text(p->doc, "criteria-count", "%zu of %zu criteria were met, %zu failed, %zu could not be judged.",
		 of[OUTCOME_PASS], n, of[OUTCOME_FAIL], of[OUTCOME_INCONCLUSIVE]);
	if (of[OUTCOME_NOT_JUDGED])
		doc_text(p->doc, "criteria-not-judged",
			 "%zu of %zu were left out, because times on an emulated CPU or with software RDMA say "
			 "nothing about hardware (--judge all judges them).", of[OUTCOME_NOT_JUDGED], n);
	t = page_table(p, "criteria", "If a step ran several times, its worst result.", PAGE_POINT
		       ";criterion;required;measured;result;runs passed#");
	for (size_t i = 0; i < n; i++)
		add_criterion(p, t, &v[i]);
}

void section_verdict(struct page *p)
{
	doc_section(p->doc, "verdict", "Verdict");
	answers_add(p);
	add_outcome_badge(p);
	add_place_badges(p);
	add_flag_badges(p);
	say_end(p);
	if (p->points->left_out)
		doc_note(p->doc, DOC_WARN, "steps-left-out", "The report omits the last %zu steps.",
			 p->points->left_out);
	say_limiting_resource(p);
	table_capacities(p);
	table_criteria(p);
}
