/* SPDX-License-Identifier: BSD-2-Clause */
/* See expect.h. */
#include "loadgen/suites/expect.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/suites/expect_file.h"

#define STEPS_MAX 128u

/* Number of clients and message size of a step; NAN: the step has none, or it is not known. */
struct place {
	double clients, bytes;
};

struct judgement {
	const json_t *expectation, *entry, *entries;
	double line_bytes_per_s;
	const char *excuse;
	json_t *rows;
};

static struct place place_of(const json_t *o)
{
	return (struct place){ json_number_at(o, "clients"), json_number_at(o, "message_bytes") };
}

static bool is_same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool is_at(const json_t *step, struct place at)
{
	struct place p = place_of(step);

	return is_same(p.clients, at.clients) && is_same(p.bytes, at.bytes);
}

/* True if the expectation is about this place. */
static bool is_wanted(const json_t *expectation, struct place at)
{
	struct place only = place_of(json_object_get(expectation, "at"));

	return (isnan(only.clients) || only.clients == at.clients) && (isnan(only.bytes) || only.bytes == at.bytes);
}

/* The median over the repetitions of a step; NAN if none has the figure. */
static double figure_at(const json_t *steps, struct place at, const char *metric)
{
	double v[STEPS_MAX];
	const json_t *step;
	size_t i, n = 0;

	json_array_foreach(steps, i, step) {
		double x = is_at(step, at) ? json_number_at(step, metric) : NAN;

		if (isfinite(x) && n < STEPS_MAX)
			v[n++] = x;
	}
	return n ? stats_median(v, n) : NAN;
}

static const json_t *steps_of_entry(const struct judgement *j, const char *name)
{
	const json_t *other;
	size_t i;

	json_array_foreach(j->entries, i, other) {
		if (strcmp(json_text_at(other, "name"), name) == 0 &&
		    strcmp(json_text_at(other, "suite"), json_text_at(j->entry, "suite")) == 0)
			return json_object_get(other, "steps");
	}
	return NULL;
}

/* Returns "met", "missed", "not_judged", or "unknown"; *reason explains the last two. */
static const char *verdict_of(const struct judgement *j, double measured, double reference, const char **reason)
{
	const json_t *e = j->expectation;
	const char *of = json_text_at(e, "of");
	double value = of ? 100 * measured / reference : measured;

	*reason = j->excuse;
	if (j->excuse && json_is_true(json_object_get(e, "hardware")))
		return "not_judged";
	*reason = "the figure is not known";
	if (isnan(measured))
		return "unknown";
	*reason = of && strcmp(of, EXPECT_LINE_RATE) == 0 ? "the line rate is not known"
							  : "the other figure is not known";
	if (of && !(reference > 0))
		return "unknown";
	*reason = NULL;
	return value < json_number_at(e, of ? "min_percent" : "min") ||
			       value > json_number_at(e, of ? "max_percent" : "max")
		       ? "missed"
		       : "met";
}

static void add_row(struct judgement *j, struct place at, double measured, double reference)
{
	const char *reason, *verdict = verdict_of(j, measured, reference, &reason);

	json_array_append_new(j->rows, json_pack("{s:O, s:o, s:o, s:o, s:o, s:s, s:s?}", "expected", j->expectation,
						 "clients", json_whole(at.clients), "message_bytes",
						 json_whole(at.bytes), "measured", json_number(measured), "reference",
						 json_number(reference), "verdict", verdict, "reason", reason));
}

static void judge_steps(struct judgement *j, const char *metric, const char *of)
{
	const json_t *steps = json_object_get(j->entry, "steps"), *step;
	size_t i, k;

	json_array_foreach(steps, i, step) {
		struct place at = place_of(step);

		for (k = 0; !is_at(json_array_get(steps, k), at); k++)
			;
		if (k == i && is_wanted(j->expectation, at))
			add_row(j, at, figure_at(steps, at, metric),
				!of				    ? NAN
				: strcmp(of, EXPECT_LINE_RATE) == 0 ? j->line_bytes_per_s
								    : figure_at(steps_of_entry(j, of), at, metric));
	}
}

static void judge_comparison(struct judgement *j, const char *metric, const char *of)
{
	const char *name = json_text_at(j->expectation, "alternative");
	const json_t *point, *figures;
	size_t i, k;

	json_array_foreach(json_at(j->entry, "comparison.points"), i, point) {
		const json_t *all = json_object_get(point, "figures");
		struct place at = place_of(point);

		json_array_foreach(all, k, figures) {
			if (is_wanted(j->expectation, at) && strcmp(json_text_at(figures, "name"), name) == 0)
				add_row(j, at, json_number_at(figures, metric),
					!of				? NAN
					: strcmp(of, EXPECT_FIRST) == 0 ? json_number_at(json_array_get(all, 0), metric)
									: figure_at(steps_of_entry(j, of), at, metric));
		}
	}
}

json_t *expect_judge(const json_t *expect, const json_t *entry, const json_t *entries, double line_bytes_per_s,
		     const char *excuse)
{
	struct judgement j = { .entry = entry,
			       .entries = entries,
			       .line_bytes_per_s = line_bytes_per_s,
			       .excuse = excuse,
			       .rows = json_array() };
	size_t i;

	json_array_foreach(expect, i, j.expectation) {
		const char *metric = json_text_at(j.expectation, "metric"), *of = json_text_at(j.expectation, "of");
		size_t before = json_array_size(j.rows);

		if (json_object_get(j.expectation, "alternative"))
			judge_comparison(&j, metric, of);
		else
			judge_steps(&j, metric, of);
		if (json_array_size(j.rows) == before)
			add_row(&j, place_of(json_object_get(j.expectation, "at")), NAN, NAN);
	}
	return j.rows;
}

enum run_exit expect_status(const json_t *rows)
{
	enum run_exit status = EXIT_OK;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		if (strcmp(json_text_at(row, "verdict"), "missed") == 0)
			return EXIT_CRITERION;
		if (strcmp(json_text_at(row, "verdict"), "unknown") == 0)
			status = EXIT_INCONCLUSIVE;
	}
	return status;
}
