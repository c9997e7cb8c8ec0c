/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing settings. See compare.h and docs/results.md, "Comparisons". */
#include "loadgen/suites/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/offered.h"
#include "loadgen/cluster/team.h"
#include "loadgen/report/run_cases.h"
#include "loadgen/run/run.h"
#include "loadgen/suites/falls.h"
#include "loadgen/suites/need.h"
#include "loadgen/suites/side_by_side.h"
#include "loadgen/suites/suite_results.h"

#define FAILED_MAX 20u

/* A point of the comparison (clients, size and rate), with a run for each alternative, whose steps are its rounds. */
struct compared {
	json_int_t clients, bytes;
	double rate;			/* of a sweep; else 0 */
	json_t *runs[COMPARE_ALTERNATIVES_MAX];
};

struct comparison {
	struct alternatives *a;
	unsigned rounds;		/* complete ones */
	json_t *environment;		/* the load generator's, from the first run that knew an RDMA device, else from
					 * the first run */
	json_t *not_taken[COMPARE_ALTERNATIVES_MAX];	/* settings of an alternative that did not take effect; NULL: it
							 * has not run yet */
	struct compared *points;
	size_t n_points, max_points;
	struct cases *cases;
	json_t *failed;			/* [{name, clients, criterion, required, measured, runs}], at most FAILED_MAX */
	enum run_exit worst;		/* of all runs */
};

static struct compared *point_of(struct comparison *k, const json_t *step, bool swept)
{
	double rate = swept ? json_number_at(step, "offered_per_s") : 0;
	json_int_t clients = json_integer_value(json_object_get(step, "target_clients"));
	json_int_t bytes = json_integer_value(json_object_get(step, "message_bytes"));
	struct compared *p;

	for (size_t i = 0; i < k->n_points; i++)
		if (k->points[i].clients == clients && k->points[i].bytes == bytes && k->points[i].rate == rate)
			return &k->points[i];
	if (k->n_points == k->max_points)
		return NULL;
	p = &k->points[k->n_points++];
	*p = (struct compared){ .clients = clients, .bytes = bytes, .rate = rate };
	for (unsigned i = 0; i < k->a->n; i++)
		p->runs[i] = json_pack("{s:[]}", "steps");
	return p;
}

/* Keeps only the part of a step that baseline_compare, suite_results_figures, need_json and falls_json read: all rounds
 * are kept until the end, and whole steps are large. */
static json_t *figures_of(const json_t *step, unsigned round)
{
	static const char *const names[] = {
		"target_clients", "message_bytes", "connected_held", "throughput_msgs_per_s", "throughput_bytes_per_s",
		"response_ns", "one_way_ns", "streams", "churn", "connect_ns", "connect_full_ns", "connect_resumed_ns",
		"connect_wall_s", "connect_cpu_ns_per_client", "network", "resources", "memory", "slo", "validity",
	};
	json_t *o = json_pack("{s:i}", "repetition", (int)round + 1);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(step, names[i]))
			json_object_set(o, names[i], json_object_get(step, names[i]));
	return o;
}

static bool names_device(const json_t *environment)
{
	return json_is_object(json_at(environment, "rdma_device"));
}

static void keep_run(struct comparison *k, unsigned alternative, const json_t *run)
{
	bool swept = json_array_size(json_at(run, "config.rates_per_s")) > 1;
	json_t *environment = json_at(run, "environment.clients");
	json_t *step;
	size_t i;

	/* Keep those of the first round: later rounds differ only if the machine changed. */
	if (!k->not_taken[alternative])
		k->not_taken[alternative] = json_incref(json_at(run, "analysis.not_taken"));

	if (!k->environment || (names_device(environment) && !names_device(k->environment))) {
		json_decref(k->environment);
		k->environment = json_incref(environment);
	}
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		struct compared *p = point_of(k, step, swept);

		if (p)
			json_array_append_new(json_object_get(p->runs[alternative], "steps"),
					      figures_of(step, k->rounds));
	}
}

/* True if the run can be compared: it ended normally, and no load host was lost. */
static bool is_result(const struct comparison *k, enum run_exit status)
{
	return (status == EXIT_OK || status == EXIT_CRITERION || status == EXIT_INCONCLUSIVE) &&
		!team_is_over(k->a->v[0].cfg.team);
}

static void add_cases(const struct comparison *k, unsigned alternative, const json_t *run)
{
	char of[sizeof(k->a->v[0].name) + 32];

	snprintf(of, sizeof(of), "%s, round %u", k->a->v[alternative].name, k->rounds + 1);
	run_cases_add(k->cases, of, run);
}

static json_t *find_failed(const struct comparison *k, const char *name, const json_t *row)
{
	json_t *seen;
	size_t i;

	json_array_foreach(k->failed, i, seen)
		if (strcmp(json_text_at(seen, "name"), name) == 0 &&
		    json_equal(json_object_get(seen, "clients"), json_object_get(row, "clients")) &&
		    json_equal(json_object_get(seen, "criterion"), json_object_get(row, "criterion")))
			return seen;
	return NULL;
}

