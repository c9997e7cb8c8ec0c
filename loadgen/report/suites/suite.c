/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of a report on a suite. See suite.h. */
#include "loadgen/report/suites/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/suites/comparison.h"
#include "loadgen/report/suites/expectations.h"
#include "loadgen/report/suites/figures.h"

#define CANDIDATES_MAX 16u
#define SUMMARY "summary"

/* Charts of an entry: time and bandwidth of its operations, or if it has none, the time to connect. */
static const struct {
	const char *id, *title, *y_label, *description;
	struct page_column curves[4];
} charts[] = {
	{ "times", "Time of an operation", "time of an operation, us",
	  "Percentiles of the time of an operation; the table has the numbers.", {
		{ "p50", "response_p50_ns", 1e-3, 0 }, { "p99", "response_p99_ns", 1e-3, 0 },
		{ "p99.9", "response_p99_9_ns", 1e-3, 0 } } },
	{ "bandwidth", "Bandwidth", "bandwidth, GB/s", "Bytes a second; the table has the numbers.", {
		{ "bandwidth", "throughput_bytes_per_s", 1e-9, 0 } } },
	{ "times", "Time to connect", "time to connect, ms",
	  "Percentiles of the time to connect; the table has the numbers.", {
		{ "p50", "connect_p50_ns", 1e-6, 0 }, { "p99", "connect_p99_ns", 1e-6, 0 } } },
};

/* Draws the charts against the sizes, or if there is only one size, against the clients. */
static void draw_steps(struct page *p, const char *id, const json_t *steps)
{
	bool by_size = figures_count_distinct(steps, "message_bytes") > 1;
	bool answers = figures_are_known(steps, "response_p50_ns");

	if (!by_size && figures_count_distinct(steps, "clients") < 2)
		return;
	for (size_t i = answers ? 0 : 2; i < (answers ? 2 : 3); i++) {
		struct chart c = { .x_label = by_size ? "size, bytes" : "clients", .x_log = true, .y_log = true,
				   .y_label = charts[i].y_label };

		for (const struct page_column *curve = charts[i].curves; curve->title; curve++)
			figures_curve(p, &c, steps, by_size ? "message_bytes" : "clients", curve);
		if (c.n_series)
			page_chart(p, page_text(p, "%s-%s", id, charts[i].id), charts[i].title, &c,
				   charts[i].description);
	}
}

static const char *result_of(struct page *p, const json_t *entry)
{
	double status = json_number_at(entry, "exit_status");
	const char *what = page_text_at(entry, "status", "unknown");

	if (strcmp(what, "ran") != 0)
		return what;
	if (status == 0 || status == 1 || status == 4)
		return status == 0 ? "all criteria met" : status == 1 ? "a criterion failed" : "inconclusive";
	return page_text(p, "exit status %s", page_count(p, status));
}

static enum doc_tone tone_of_entry(const json_t *entry)
{
	double status = json_number_at(entry, "exit_status");

	return status == 0 ? DOC_GOOD : status == 4 || status == 1 ? DOC_WARN : DOC_BAD;
}

/* The step of an entry whose figure is the greatest; NULL if none has it. */
static const json_t *greatest(const json_t *steps, const char *name)
{
	const json_t *best = NULL, *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		if (isfinite(json_number_at(step, name)) &&
		    (!best || json_number_at(step, name) > json_number_at(best, name)))
			best = step;
	}
	return best;
}

static const char *time_at(struct page *p, const json_t *step, const char *name)
{
	return page_ns(p, json_number_at(step, name));
}

/* The smallest size with at least nine tenths of the most bandwidth. */
static double size_of_most(const json_t *steps, double most)
{
	const json_t *step;
	double size = NAN;
	size_t i;

	json_array_foreach(steps, i, step) {
		if (json_number_at(step, "throughput_bytes_per_s") >= 0.9 * most)
			size = fmin(size, json_number_at(step, "message_bytes"));
	}
	return size;
}

