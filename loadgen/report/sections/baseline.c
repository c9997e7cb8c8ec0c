/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on changes against other runs. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

#define MISSING_SHOWN 10

const char *baseline_metric_words(const json_t *row)
{
	static const struct page_words names[] = {
		{ "throughput_msgs_per_s", "messages a second" },
		{ "throughput_bytes_per_s", "bandwidth" },
		{ "generator_cpu_ns_per_message", "generator CPU per message" },
		{ "response_p50_ns", "round trip p50" },
		{ "response_p95_ns", "round trip p95" },
		{ "response_p99_ns", "round trip p99" },
		{ "response_p99_9_ns", "round trip p99.9" },
		{ "connects_per_s", "connections a second" },
		{ "server_cpu_ns_per_connection", "server CPU per connection" },
		{ "generator_cpu_ns_per_connection", "generator CPU per connection" },
		{ "connect_p50_ns", "connecting p50" },
		{ "connect_p99_ns", "connecting p99" },
		{ "held_ratio", "clients held" },
		{ "server_cpu_ns_per_message", "server CPU per message" },
		{ "server_rss_bytes", "server resident memory" },
	};

	return page_words(names, sizeof(names) / sizeof(names[0]), json_text_at(row, "metric"), "unknown");
}

static const char *in_unit(struct page *p, double v, const char *unit)
{
	if (unit && strcmp(unit, "bytes_per_s") == 0)
		return isfinite(v) ? page_text(p, "%.5g GB/s", v / 1e9) : "unknown";
	/* The figure's name contains the unit. */
	return page_in_unit(p, v, unit && strcmp(unit, "per_s") == 0 ? NULL : unit);
}

const char *baseline_figure(struct page *p, const json_t *estimate, const char *unit)
{
	double low = json_number_at(estimate, "low"), high = json_number_at(estimate, "high");
	const char *value = in_unit(p, json_number_at(estimate, "value"), unit);

	if (!isfinite(low) || !isfinite(high))
		return value;
	return page_text(p, "%s (%s to %s)", value, in_unit(p, low, unit), in_unit(p, high, unit));
}

static const char *verdict_of(const json_t *row)
{
	return page_text_at(row, "verdict", "unknown");
}

enum doc_tone baseline_tone(const json_t *row)
{
	if (strcmp(verdict_of(row), "regression") == 0)
		return DOC_BAD;
	return strcmp(verdict_of(row), "improvement") == 0 ? DOC_GOOD : DOC_PLAIN;
}

static void add_row(struct page *p, struct doc_table *t, const json_t *row)
{
	const char *unit = json_text_at(row, "unit"), *verdict = verdict_of(row);

	page_row(p, t, baseline_tone(row), json_number_at(row, "clients"), json_number_at(row, "message_bytes"));
	page_cells(t, "sss1s", baseline_metric_words(row), baseline_figure(p, json_at(row, "base"), unit),
		   baseline_figure(p, json_at(row, "run"), unit), 100 * json_number_at(row, "change_ratio"),
		   strcmp(verdict, "unknown") == 0 ? "no interval: not known" : verdict);
}

static size_t count_verdicts(const json_t *rows, const char *verdict)
{
	const json_t *row;
	size_t i, n = 0;

	json_array_foreach(rows, i, row) {
		n += strcmp(verdict_of(row), verdict) == 0;
	}
	return n;
}

static void say_missing(struct page *p, const json_t *missing)
{
	size_t n = json_array_size(missing);

	for (size_t i = 0; i < n && i < MISSING_SHOWN; i++) {
		const json_t *m = json_array_get(missing, i);

		doc_item(p->doc, "baseline-missing", "%s%s: not in %s", page_clients(p, json_number_at(m, "clients")),
			 page_with_size(p, json_number_at(m, "message_bytes")),
			 strcmp(page_text_at(m, "in", ""), "base") == 0 ? "the baseline" : "this run");
	}
	if (n > MISSING_SHOWN)
		doc_item(p->doc, NULL, "and %zu more", n - MISSING_SHOWN);
}