/* Keeps the criteria that a run failed, with the number of runs that did. `measured` is that of the first one. */
static void keep_failed(struct comparison *k, unsigned alternative, const json_t *run)
{
	const char *name = k->a->v[alternative].name;
	json_t *row, *seen;
	size_t i;

	json_array_foreach(json_object_get(run, "verdict"), i, row) {
		const char *result = json_text_at(row, "result");

		if (!result || strcmp(result, "fail") != 0)
			continue;
		seen = find_failed(k, name, row);
		if (seen)
			json_object_set_new(seen, "runs",
					    json_integer(json_integer_value(json_object_get(seen, "runs")) + 1));
		else if (json_array_size(k->failed) < FAILED_MAX)
			json_array_append_new(k->failed, json_pack("{s:s, s:O, s:O, s:O, s:O, s:i}", "name", name,
				"clients", json_object_get(row, "clients"), "criterion",
				json_object_get(row, "criterion"), "required", json_object_get(row, "required"),
				"measured", json_object_get(row, "measured"), "runs", 1));
	}
}

/* Runs each alternative once. False if one of them could not run: the round then does not count. */
static bool run_round(struct comparison *k, const char *prefix, int argc, char **argv)
{
	json_t *runs[COMPARE_ALTERNATIVES_MAX] = { NULL };
	enum run_exit status = EXIT_OK;
	unsigned done = 0, n = k->a->n;

	for (; done < n && (done == 0 || is_result(k, status)); done++) {
		unsigned which = k->rounds % 2 ? n - 1 - done : done;
		struct loadgen_config *cfg = &k->a->v[which].cfg;

		snprintf(cfg->name_text, sizeof(cfg->name_text), "%s%u-%u", prefix, k->rounds + 1, which + 1);
		if (!cfg->quiet)
			utf8_print_line(stderr, "round %u of %llu: %s", k->rounds + 1, (unsigned long long)k->a->rounds,
				k->a->v[which].name);
		status = run_once(cfg, argc, argv, false, &runs[which]);
		k->worst = run_exit_worse(k->worst, status);
		add_cases(k, which, runs[which]);
	}
	for (unsigned i = 0; i < n; i++) {
		if (done == n && is_result(k, status)) {
			keep_run(k, i, runs[i]);
			keep_failed(k, i, runs[i]);
		}
		json_decref(runs[i]);
	}
	return done == n && is_result(k, status);
}

static json_t *rows_of(const struct compared *p, unsigned alternative)
{
	const struct baseline_options options = { .min_effect = BASELINE_MIN_EFFECT, .rounds = true };
	struct baseline_side base = { .run = p->runs[0] }, run = { .run = p->runs[alternative] };
	json_t *comparison = baseline_compare(&base, &run, &options);
	json_t *rows = json_incref(json_object_get(comparison, "rows"));

	json_decref(comparison);
	return rows;
}

static json_t *alternatives_json(const struct comparison *k)
{
	const struct alternatives *a = k->a;
	json_t *all = json_array();

	for (unsigned i = 0; i < a->n; i++)
		json_array_append_new(all, json_pack("{s:s, s:O, s:O?}", "name", a->v[i].name, "options",
						     a->v[i].options, "not_taken", k->not_taken[i]));
	return all;
}

static double p99_of(const json_t *point, unsigned alternative)
{
	return json_number_at(json_array_get(json_object_get(point, "figures"), alternative), "response_p99_ns");
}

/* Reads the p99 curves of an alternative and of the baseline over the rates of a sweep, at the clients and size of
 * `first`. */
static size_t curves_of(const json_t *points, const json_t *first, unsigned alternative,
			struct offered_point base[OFFERED_MAX], struct offered_point run[OFFERED_MAX])
{
	json_t *point;
	size_t i, n = 0;

	json_array_foreach((json_t *)points, i, point) {
		double rate = json_number_at(point, "offered_per_s");

		if (n == OFFERED_MAX || !isfinite(rate) || json_number_at(point,
									  "clients") != json_number_at(first,
												       "clients") ||
		    json_number_at(point, "message_bytes") != json_number_at(first, "message_bytes"))
			continue;
		base[n] = (struct offered_point){ .per_s = rate, .p99_ns = p99_of(point, 0) };
		run[n++] = (struct offered_point){ .per_s = rate, .p99_ns = p99_of(point, alternative) };
	}
	return n;
}

static bool is_first_of_curve(const json_t *points, size_t at)
{
	const json_t *point = json_array_get(points, at);

	for (size_t i = 0; i < at; i++)
		if (json_number_at(json_array_get(points, i), "clients") == json_number_at(point, "clients") &&
		    json_number_at(json_array_get(points, i), "message_bytes") == json_number_at(point,
												 "message_bytes"))
			return false;
	return isfinite(json_number_at(point, "offered_per_s"));
}

