/* The verdict: answers, badges, the three capacities, the criteria. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/sections/found.h"

/* --- badges --- */

struct flagged {
	size_t steps, of;
	double least;			/* clients of the smallest step that has it */
};

static struct flagged count_flag(const struct points *points, const char *name)
{
	struct flagged f = { .least = INFINITY };

	for (size_t i = 0; i < points->n; i++)
		for (size_t k = 0; k < points->v[i].n; k++) {
			f.of++;
			if (!read_has_flag(points->v[i].steps[k], name))
				continue;
			f.steps++;
			f.least = fmin(f.least, points->v[i].clients);
		}
	return f;
}

static void add_flag_badges(struct page *p)
{
	static const struct { const char *flag, *text, *meaning;
	} flags[] = {
		{ "generator_saturated", "generator near saturation",
		  "the load generator was at its own limit: read \"at least\" before the server's figures" },
		{ "not_steady", "not steady",
		  "throughput or latency still moved while it was measured: a longer --duration or --warmup gives "
		  "firmer figures" },
		{ "not_measured", "not measured", "the step did not come to its measured time" },
		{ "step_timeout", "connecting timed out", "clients were not connected within --step-timeout" },
		{ "replies_missing", "replies missing", "messages were not answered within 15 s" },
		{ "server_pools_not_restored", "server kept resources",
		  "after the step the server did not give back all it had taken" },
		{ "littles_law_violated", "Little's law violated",
		  "throughput, round trips and clients do not go together" },
		{ "server_counts_differ", "counts differ", "the server counted other clients than the generator" },
		{ "rails_dropped", "rails dropped", "clients went on without some of their connections" },
		{ "clients_come_and_go", "clients come and go", "clients were away at any time (--churn)" },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct flagged f = count_flag(p->points, flags[i].flag);

		if (f.steps)
			doc_badge(p->doc, DOC_WARN, NULL, page_text(p, "%s (%zu of %zu)", flags[i].text, f.steps, f.of),
				  page_text(p, "In %zu of %zu steps, the smallest with %s: %s.", f.steps, f.of,
					    page_clients(p, f.least), flags[i].meaning));
	}
}

static void add_place_badges(struct page *p)
{
	const json_t *env = json_at(p->run, "environment.clients");
	const char *device = json_text_at(env, "rdma_device.name");

	if (json_is_true(json_at(env, "rdma_device.is_software")))
		doc_badge(p->doc, DOC_WARN, NULL, "software RDMA",
			  page_text(p,
				    "The device %s is made in software (Soft-RoCE or siw): its times and rates are not "
				    "those of an adapter.",
				    device ? device : ""));
	if (json_is_true(json_at(env, "is_emulated_cpu")))
		doc_badge(p->doc, DOC_WARN, NULL, "emulated CPU",
			  "Instructions are emulated one by one: everything takes many times as long as on hardware. "
			  "Counts hold, times and rates do not.");
	else if (json_is_true(json_at(env, "is_virtual_machine")))
		doc_badge(p->doc, DOC_WARN, NULL, "virtual machine",
			  "Other guests of the host may have taken time from this run.");
	if (found_share_machine(p))
		doc_badge(p->doc, DOC_WARN, NULL, "one machine for both",
			  "Server and load generator shared CPUs and memory: apart, the server could do more.");
	if (found_cpu_share(p) > 0.95)
		doc_badge(p->doc, DOC_WARN, NULL, "CPUs full",
			  page_text(p, "%s of the CPUs of %s were busy at the most clients.",
				    page_percent(p, found_cpu_share(p)),
				    found_share_machine(p) ? "the machine" : "the generator's machine"));
}

/* The worst of all: "fail" over "inconclusive" over "pass"; NULL without a criterion. */
static const char *overall(const json_t *run)
{
	const char *worst = NULL;
	const json_t *c;
	size_t i;

	json_array_foreach(json_at(run, "verdict"), i, c) {
		const char *result = json_text_at(c, "result");

		if (result && strcmp(result, "fail") == 0)
			return "fail";
		if (result && (!worst || strcmp(result, "inconclusive") == 0))
			worst = strcmp(result, "inconclusive") == 0 ? "inconclusive" : "pass";
	}
	return worst;
}

