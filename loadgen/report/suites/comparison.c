/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a report that show a comparison. See comparison.h. */
#include "loadgen/report/suites/comparison.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/untaken.h"
#include "loadgen/report/sections/sections.h"
#include "loadgen/report/suites/figures.h"
#include "loadgen/report/suites/need.h"

#define POINTS_MAX 512u
#define CANDIDATES_MAX 16u
#define ALTERNATIVES_MAX 16u
#define CROSSINGS_MAX 64u	/* as many as sizes of a run */

/* The figures of each alternative at each point. The caller owns the result. */
static json_t *figures_of(const json_t *points)
{
	json_t *all = json_array(), *point, *o;
	size_t i, k;

	json_array_foreach((json_t *)points, i, point) {
		json_array_foreach(json_object_get(point, "figures"), k, o) {
			if (i < POINTS_MAX && k < ALTERNATIVES_MAX)
				json_array_append(all, o);
		}
	}
	return all;
}

static const struct axis {
	const char *path, *other, *label;
} size_axis = { "message_bytes", "clients", "size, bytes" }, clients_axis = { "clients", "message_bytes", "clients" };

/* The figures of an alternative at the points that differ from the first one only along the axis. The caller owns the
 * result. */
static json_t *figures_along(const struct axis *axis, const json_t *points, size_t alternative)
{
	double other = json_number_at(json_array_get(points, 0), axis->other);
	json_t *all = json_array(), *point;
	size_t i;

	json_array_foreach((json_t *)points, i, point) {
		if (json_number_at(point, axis->other) == other)
			json_array_append(all, json_array_get(json_object_get(point, "figures"), alternative));
	}
	return all;
}

/* Charts of figures against the size and against the number of clients, with a line for each alternative. */
static void draw_figures(struct page *p, const char *id, const json_t *points)
{
	static const struct {
		const struct axis *axis;
		const char *id, *title, *y_label, *path;
		double scale;
	} charts[] = {
		{ &size_axis, "p50", "Time of an operation", "p50, us", "response_p50_ns", 1e-3 },
		{ &size_axis, "bandwidth", "Bandwidth", "bandwidth, GB/s", "throughput_bytes_per_s", 1e-9 },
		{ &clients_axis, "clients-p50", "Time of an operation", "p50, us", "response_p50_ns", 1e-3 },
		{ &clients_axis, "clients-rate", "Operations a second", "operations/s", "throughput_msgs_per_s", 1 },
	};
	const json_t *first = json_object_get(json_array_get(points, 0), "figures");

	for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++) {
		struct chart c = { .x_label = charts[i].axis->label, .x_log = true, .y_label = charts[i].y_label,
				   .y_log = true };

		for (size_t k = 0; k < json_array_size(first) && k < ALTERNATIVES_MAX; k++) {
			struct page_column curve = { .path = charts[i].path, .scale = charts[i].scale };
			json_t *steps = figures_along(charts[i].axis, points, k);

			curve.title = page_text_at(json_array_get(first, k), "name", "unknown");
			if (figures_count_distinct(steps, charts[i].axis->path) > 1)
				figures_curve(p, &c, steps, charts[i].axis->path, &curve);
			json_decref(steps);
		}
		if (c.n_series)
			page_chart(p, page_text(p, "%s-%s", id, charts[i].id), charts[i].title, &c,
				   "Medians of the rounds; the table has the numbers.");
	}
}

static void show_figures(struct page *p, const char *id, const json_t *points)
{
	static const struct page_column stages[] = {
		{ "clients#", "clients", 1, 0 }, { "size#bytes", "message_bytes", 1, 0 },
		{ "alternative", "name", 0, 0 }, PAGE_STAGES("connect_stages.", ""), { 0 }
	};
	json_t *all = figures_of(points);

	draw_figures(p, id, points);
	figures_table(p, page_text(p, "%s_side_by_side", id), "Each alternative: medians of the rounds.", all,
		      SIZE_MAX);
	if (figures_are_known(all, "connect_stages.tcp_connect"))
		page_objects(p, page_text(p, "%s_stages", id),
			     "Connecting by stage, p50. A stage without a figure does not occur "
			     "with that alternative.", stages, all, SIZE_MAX);
	json_decref(all);
}