static void add_crossovers(json_t *to, const json_t *points, const json_t *first, const char *name,
			   unsigned alternative)
{
	struct offered_point base[OFFERED_MAX], run[OFFERED_MAX];
	struct offered_crossing at[OFFERED_CROSSINGS_MAX];
	size_t n = curves_of(points, first, alternative, base, run), crossings = offered_crossings(base, n, run, n, at);

	for (size_t i = 0; i < crossings; i++)
		json_array_append_new(to, json_pack("{s:O, s:O, s:s, s:f, s:b}", "clients",
						    json_object_get(first, "clients"),
			"message_bytes", json_object_get(first, "message_bytes"), "name", name, "offered_per_s",
			at[i].per_s, "faster_beyond", at[i].faster_beyond));
}

/* The rates of a sweep at which the p99 curves of candidates cross the baseline's. */
static json_t *crossovers_json(const struct comparison *k, const json_t *points)
{
	json_t *all = json_array();

	for (size_t i = 0; i < json_array_size(points); i++)
		for (unsigned c = 1; c < k->a->n && is_first_of_curve(points, i); c++)
			add_crossovers(all, points, json_array_get(points, i), k->a->v[c].name, c);
	return all;
}

/* The medians of an alternative over its rounds at a point; null if it was not measured there in any round. */
static json_t *alternative_figures(const struct comparison *k, const struct compared *at, unsigned alternative)
{
	json_t *o = suite_results_figures(json_object_get(at->runs[alternative], "steps"));

	json_object_set_new(o, "name", json_string(k->a->v[alternative].name));
	json_object_set_new(o, "clients", json_integer(at->clients));
	json_object_set_new(o, "message_bytes", json_integer(at->bytes));
	return o;
}

/* Copies the points, and adds to each the rounds of every alternative as `runs`. The caller owns the result. */
static json_t *points_with_runs(const struct comparison *k, const json_t *points)
{
	json_t *all = json_array(), *point, *runs;
	size_t n;

	json_array_foreach((json_t *)points, n, point) {
		runs = json_array();
		for (unsigned i = 0; i < k->a->n; i++)
			json_array_append(runs, k->points[n].runs[i]);
		point = json_copy(point);
		json_object_set_new(point, "runs", runs);
		json_array_append_new(all, point);
	}
	return all;
}

static json_t *comparison_json(const struct comparison *k)
{
	const struct loadgen_config *cfg = &k->a->v[0].cfg;
	const struct need_terms terms = { .rounds = k->rounds, .slo = cfg->slo_text,
					  .cpu_hour_price = cfg->cpu_hour_price };
	json_t *points = json_array(), *alternatives = alternatives_json(k), *judged, *need, *crossovers, *falls;

	for (size_t n = 0; n < k->n_points; n++) {
		json_t *candidates = json_array(), *figures = json_array();

		for (unsigned i = 0; i < k->a->n; i++)
			json_array_append_new(figures, alternative_figures(k, &k->points[n], i));
		for (unsigned i = 1; i < k->a->n; i++)
			json_array_append_new(candidates, json_pack("{s:s, s:o}", "name", k->a->v[i].name, "rows",
								    rows_of(&k->points[n], i)));
		json_array_append_new(points, json_pack("{s:I, s:I, s:o, s:o, s:o}", "clients", k->points[n].clients,
			"message_bytes", k->points[n].bytes, "offered_per_s",
			json_number(k->points[n].rate > 0 ? k->points[n].rate : NAN), "candidates", candidates,
			"figures", figures));
	}
	crossovers = crossovers_json(k, points);
	judged = points_with_runs(k, points);
	need = need_json(alternatives, judged, &terms);
	falls = falls_json(judged);
	json_decref(judged);
	return json_pack("{s:s, s:o, s:s, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:O, s:O?}", "compared", k->a->title,
			 "alternatives", alternatives, "baseline", k->a->v[0].name, "rounds", (int)k->rounds,
			 "min_effect", BASELINE_MIN_EFFECT, "points", points, "crossovers", crossovers, "falls", falls,
			 "sizes", side_by_side_sizes(points), "need", need, "failed", k->failed, "environment",
			 k->environment);
}

static void free_points(struct comparison *k)
{
	for (size_t n = 0; n < k->n_points; n++)
		for (unsigned i = 0; i < k->a->n; i++)
			json_decref(k->points[n].runs[i]);
	for (unsigned i = 0; i < k->a->n; i++)
		json_decref(k->not_taken[i]);
	json_decref(k->environment);
	json_decref(k->failed);
	free(k->points);
}

enum run_exit compare_run(struct alternatives *a, const char *output, const char *prefix, int argc, char **argv,
			  struct cases *cases, json_t **out)
{
	const struct loadgen_config *first = &a->v[0].cfg;
	struct comparison k = { .a = a, .max_points = first->steps.n * first->sizes.n * MAX(first->rates.n, 1),
				.cases = cases, .failed = json_array(), .worst = EXIT_OK };

	k.points = calloc(k.max_points, sizeof(*k.points));
	if (!k.points)
		k.worst = EXIT_ENVIRONMENT;
	for (unsigned i = 0; i < a->n; i++)
		a->v[i].cfg.output = output;
	while (k.points && k.rounds < a->rounds && run_round(&k, prefix, argc, argv))
		k.rounds++;
	*out = k.rounds ? comparison_json(&k) : NULL;
	free_points(&k);
	return k.worst;
}