static void add_outcome_badge(struct page *p)
{
	const char *worst = overall(p->run);

	if (!worst)
		doc_badge(p->doc, DOC_WARN, NULL, "not judged", "No step came to a verdict.");
	else if (strcmp(worst, "pass") == 0)
		doc_badge(p->doc, DOC_GOOD, NULL, json_is_true(json_at(p->run, "config.find_capacity")) ? "found" :
			  "all criteria met", "Each criterion below was met.");
	else if (strcmp(worst, "fail") == 0)
		doc_badge(p->doc, DOC_BAD, NULL, "a criterion failed",
			  "The table of criteria says which, and what was measured.");
	else
		doc_badge(p->doc, DOC_WARN, NULL, "inconclusive", "Not every criterion could be judged.");
}

static void say_end(struct page *p)
{
	static const struct { const char *reason, *words; } reasons[] = {
		{ "max_reached", "all steps ran" }, { "error_rate", "a step held fewer than 99 % of its clients" },
		{ "step_timeout", "connecting a step took longer than --step-timeout" },
		{ "resource_exhausted", "a resource ran out" }, { "aborted", "it was interrupted" },
		{ "server_lost", "the server was lost" }, { "generator_failed", "the load generator failed" },
		{ "generator_saturated", "the load generator was at its own limit" },
	};
	const char *status = json_text_at(p->run, "run.status"), *reason = json_text_at(p->run, "run.stop_reason");
	const char *detail = json_text_at(p->run, "run.stop_detail"), *words = reason ? reason : "unknown";

	for (size_t i = 0; reason && i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			words = reasons[i].words;
	if (json_is_true(json_at(p->run, "config.find_capacity")) && status && strcmp(status, "completed") == 0)
		doc_text(p->doc, NULL, "The search for the capacity is complete%s%s",
			 detail && *detail ? ". What broke: " : ".",
			 detail && *detail ? page_sentence(p, detail) : "");
	else if (json_is_true(json_at(p->run, "config.find_capacity")) && reason && strcmp(reason, "aborted") != 0)
		doc_text(p->doc, NULL, "The search for the capacity ended: %s%s%s", words, detail && *detail ? ": " : "",
			 page_sentence(p, detail && *detail ? detail : "."));
	else if (status && strcmp(status, "completed") == 0)
		doc_text(p->doc, NULL, "The run ended by itself: %s.", words);
	else
		doc_note(p->doc, DOC_WARN, NULL, "The run %s before its end: %s%s%s",
			 status && strcmp(status, "aborted") == 0 ? "was interrupted" : "stopped", words,
			 detail && *detail ? ": " : "", page_sentence(p, detail && *detail ? detail : "."));
}

/* --- what limits --- */

static void say_limiting_resource(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0);
	double at = json_number_at(first, "projected_clients"), cpu = found_cpu_share(p);
	struct found hard;

	found_read(p, "first_hard_failure", &hard);
	if (hard.failure && !found_slow_first(p))
		doc_text(p->doc, NULL, "Limiting resource: %s (%s), at %s.",
			 found_resource_words(json_text_at(hard.failure, "resource")),
			 found_side_words(json_text_at(hard.failure, "side")),
			 page_clients(p, isfinite(hard.clients) ? hard.clients : hard.high));
	else if (found_server_cpu_share(p) > 0.9)
		doc_text(p->doc, NULL, "Limiting resource: CPU time. The server used %s of its CPUs at the most clients.",
			 page_percent(p, found_server_cpu_share(p)));
	else if (cpu > 0.9)
		doc_text(p->doc, NULL,
			 "Limiting resource: CPU time. %s of the CPUs of %s were busy at the most clients.",
			 page_percent(p, cpu),
			 found_share_machine(p) ? "the machine" : "the load generator's machine");
	else if (isfinite(at))
		doc_text(p->doc, NULL, "Limiting resource: none was reached. The first to end would be %s (%s), at about %s.",
			 found_resource_words(json_text_at(first, "resource")),
			 found_side_words(json_text_at(first, "side")), page_clients(p, at));
	else
		doc_text(p->doc, NULL, "Limiting resource: none was found in this run.");
}

static const char *capacity_figure(struct page *p, const struct found *c)
{
	if (isfinite(c->clients))
		return page_text(p, "%s%s", c->at_least ? "at least " : "", page_count(p, c->clients));
	if (c->at_least && isfinite(c->low))
		return page_text(p, "none up to %s", page_count(p, c->low));
	return "not known";
}

static void add_capacity(struct page *p, struct doc_table *t, const char *name, const struct found *c,
			 const char *otherwise)
{
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "%s", name);
	doc_cell(t, "%s", capacity_figure(p, c));
	doc_number(t, c->low, 0);
	doc_number(t, c->high, 0);
	doc_cell(t, "%s",
		 c->tries > 0 ? page_text(p, "%s of %s", page_count(p, c->passes), page_count(p, c->tries)) : "–");
	doc_cell(t, "%s", !isfinite(c->clients) ? "–" : c->confirmed ? "yes" : "no");
	doc_cell(t, "%s", c->reason && *c->reason ? c->reason : otherwise);
}