static const char *improvement(struct page *p, const json_t *row)
{
	double v = json_number_at(row, "round_ratio.value"), low = json_number_at(row, "round_ratio.low");
	double high = json_number_at(row, "round_ratio.high");

	if (!isfinite(v))
		return "unknown";
	if (!isfinite(low) || !isfinite(high))
		return page_text(p, "%+.1f %%", 100 * (v - 1));
	return page_text(p, "%+.1f %% (%+.1f to %+.1f)", 100 * (v - 1), 100 * (low - 1), 100 * (high - 1));
}

static void add_rows(struct page *p, struct doc_table *t, const json_t *point, const json_t *candidate)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_at(candidate, "rows"), i, row) {
		const char *unit = json_text_at(row, "unit");

		if (page_takes_row(p))
			page_add(t, baseline_tone(row), "000ssssss", json_number_at(point, "clients"),
				 json_number_at(point, "message_bytes"), json_number_at(point, "offered_per_s"),
				 page_text_at(candidate, "name", "unknown"), baseline_metric_words(row),
				 baseline_figure(p, json_at(row, "base"), unit),
				 baseline_figure(p, json_at(row, "run"), unit),
				 improvement(p, row), page_text_at(row, "verdict", "unknown"));
	}
}

static void show_comparison(struct page *p, const char *id, const json_t *comparison)
{
	const json_t *point, *candidate;
	struct doc_table *t;
	size_t i, k;

	t = page_table(p, page_text(p, "%s_comparison", id),
		       "Candidates against the baseline, with the range of the rounds.",
		       "clients#;size#bytes;offered#/s;candidate;figure;baseline;candidate's;improvement;verdict");
	json_array_foreach(json_object_get(comparison, "points"), i, point) {
		if (i == POINTS_MAX)
			break;
		json_array_foreach(json_object_get(point, "candidates"), k, candidate) {
			if (k < CANDIDATES_MAX * 4)
				add_rows(p, t, point, candidate);
		}
	}
}

/* A candidate's row of that metric; NULL: none. */
static const json_t *row_of(const json_t *candidate, const char *metric)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(candidate, "rows"), i, row) {
		if (strcmp(page_text_at(row, "metric", ""), metric) == 0)
			return row;
	}
	return NULL;
}

static bool has_metric(const json_t *comparison, const char *metric)
{
	const json_t *point = json_array_get(json_object_get(comparison, "points"), 0);

	return row_of(json_array_get(json_object_get(point, "candidates"), 0), metric) != NULL;
}

/* Charts the improvement in messages a second, in per cent, against the size, or against the number of clients if there
 * is one size; it shows where settings cross. */
static void draw_comparison(struct page *p, const char *id, const json_t *comparison)
{
	const json_t *points = json_object_get(comparison, "points");
	size_t n = json_array_size(points) < POINTS_MAX ? json_array_size(points) : POINTS_MAX;
	size_t candidates = json_array_size(json_at(json_array_get(points, 0), "candidates"));
	const struct axis *axis = figures_count_distinct(points, "message_bytes") > 1 ? &size_axis : &clients_axis;
	struct chart c = { .x_label = axis->label, .x_log = true, .y_label = "messages/s, % more than the baseline" };

	if (figures_count_distinct(points, axis->path) < 2 || !has_metric(comparison, "throughput_msgs_per_s"))
		return;
	for (size_t k = 0; k < candidates && k < CANDIDATES_MAX; k++) {
		double *v = page_numbers(p, 4 * n);

		if (!v)
			return;
		for (size_t i = 0; i < n; i++) {
			const json_t *at = json_array_get(points, i);
			const json_t *row = row_of(json_array_get(json_object_get(at, "candidates"), k),
						   "throughput_msgs_per_s");

			v[i] = json_number_at(at, axis->path);
			v[n + i] = 100 * (json_number_at(row, "round_ratio.value") - 1);
			v[2 * n + i] = 100 * (json_number_at(row, "round_ratio.low") - 1);
			v[3 * n + i] = 100 * (json_number_at(row, "round_ratio.high") - 1);
		}
		page_series(&c, (struct chart_series){ .mark = CHART_LINE, .x = v, .y = v + n, .low = v + 2 * n,
						       .high = v + 3 * n,
			.n = n, .label = page_text_at(json_array_get(json_at(json_array_get(points, 0), "candidates"),
								     k), "name",
						      "unknown") });
	}
	if (!c.n_series)
		return;
	page_rule(&c, 0, false, false, page_text_at(comparison, "baseline", "baseline"));
	page_chart(p, page_text(p, "%s-change", id), "Messages a second against the baseline", &c,
		   "By how much each candidate is better, with the range of the rounds; the table has the numbers.");
}