static void answer_operations(struct page *p, const json_t *steps)
{
	const json_t *first = json_array_get(steps, 0), *fast = greatest(steps, "throughput_bytes_per_s");
	double most = json_number_at(fast, "throughput_bytes_per_s");

	doc_answer(p->doc, DOC_PLAIN, NULL,
		   page_text(p, "p50 of operations of %s, %s", page_bytes(p, json_number_at(first, "message_bytes")),
			     page_clients(p, json_number_at(first, "clients"))), time_at(p, first, "response_p50_ns"),
		   page_text(p, "p99 %s, p99.9 %s.", time_at(p, first, "response_p99_ns"),
			     time_at(p, first, "response_p99_9_ns")));
	if (figures_count_distinct(steps, "message_bytes") > 1 && fast)
		doc_answer(p->doc, DOC_PLAIN, NULL, "The most bandwidth", page_text(p, "%.4g GB/s", most / 1e9),
			   page_text(p, "with operations of %s; nine tenths of it from %s on.",
				     page_bytes(p, json_number_at(fast, "message_bytes")),
				     page_bytes(p, size_of_most(steps, most))));
}

static void answer_connecting(struct page *p, const json_t *step)
{
	doc_answer(p->doc, DOC_PLAIN, NULL, page_text(p, "Connecting, %s, p50",
						      page_clients(p, json_number_at(step, "clients"))),
		   time_at(p, step, "connect_p50_ns"), page_text(p, "p99 %s.", time_at(p, step, "connect_p99_ns")));
}

static void answer_resumed(struct page *p, const json_t *step)
{
	doc_answer(p->doc, DOC_PLAIN, NULL, "Connecting with a resumed session, p50",
		   time_at(p, step, "connect_resumed_p50_ns"),
		   page_text(p, "%s.", page_clients(p, json_number_at(step, "clients"))));
}

static void answer_churn(struct page *p, const json_t *step)
{
	doc_answer(p->doc, DOC_PLAIN, NULL, "Away, p50", time_at(p, step, "churn_away_p50_ns"),
		   page_text(p, "%s a second came back.", page_count(p, json_number_at(step, "churn_cycles_per_s"))));
}

/* Adds the entry's question and its main figures. */
static void answer(struct page *p, const json_t *entry)
{
	const json_t *steps = json_object_get(entry, "steps"), *comparison = json_object_get(entry, "comparison");
	const char *question = page_text_at(entry, "question", "");

	if (*question)
		doc_text(p->doc, NULL, "%s", question);
	if (comparison)
		comparison_answer(p, comparison);
	if (greatest(steps, "churn_away_p50_ns"))
		answer_churn(p, greatest(steps, "churn_away_p50_ns"));
	if (figures_are_known(steps, "response_p50_ns"))
		answer_operations(p, steps);
	else if (greatest(steps, "connect_p50_ns"))
		answer_connecting(p, greatest(steps, "connect_p50_ns"));
	if (greatest(steps, "connect_resumed_p50_ns"))
		answer_resumed(p, greatest(steps, "connect_resumed_p50_ns"));
}

/* Writes an option; a list becomes one value with commas. */
static void add_word(struct page *p, FILE *out, const char *name, const json_t *v)
{
	const json_t *item;
	size_t i;

	fprintf(out, " --%s", name);
	json_array_foreach(v, i, item) {
		fprintf(out, "%s%s", i ? "," : " ", page_quoted(p, page_json(p, item)));
	}
	if (!json_is_array(v) && !json_is_true(v))
		fprintf(out, " %s", page_quoted(p, page_json(p, v)));
}

static void write_command(struct page *p, const json_t *options, FILE *out)
{
	const char *name;
	json_t *v, *item;
	size_t i;

	fputs("performance_test", out);
	json_object_foreach((json_t *)options, name, v) {
		if (json_is_array(v) && strncmp(name, "compare", 7) == 0) {
			json_array_foreach(v, i, item) {
				add_word(p, out, name, item);
			}
		} else if (!json_is_false(v)) {
			add_word(p, out, name, v);
		}
	}
}

static void show_command(struct page *p, const json_t *options)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (memory)
		write_command(p, options, memory);
	if (memory && fclose(memory) == 0)
		doc_code(p->doc, text);
	else
		p->failed = true;
	free(text);
}