static void table_capacities(struct page *p)
{
	struct doc_table *t = doc_table(p->doc, "capacities",
					"The three capacities, each with the most clients that were still good (to hold 99 % of them is) and the "
					"fewest that were not.");
	struct found slo, knee, hard;
	bool known = found_read(p, "slo_capacity", &slo);

	found_knee(p, &knee);
	found_read(p, "first_hard_failure", &hard);
	if (!known) {
		const struct point *bad = found_first_not_held(p->points);

		hard.low = found_most_held(p->points);
		hard.high = bad ? bad->clients : NAN;
		hard.clients = hard.high;
		hard.at_least = !bad;
		hard.reason = "from the steps of this run, which did not search for it";
	}
	doc_column(t, "capacity", NULL, false);
	doc_column(t, "clients", NULL, true);
	doc_column(t, "still good", "clients", true);
	doc_column(t, "no longer", "clients", true);
	doc_column(t, "seen", NULL, true);
	doc_column(t, "confirmed", NULL, false);
	doc_column(t, "why", NULL, false);
	add_capacity(p, t, "objective met (SLO)", &slo, "no objective was given (--slo)");
	add_capacity(p, t, "knee", &knee, "");
	add_capacity(p, t, "first hard failure", &hard, "");
}

/* --- criteria --- */

#define CRITERIA_MAX 200

/* The same criterion of the same step over its repetitions. */
struct criterion {
	const json_t *worst;
	size_t runs, passed;
};

static int badness(const json_t *c)
{
	const char *result = json_text_at(c, "result");

	return !result ? 1 : strcmp(result, "fail") == 0 ? 2 : strcmp(result, "pass") == 0 ? 0 : 1;
}

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
		v[k].passed += badness(c) == 0;
		if (badness(c) > badness(v[k].worst))
			v[k].worst = c;
	}
	return n;
}

static void add_criterion(struct page *p, struct doc_table *t, const struct criterion *c)
{
	static const char *const words[] = { "pass", "inconclusive", "fail" };
	static const enum doc_tone tones[] = { DOC_GOOD, DOC_WARN, DOC_BAD };
	const char *required = json_text_at(c->worst, "required"), *measured = json_text_at(c->worst, "measured");

	doc_row(t, tones[badness(c->worst)]);
	doc_number(t, json_number_at(c->worst, "clients") > 0 ? json_number_at(c->worst, "clients") : NAN, 0);
	if (p->points->n_sizes > 1)
		doc_number(t, json_number_at(c->worst, "message_bytes"), 0);
	doc_cell(t, "%s", json_text_at(c->worst, "criterion"));
	doc_cell(t, "%s", required ? required : "");
	doc_cell(t, "%s", measured ? measured : "");
	doc_cell(t, "%s", words[badness(c->worst)]);
	doc_cell(t, "%zu of %zu", c->passed, c->runs);
}

static void table_criteria(struct page *p)
{
	struct criterion *v = page_room(p, CRITERIA_MAX, sizeof(*v));
	size_t n = v ? collect_criteria(p->run, v) : 0, failed = 0, passed = 0;
	struct doc_table *t;

	doc_heading(p->doc, "Success criteria");
	for (size_t i = 0; i < n; i++) {
		failed += badness(v[i].worst) == 2;
		passed += badness(v[i].worst) == 0;
	}
	if (n == 0) {
		doc_text(p->doc, NULL, "None was judged: no step was completed.");
		return;
	}
	doc_text(p->doc, NULL, "%zu of %zu criteria were met, %zu failed, %zu could not be judged.", passed, n, failed,
		 n - passed - failed);
	t = doc_table(p->doc, "criteria", "Of several runs of a step the worst is shown.");
	doc_column(t, "clients", NULL, true);
	if (p->points->n_sizes > 1)
		doc_column(t, "message size", "bytes", true);
	doc_column(t, "criterion", NULL, false);
	doc_column(t, "required", NULL, false);
	doc_column(t, "measured", NULL, false);
	doc_column(t, "result", NULL, false);
	doc_column(t, "runs passed", NULL, true);
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
		doc_note(p->doc, DOC_WARN, NULL, "%zu further steps of the run are left out.", p->points->left_out);
	say_limiting_resource(p);
	table_capacities(p);
	table_criteria(p);
}