void comparison_verdicts(const json_t *comparison, size_t *better, size_t *worse, size_t *all)
{
	const json_t *point, *candidate, *row;
	size_t i, k, r;

	*better = *worse = *all = 0;
	json_array_foreach(json_object_get(comparison, "points"), i, point)
		json_array_foreach(json_object_get(point, "candidates"), k, candidate)
			json_array_foreach(json_object_get(candidate, "rows"), r, row) {
				const char *verdict = page_text_at(row, "verdict", "unknown");

				*better += strcmp(verdict, "improvement") == 0;
				*worse += strcmp(verdict, "regression") == 0;
				++*all;
			}
}

void comparison_answer(struct page *p, const json_t *comparison)
{
	size_t better, worse, all;

	comparison_verdicts(comparison, &better, &worse, &all);
	doc_answer(p->doc, DOC_PLAIN, NULL, page_text(p, "Against %s",
						      page_text_at(comparison, "baseline", "the baseline")),
		   page_text(p, "%zu better, %zu worse", better, worse),
		   page_text(p, "of %zu figures, over all sizes and candidates.", all));
}

static const char *metric_words(const json_t *contest)
{
	static const struct page_words words[] = {
		{ "response_p50_ns", "the shorter p50" }, { "throughput_bytes_per_s", "the greater bandwidth" },
	};

	return page_words(words, 2, json_text_at(contest, "metric"), "the better figure");
}

static void say_contest(struct page *p, const json_t *contest)
{
	const json_t *names = json_object_get(contest, "names"), *ahead = json_object_get(contest, "ahead"), *a;
	const char *text = "";
	size_t i;

	json_array_foreach(ahead, i, a) {
		double from = json_number_at(a, "from_bytes");

		if (i == CROSSINGS_MAX)
			break;
		if (i && isfinite(from))
			text = page_text(p, "%s, from about %s on %.100s", text, page_bytes(p, from),
					 page_text_at(a, "name", "unknown"));
		else if (i == 0)
			text = page_text_at(a, "name", "unknown");
	}
	doc_item(p->doc, NULL, "%s, %s against %s: %s has %s%s.", page_clients(p, json_number_at(contest, "clients")),
		 page_json(p, json_array_get(names, 0)), page_json(p, json_array_get(names, 1)), *text ? text :
		 "neither", metric_words(contest), json_array_size(ahead) == 1 ? " at all sizes" : "");
}

static void say_sizes(struct page *p, const json_t *comparison)
{
	const json_t *contest;
	size_t i;

	json_array_foreach(json_object_get(comparison, "sizes"), i, contest) {
		if (i < POINTS_MAX)
			say_contest(p, contest);
	}
}

static bool compares_transports(const json_t *comparison)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(comparison, "alternatives"), i, o) {
		if (json_object_get(json_object_get(o, "options"), "transport"))
			return true;
	}
	return false;
}

/* Explains why sockets win on software RDMA, and why its throughput over the number of clients does not predict an
 * adapter's. */
static void warn_of_software(struct page *p, const json_t *comparison)
{
	if (!json_is_true(json_at(comparison, "environment.rdma_device.is_software")))
		return;
	if (json_array_size(json_object_get(comparison, "falls")))
		doc_note(p->doc, DOC_WARN, NULL,
			 "RDMA here is software (%s), which has no cache of queue pairs: their state is in the host's "
			 "memory. How throughput changes with the number of clients says nothing about an adapter, "
			 "whose cache holds the state of some queue pairs only.",
			 page_text_at(comparison, "environment.rdma_device.driver", "no adapter"));
	if (!compares_transports(comparison))
		return;
	doc_note(p->doc, DOC_WARN, NULL,
		 "RDMA here is software (%s)%s: the sending CPU builds every packet and its checksum, while the "
		 "kernel's TCP has segmentation offload. That favours TCP the more, the larger messages are. An "
		 "adapter does this work itself, so these figures do not apply to adapters.",
		 page_text_at(comparison, "environment.rdma_device.driver", "no adapter"),
		 json_is_true(json_at(comparison, "environment.is_emulated_cpu")) ? " on an emulated CPU" : "");
}