static void say_server(struct page *p, const json_t *entry)
{
	const char *why = json_text_at(entry, "server_reason");
	double number = json_number_at(entry, "server");

	if (isfinite(number) && why)
		doc_text(p->doc, NULL, "Ran on server %s: %s.", page_count(p, number), why);
	else if (isfinite(number))
		doc_text(p->doc, NULL, "Ran on server %s.", page_count(p, number));
	else if (why)
		doc_text(p->doc, NULL, "Server: %s.", why);
}

/* Lists the criteria that did not pass; each line begins with `whose`. */
static void say_verdict(struct page *p, const json_t *entry, const char *whose)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(entry, "verdict"), i, v) {
		if (i < CANDIDATES_MAX)
			doc_item(p->doc, NULL, "%s%s, %s: %s, %s (required: %s)", whose,
				 page_text_at(v, "result", "unknown"),
				 page_clients(p, json_number_at(v, "clients")), page_text_at(v, "criterion", "unknown"),
				 page_text_at(v, "measured", "unknown"), page_text_at(v, "required", "unknown"));
	}
}

/* True if the name cannot lead out of the suite's folder. */
static bool is_plain(const char *folder)
{
	return folder && *folder && *folder != '.' && !strchr(folder, '/');
}

static void add_links(struct page *p, const json_t *entry, const json_t *next)
{
	const char *folder = json_text_at(entry, "folder"), *id = json_text_at(next, "id");

	if (is_plain(folder))
		doc_file(p->doc, page_text(p, "%s/report.html", folder), "the full report of this run");
	if (id)
		doc_link(p->doc, id, page_text(p, "Next: %s", page_text_at(next, "title", id)));
	doc_link(p->doc, SUMMARY, "Summary");
}

void section_suite_entry(struct page *p, const json_t *entry, const json_t *next)
{
	const char *id = page_text_at(entry, "id", "entry"), *note = json_text_at(entry, "note");
	const char *detail = page_text_at(entry, "stop_detail", "");
	const json_t *steps = json_object_get(entry, "steps"), *comparison = json_object_get(entry, "comparison");

	doc_section(p->doc, id, page_text_at(entry, "title", id));
	answer(p, entry);
	doc_badge(p->doc, tone_of_entry(entry), NULL, result_of(p, entry), "");
	if (note)
		doc_note(p->doc, DOC_WARN, NULL, "%s", note);
	if (*detail)
		doc_note(p->doc, DOC_WARN, NULL, "Stopped: %s", detail);
	say_verdict(p, entry, "");
	expectations_of_entry(p, id, entry);
	if (comparison) {
		comparison_show(p, id, comparison);
	} else if (json_array_size(steps)) {
		draw_steps(p, id, steps);
		figures_table(p, page_text(p, "%s_steps", id), "What was measured.", steps, FIGURES_STEPS_MAX);
	}
	say_server(p, entry);
	if (json_object_size(json_object_get(entry, "options")))
		show_command(p, json_object_get(entry, "options"));
	add_links(p, entry, next);
}

static void say_environment(struct page *p, const json_t *suite)
{
	const json_t *entry, *environment = NULL;
	size_t i;

	json_array_foreach(json_object_get(suite, "entries"), i, entry) {
		if (!environment)
			environment = json_object_get(entry, "environment");
	}
	if (json_is_true(json_at(environment, "is_emulated_cpu")))
		doc_note(p->doc, DOC_WARN, "environment",
			 "Measured on an emulated CPU and software RDMA: not hardware figures.");
	else if (json_is_true(json_at(environment, "rdma_device.is_software")))
		doc_note(p->doc, DOC_WARN, "environment", "Measured on software RDMA: not hardware figures.");
}

