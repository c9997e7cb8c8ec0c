/* SPDX-License-Identifier: BSD-2-Clause */
/* What a suite came to. See suite_results.h. */
#include "loadgen/suite_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "loadgen/analysis/read.h"

#define VERDICT_MAX 20u

/* Figures of a step in suite.json, and where run.json has them. */
static const struct { const char *name, *path; } figures[] = {
	{ "clients", "target_clients" }, { "message_bytes", "message_bytes" }, { "repetition", "repetition" },
	{ "connected_held", "connected_held" }, { "connect_p50_ns", "connect_ns.total.p50" },
	{ "connect_p99_ns", "connect_ns.total.p99" }, { "connect_full_p50_ns", "connect_full_ns.total.p50" },
	{ "connect_resumed_p50_ns", "connect_resumed_ns.total.p50" }, { "messages_per_s", "throughput_msgs_per_s" },
	{ "bytes_per_s", "throughput_bytes_per_s" }, { "response_mean_ns", "response_ns.mean" },
	{ "response_p50_ns", "response_ns.p50" }, { "response_p95_ns", "response_ns.p95" },
	{ "one_way_p50_ns", "one_way_ns.p50" }, { "response_p99_ns", "response_ns.p99" }, { "response_p99_9_ns", "response_ns.p99_9" },
	{ "jitter_ratio", "response_ns.jitter" }, { "to_server_bytes_per_s", "streams.to_server.bytes_per_s" },
	{ "from_server_bytes_per_s", "streams.from_server.bytes_per_s" }, { "churn_cycles_per_s", "churn.cycles_per_s" },
	{ "churn_away_p50_ns", "churn.away_ns.p50" },
};

static json_t *step_json(const json_t *step)
{
	double per_s = read_amount(step, "throughput_msgs_per_s");
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(o, figures[i].name, json_number(read_amount(step, figures[i].path)));
	json_object_set_new(o, "server_cpu_ns_per_operation", json_number(read_cores(step, "server") * 1e9 / per_s));
	json_object_set_new(o, "generator_cpu_ns_per_operation", json_number(read_cores(step, "generator") * 1e9 / per_s));
	json_object_set(o, "validity", json_object_get(step, "validity"));
	return o;
}

static json_t *text_or_null(const json_t *o, const char *path)
{
	const char *text = json_text_at(o, path);

	return text ? json_string(text) : json_null();
}

void suite_results_of_run(json_t *o, const json_t *run)
{
	json_t *steps = json_array(), *verdict = json_array(), *v;
	size_t i;

	if (run) {
		json_array_foreach(json_object_get(run, "steps"), i, v) {
			json_array_append_new(steps, step_json(v));
		}
		json_array_foreach(json_object_get(run, "verdict"), i, v) {
			const char *result = json_text_at(v, "result");

			if (result && strcmp(result, "pass") != 0 && json_array_size(verdict) < VERDICT_MAX)
				json_array_append(verdict, v);
		}
		json_object_set_new(o, "folder", text_or_null(run, "run.id"));
		json_object_set_new(o, "stop_reason", text_or_null(run, "run.stop_reason"));
		json_object_set_new(o, "stop_detail", text_or_null(run, "run.stop_detail"));
		json_object_set(o, "environment", json_at(run, "environment.clients"));
		json_object_set(o, "steps", steps);
		json_object_set(o, "verdict", verdict);
	}
	json_decref(steps);
	json_decref(verdict);
}

void suite_results_of_comparison(json_t *o, json_t *comparison)
{
	if (!comparison)
		return;
	json_object_set_new(o, "folder", text_or_null(comparison, "id"));
	json_object_set(o, "comparison", comparison);
}

/* --- the summary --- */

static const struct { const char *title, *name; int width, decimals; double unit; } columns[] = {
	{ "clients", "clients", 7, 0, 1 }, { "bytes", "message_bytes", 11, 0, 1 },
	{ "conn p50 ms", "connect_p50_ns", 11, 2, 1e6 }, { "p99 ms", "connect_p99_ns", 9, 2, 1e6 },
	{ "messages/s", "messages_per_s", 10, 0, 1 }, { "GB/s", "bytes_per_s", 9, 5, 1e9 },
	{ "mean us", "response_mean_ns", 9, 0, 1e3 }, { "p50 us", "response_p50_ns", 9, 0, 1e3 },
	{ "p99 us", "response_p99_ns", 9, 0, 1e3 }, { "p99.9 us", "response_p99_9_ns", 9, 0, 1e3 },
	{ "jitter", "jitter_ratio", 6, 1, 1 }, { "CPU us/op", "server_cpu_ns_per_operation", 9, 1, 1e3 },
};