/* Warns of settings that did not take effect: the alternative then did not run as its name says. */
static void say_untaken(struct page *p, const json_t *comparison)
{
	const json_t *o, *e;
	char text[256];
	size_t i, k;

	json_array_foreach(json_object_get(comparison, "alternatives"), i, o)
		json_array_foreach(json_object_get(o, "not_taken"), k, e)
			if (page_takes_row(p))
				doc_item(p->doc, NULL, "Not as asked, %s: %s", page_text_at(o, "name", "unknown"),
					 untaken_text(e, text, sizeof(text)));
}

static void say_crossovers(struct page *p, const json_t *comparison)
{
	const json_t *c;
	size_t i;

	json_array_foreach(json_object_get(comparison, "crossovers"), i, c) {
		if (page_takes_row(p))
			doc_item(p->doc, NULL,
				 "%s, %s: at about %s a second offered, the p99 of %s crosses the baseline's; beyond "
				 "it, it is %s.", page_clients(p, json_number_at(c, "clients")),
				 page_bytes(p, json_number_at(c, "message_bytes")),
				 page_count(p, json_number_at(c, "offered_per_s")), page_text_at(c, "name", "unknown"),
				 json_is_true(json_object_get(c, "faster_beyond")) ? "lower" : "higher");
	}
}

static void say_falls(struct page *p, const json_t *comparison)
{
	const json_t *fall;
	size_t i;

	json_array_foreach(json_object_get(comparison, "falls"), i, fall) {
		double below = json_number_at(fall, "below_clients");

		if (!page_takes_row(p))
			return;
		doc_item(p->doc, NULL, "%s, %s: the rate is highest with %s (%s operations/s). %s",
			 page_text_at(fall, "name", "unknown"), page_bytes(p, json_number_at(fall, "message_bytes")),
			 page_clients(p, json_number_at(fall, "best_clients")),
			 page_count(p, json_number_at(fall, "best_msgs_per_s")), isfinite(below) ?
			 page_text(p, "From %s on (%s operations/s) every median is more than 10 %% below that.",
				   page_clients(p, below), page_count(p, json_number_at(fall, "below_msgs_per_s"))) :
			 "With no larger number of clients do the medians stay more than 10 % below that.");
	}
}

/* The devices' counters that grew more where throughput had fallen. */
static void show_fall_counters(struct page *p, const char *id, const json_t *comparison)
{
	struct doc_table *t = NULL;
	const json_t *fall, *o;
	size_t i, k;

	json_array_foreach(json_object_get(comparison, "falls"), i, fall)
		json_array_foreach(json_object_get(fall, "counters"), k, o) {
			if (!t)
				t = page_table(p, page_text(p, "%s_fall_counters", id),
					       "Counters of the RDMA ports that grew at least 10 % more for each "
					       "operation where throughput had fallen than where it was highest.",
					       "alternative;size#bytes;counter;at the highest rate#/1,000 op;"
					       "after the fall#/1,000 op");
			if (page_takes_row(p))
				page_add(t, DOC_PLAIN, "s0s33", page_text_at(fall, "name", "unknown"),
					 json_number_at(fall, "message_bytes"), page_text_at(o, "name", "unknown"),
					 1e3 * json_number_at(o, "best_per_op"),
					 1e3 * json_number_at(o, "below_per_op"));
		}
}

static void say_comparison(struct page *p, const json_t *comparison)
{
	double rounds = json_number_at(comparison, "rounds");

	doc_text(p->doc, NULL, "The baseline is %s. Figures are medians over %s round%s, in each of which "
		 "every alternative ran once. A change is the median of the rounds' own changes, so its sign may "
		 "differ from that of the two medians. Above 0 %% the candidate is better: a time, CPU time or "
		 "memory is less, or a rate higher.",
		 page_text_at(comparison, "baseline", "unknown"), page_count(p, rounds), rounds == 1 ? "" : "s");
	if (rounds < BASELINE_ROUNDS)
		doc_note(p->doc, DOC_WARN, NULL, "Fewer than %d rounds: no verdict, only a sign that everything runs.",
			 BASELINE_ROUNDS);
	say_untaken(p, comparison);
	say_crossovers(p, comparison);
	warn_of_software(p, comparison);
	say_sizes(p, comparison);
	say_falls(p, comparison);
}

/* A figure of a row. The column's title says that a rate is one. */
static const char *amount(struct page *p, const json_t *row, const char *path)
{
	const char *unit = page_text_at(row, "unit", "");

	return page_in_unit(p, json_number_at(row, path), strcmp(unit, "per_s") == 0 ? NULL : unit);
}