static void say_differences(struct page *p, const struct page_baseline *b)
{
	const json_t *d;
	size_t i;

	if (json_array_size(b->differences) == 0)
		return;
	doc_note(p->doc, DOC_WARN, "baseline-unlike", "These differences between the two runs may be the cause of a "
		 "change (--any-environment was given):");
	json_array_foreach(b->differences, i, d) {
		doc_item(p->doc, "baseline-difference", "%s: %s in the baseline, %s here",
			 page_json(p, json_at(d, "field")), page_json(p, json_at(d, "base")),
			 page_json(p, json_at(d, "run")));
	}
}

/* Warns of settings that did not take effect in one of the runs, because they may be the cause of a change. */
static void say_untaken(struct page *p, const struct page_baseline *b)
{
	const json_t *there = json_at(b->source->run, "analysis.not_taken"),
		*here = json_at(p->run, "analysis.not_taken");

	if (json_array_size(there) + json_array_size(here) == 0)
		return;
	doc_note(p->doc, DOC_WARN, "baseline-not-taken",
		 "Not all settings took effect (%zu in the baseline, %zu here):",
		 json_array_size(there), json_array_size(here));
	effective_say_untaken(p, b->source->run, "baseline-not-taken-there");
	effective_say_untaken(p, p->run, "baseline-not-taken-here");
}

static void table_rows(struct page *p, const struct page_baseline *b)
{
	static const char *const order[] = { "regression", "improvement", "same", "unknown" };
	struct doc_table *t = page_table(p, page_text(p, "baseline_%s", b->label), "Both runs with their 95 % "
					 "intervals. If the intervals overlap, the figures are the same.", PAGE_POINT
					 ";figure;baseline#;this run#;change#%;verdict");
	const json_t *row;
	size_t i;

	/* Figures that changed come first. */
	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		json_array_foreach(json_at(b->comparison, "rows"), i, row) {
			if (strcmp(verdict_of(row), order[k]) == 0)
				add_row(p, t, row);
		}
}

static void show_baseline(struct page *p, const struct page_baseline *b)
{
	const json_t *rows = json_at(b->comparison, "rows");
	size_t worse = count_verdicts(rows, "regression"), better = count_verdicts(rows, "improvement");

	doc_heading(p->doc, page_text(p, "Against %s", b->label));
	doc_text(p->doc, page_text(p, "baseline-%s", b->label), "The baseline is the run %s.", b->source->id);
	say_differences(p, b);
	say_untaken(p, b);
	if (json_array_size(rows) == 0) {
		doc_text(p->doc, "baseline-nothing-common", "No number of clients is in both runs, so nothing can be "
			 "compared.");
	} else {
		if (json_is_true(json_at(b->comparison, "regression")))
			doc_note(p->doc, DOC_BAD, "baseline-worse", "Worse: %zu of %zu figures, by more than %s and "
				 "beyond the variation within both runs. %zu are better.", worse, json_array_size(rows),
				 page_percent(p, p->min_effect), better);
		else
			doc_note(p->doc, better ? DOC_GOOD : DOC_PLAIN, "baseline-no-worse", "No regression: none of "
				 "%zu figures is worse by more than %s and beyond the variation within both runs. %zu "
				 "are better.", json_array_size(rows), page_percent(p, p->min_effect), better);
		table_rows(p, b);
	}
	say_missing(p, json_at(b->comparison, "missing"));
}

void section_baselines(struct page *p)
{
	doc_section(p->doc, "baseline", "Against a baseline");
	if (p->n_baselines == 0) {
		doc_text(p->doc, "baseline-none", "No baseline was given. To compare this run with an earlier one:");
		doc_code(p->doc, page_text(p, "performance_test report %s --baseline DIR",
					   page_quoted(p, p->source->dir)));
		return;
	}
	for (size_t i = 0; i < p->n_baselines; i++)
		show_baseline(p, &p->baselines[i]);
}