static void show_runs(struct page *p, const json_t *entries)
{
	static const struct page_column summary[] = {
		{ "clients#", "clients", 1, 0 }, { "size#bytes", "message_bytes", 1, 0 },
		{ "connecting p50#ms", "connect_p50_ns", 1e-6, 2 }, { "messages#1/s", "throughput_msgs_per_s", 1, 0 },
		{ "bandwidth#GB/s", "throughput_bytes_per_s", 1e-9, 5 }, { "p50#us", "response_p50_ns", 1e-3, 1 },
		{ "p99#us", "response_p99_ns", 1e-3, 1 }, { "p99.9#us", "response_p99_9_ns", 1e-3, 1 },
		{ "jitter#", "jitter_ratio", 1, 2 }, { "server CPU#us/op", "server_cpu_ns_per_message", 1e-3, 1 }, { 0 }
	};
	struct doc_table *t = NULL;
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		const json_t *steps = json_object_get(entry, "steps");
		const char *id = page_text_at(entry, "id", "entry");
		size_t n = json_array_size(steps), k = 0;

		if (json_object_get(entry, "comparison"))
			continue;
		if (!t) {
			t = page_table(p, "summary", "Runs", "entry");
			page_columns(p, t, summary);
			doc_column(t, "result", NULL, false);
		}
		do {
			if (!page_takes_row(p))
				break;
			doc_row(t, tone_of_entry(entry));
			doc_cell_link(t, id, id);
			page_cells_of(p, t, summary, json_array_get(steps, k));
			page_cells(t, "s", result_of(p, entry));
		} while (++k < n && k < FIGURES_STEPS_MAX);
	}
}

static void show_comparisons(struct page *p, const json_t *entries)
{
	struct doc_table *t = NULL;
	const json_t *entry;
	size_t i, better, worse, all;

	json_array_foreach(entries, i, entry) {
		const json_t *comparison = json_object_get(entry, "comparison");

		if (!comparison)
			continue;
		if (!t)
			t = page_table(p, "comparisons", "Comparisons",
				       "entry;compared;baseline;rounds#;figures#;better#;worse#");
		comparison_verdicts(comparison, &better, &worse, &all);
		doc_row(t, tone_of_entry(entry));
		doc_cell_link(t, page_text_at(entry, "id", "entry"), page_text_at(entry, "id", "entry"));
		page_cells(t, "ss0000", page_text_at(comparison, "compared", "unknown"),
			   page_text_at(comparison, "baseline", "unknown"), json_number_at(comparison, "rounds"),
			   (double)all, (double)better, (double)worse);
	}
}

/* Lists the reasons why entries did not simply succeed. */
static void say_ends(struct page *p, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		const char *id = page_text_at(entry, "id", "entry"), *note = json_text_at(entry, "note");
		const char *detail = page_text_at(entry, "stop_detail", "");

		if (strcmp(page_text_at(entry, "status", ""), "failed") == 0)
			doc_item(p->doc, NULL, "%s: did not run; stderr says why", id);
		if (note)
			doc_item(p->doc, NULL, "%s: %s", id, note);
		if (*detail)
			doc_item(p->doc, NULL, "%s: stopped: %s: %s", id, page_text_at(entry, "stop_reason", "unknown"),
				 detail);
		say_verdict(p, entry, page_text(p, "%s: ", id));
	}
}

void section_suite_summary(struct page *p, const json_t *suite)
{
	const json_t *entries = json_object_get(suite, "entries"), *entry;
	size_t i, ran = 0, failed = 0, skipped = 0;

	json_array_foreach(entries, i, entry) {
		const char *status = page_text_at(entry, "status", "unknown");

		ran += strcmp(status, "ran") == 0;
		skipped += strcmp(status, "skipped") == 0;
		failed += strcmp(status, "failed") == 0;
	}
	doc_section(p->doc, SUMMARY, "Summary");
	doc_badge(p->doc, DOC_PLAIN, NULL, page_text(p, "%zu ran", ran), "");
	if (failed)
		doc_badge(p->doc, DOC_BAD, NULL, page_text(p, "%zu did not run", failed), "");
	if (skipped)
		doc_badge(p->doc, DOC_WARN, NULL, page_text(p, "%zu skipped", skipped), "");
	say_environment(p, suite);
	show_runs(p, entries);
	show_comparisons(p, entries);
	expectations_summary(p, entries);
	say_ends(p, entries);
}

void section_suite_brief(struct page *p, const json_t *suite)
{
	const json_t *entries = json_object_get(suite, "entries");
	const json_t *comparison = json_object_get(json_array_get(entries, 0), "comparison");

	if (json_array_size(entries) == 1 && comparison) {
		comparison_brief(p, comparison);
		expectations_summary(p, entries);
	} else {
		section_suite_summary(p, suite);
	}
}