/* "1.25 ms → 1.1 ms, +12.3 %, improvement"; the verdicts "same" and "unknown" are left out. */
static const char *change(struct page *p, const json_t *candidate, const char *metric)
{
	const json_t *row = row_of(candidate, metric);
	double ratio = json_number_at(row, "round_ratio.value");

	if (!isfinite(ratio))
		return "–";
	return page_text(p, "%s → %s, %+.1f %%%s%s", amount(p, row, "base.value"), amount(p, row, "run.value"),
			 100 * (ratio - 1), baseline_tone(row) ? ", " : "",
			 baseline_tone(row) ? json_text_at(row, "verdict") : "");
}

/* Lists the criteria that runs failed, because the exit status follows from them. */
static void say_failed(struct page *p, const json_t *comparison)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(comparison, "failed"), i, v)
		doc_item(p->doc, NULL, "%s, %s: %s failed in %s of %s runs, first with %s (required: %s)",
			 page_text_at(v, "name", "unknown"), page_clients(p, json_number_at(v, "clients")),
			 page_text_at(v, "criterion", "unknown"), page_count(p, json_number_at(v, "runs")),
			 page_count(p, json_number_at(comparison, "rounds")), page_text_at(v, "measured", "unknown"),
			 page_text_at(v, "required", "unknown"));
}

void comparison_brief(struct page *p, const json_t *comparison)
{
	static const struct page_column connecting[] = {
		{ "candidate", NULL, 0, 0 }, { "connections/s", "connects_per_s", 0, 0 },
		{ "connecting p50", "connect_p50_ns", 0, 0 }, { "connecting p99", "connect_p99_ns", 0, 0 },
		{ "server CPU a connection", "server_cpu_ns_per_connection", 0, 0 },
		{ "generator CPU a connection", "generator_cpu_ns_per_connection", 0, 0 }, { 0 }
	}, changes[] = {
		{ "offered#/s", NULL, 0, 0 }, { "candidate", NULL, 0, 0 },
		{ "messages/s", "throughput_msgs_per_s", 0, 0 },
		{ "p50", "response_p50_ns", 0, 0 }, { "p99", "response_p99_ns", 0, 0 },
		{ "server CPU an operation", "server_cpu_ns_per_message", 0, 0 }, { 0 }
	};
	bool swept = isfinite(json_number_at(json_array_get(json_at(comparison, "points"), 0), "offered_per_s"));
	const struct page_column *shown = has_metric(comparison, "connects_per_s") ? connecting :
					  swept ? changes : changes + 1;
	struct doc_table *t;
	const json_t *point, *candidate;
	size_t i, k;

	say_comparison(p, comparison);
	need_brief(p, "need", comparison);
	t = page_table(p, "comparison", "From the baseline to the candidate; a change above 0 is better.",
		       "clients#;size#bytes");
	page_columns(p, t, shown);
	json_array_foreach(json_object_get(comparison, "points"), i, point)
		json_array_foreach(json_object_get(point, "candidates"), k, candidate) {
			page_add(t, DOC_PLAIN, "00", json_number_at(point, "clients"),
				 json_number_at(point, "message_bytes"));
			if (shown == changes)
				page_cells(t, "0", json_number_at(point, "offered_per_s"));
			page_cells(t, "s", page_text_at(candidate, "name", "unknown"));
			for (const struct page_column *c = shown + 1 + (shown == changes); c->title; c++)
				page_cells(t, "s", change(p, candidate, c->path));
		}
	say_failed(p, comparison);
}

static void show_alternatives(struct page *p, const json_t *comparison)
{
	const json_t *o, *options;
	size_t i;

	doc_text(p->doc, NULL, "What was compared:");
	json_array_foreach(json_object_get(comparison, "alternatives"), i, o) {
		options = json_object_get(o, "options");
		doc_item(p->doc, NULL, "%s%s: %s", page_text_at(o, "name", "unknown"), i ? "" : " (the baseline)",
			 json_object_size(options) ? page_json(p, options) : "nothing is set");
	}
}

void comparison_show(struct page *p, const char *id, const json_t *comparison)
{
	say_comparison(p, comparison);
	need_show(p, id, comparison);
	show_figures(p, id, json_object_get(comparison, "points"));
	show_fall_counters(p, id, comparison);
	draw_comparison(p, id, comparison);
	show_comparison(p, id, comparison);
	say_failed(p, comparison);
	show_alternatives(p, comparison);
}