#define COLUMNS_N (sizeof(columns) / sizeof(columns[0]))
#define ID_WIDTH 24

static void print_step(const json_t *entry, const json_t *step, FILE *out)
{
	fprintf(out, "%-*s", ID_WIDTH, json_text_at(entry, "id"));
	for (size_t i = 0; i < COLUMNS_N; i++) {
		double v = json_number_at(step, columns[i].name);

		if (isfinite(v))
			fprintf(out, " %*.*f", columns[i].width, columns[i].decimals, v / columns[i].unit);
		else
			fprintf(out, " %*s", columns[i].width, "-");
	}
	fprintf(out, "\n");
}

static void print_change(const json_t *row, const char *title, FILE *out)
{
	double ratio = json_number_at(row, "round_ratio.value");

	if (isfinite(ratio))
		fprintf(out, ", %s %+.1f %% (%s)", title, 100 * (ratio - 1), json_text_at(row, "verdict"));
}

static void print_candidate(const json_t *entry, const json_t *point, const json_t *candidate, FILE *out)
{
	static const struct { const char *metric, *title; } shown[] = {
		{ "throughput_msgs_per_s", "messages/s" }, { "response_p50_ns", "p50" }, { "response_p99_ns", "p99" },
		{ "server_cpu_ns_per_message", "CPU an operation" },
	};
	const json_t *row;
	size_t i;

	fprintf(out, "%-*s %7.0f %11.0f %s against %s", ID_WIDTH, json_text_at(entry, "id"), json_number_at(point, "clients"),
		json_number_at(point, "message_bytes"), json_text_at(candidate, "name"),
		json_text_at(entry, "comparison.baseline"));
	for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
		json_array_foreach(json_object_get(candidate, "rows"), i, row) {
			if (strcmp(json_text_at(row, "metric"), shown[k].metric) == 0)
				print_change(row, shown[k].title, out);
		}
	fprintf(out, "\n");
}

static void print_comparison(const json_t *entry, FILE *out)
{
	const json_t *point, *candidate;
	size_t i, k;

	json_array_foreach(json_at(entry, "comparison.points"), i, point) {
		json_array_foreach(json_object_get(point, "candidates"), k, candidate) {
			print_candidate(entry, point, candidate, out);
		}
	}
}

static void print_end(const json_t *entry, FILE *out)
{
	const char *note = json_text_at(entry, "note"), *detail = json_text_at(entry, "stop_detail");
	const json_t *v;
	size_t i;

	if (strcmp(json_text_at(entry, "status"), "failed") == 0)
		fprintf(out, "%-*s did not run; the line on stderr says why\n", ID_WIDTH, json_text_at(entry, "id"));
	if (note)
		fprintf(out, "%-*s %s\n", ID_WIDTH, json_text_at(entry, "id"), note);
	if (detail && *detail)
		fprintf(out, "%-*s stopped: %s: %s\n", ID_WIDTH, json_text_at(entry, "id"), json_text_at(entry, "stop_reason"),
			detail);
	json_array_foreach(json_object_get(entry, "verdict"), i, v) {
		fprintf(out, "%-*s %s: %s %s (required: %s)\n", ID_WIDTH, json_text_at(entry, "id"), json_text_at(v, "result"),
			json_text_at(v, "criterion"), json_text_at(v, "measured"), json_text_at(v, "required"));
	}
}

static void write_summary(const json_t *suite, FILE *out)
{
	const json_t *entry, *step;
	size_t i, k;

	fprintf(out, "%-*s", ID_WIDTH, "entry");
	for (i = 0; i < COLUMNS_N; i++)
		fprintf(out, " %*s", columns[i].width, columns[i].title);
	fprintf(out, "\n");
	json_array_foreach(json_object_get(suite, "entries"), i, entry) {
		json_array_foreach(json_object_get(entry, "steps"), k, step) {
			print_step(entry, step, out);
		}
		print_comparison(entry, out);
	}
	fprintf(out, "\n");
	json_array_foreach(json_object_get(suite, "entries"), i, entry) {
		print_end(entry, out);
	}
}

void suite_results_print(const json_t *suite, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return;
	write_summary(suite, memory);
	if (fclose(memory) == 0)
		utf8_print(text, out);
	free(text);
}
