/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a suite. See suite_results.h. */
#include "loadgen/suites/suite_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/wire/fail.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/stats.h"

#define VERDICT_MAX 20u
/* More than the rounds of a comparison. */
#define STEPS_MAX 128u

/* Figures of steps, and their paths in run.json. With `side`, the figure is that side's CPU time for each message; with
 * "wall", how many there are for each second of connecting; with "silent", null where messages were measured. */
static const struct figure {
	const char *name, *path, *side;
} figures[] = {
	{ "clients", "target_clients", NULL }, { "message_bytes", "message_bytes", NULL },
	{ "connected_held", "connected_held", NULL },
	{ "connects_per_s", "connected_held", "wall" },
	{ "connect_p50_ns", "connect_ns.total.p50", NULL }, { "connect_p99_ns", "connect_ns.total.p99", NULL },
	{ "connect_full_p50_ns", "connect_full_ns.total.p50", NULL },
	{ "connect_resumed_p50_ns", "connect_resumed_ns.total.p50", NULL },
	{ "server_cpu_ns_per_connection", "connect_cpu_ns_per_client.server", "silent" },
	{ "generator_cpu_ns_per_connection", "connect_cpu_ns_per_client.generator", "silent" },
	{ "throughput_msgs_per_s", "throughput_msgs_per_s", NULL },
	{ "throughput_bytes_per_s", "throughput_bytes_per_s", NULL },
	{ "response_mean_ns", "response_ns.mean", NULL }, { "response_p50_ns", "response_ns.p50", NULL },
	{ "response_p95_ns", "response_ns.p95", NULL }, { "one_way_p50_ns", "one_way_ns.p50", NULL },
	{ "response_p99_ns", "response_ns.p99", NULL }, { "response_p99_9_ns", "response_ns.p99_9", NULL },
	{ "jitter_ratio", "response_ns.jitter", NULL },
	{ "to_server_bytes_per_s", "streams.to_server.bytes_per_s", NULL },
	{ "from_server_bytes_per_s", "streams.from_server.bytes_per_s", NULL },
	{ "churn_cycles_per_s", "churn.cycles_per_s", NULL }, { "churn_away_p50_ns", "churn.away_ns.p50", NULL },
	{ "server_cpu_ns_per_message", "throughput_msgs_per_s", "server" },
	{ "generator_cpu_ns_per_message", "throughput_msgs_per_s", "generator" },
	{ "server_rss_bytes_per_client", "memory.server_rss_bytes_per_client", NULL },
	{ "machine_kernel_bytes_per_client", "memory.machine_kernel_bytes_per_client", NULL },
};

static double figure_of(const json_t *step, const char *path, const char *side)
{
	double v = read_amount(step, path);

	if (side && strcmp(side, "wall") == 0)
		return v / read_amount(step, "connect_wall_s");
	if (side && strcmp(side, "silent") == 0)
		return isfinite(read_amount(step, "throughput_msgs_per_s")) ? NAN : v;
	return side ? read_cores(step, side) * 1e9 / v : v;
}

static json_t *median_of(const json_t *steps, const char *path, const char *side)
{
	double v[STEPS_MAX];
	const json_t *step;
	size_t i, n = 0;

	json_array_foreach(steps, i, step) {
		double x = figure_of(step, path, side);

		if (isfinite(x) && n < STEPS_MAX)
			v[n++] = x;
	}
	return json_figure(n ? stats_median(v, n) : NAN);
}

static json_t *stages_of(const json_t *steps)
{
	json_t *o = json_object();
	char path[64];

	for (int s = 0; s < STAGE_TIMED; s++) {
		snprintf(path, sizeof(path), "connect_ns.%s.p50", stage_names[s]);
		json_object_set_new(o, stage_names[s], median_of(steps, path, NULL));
	}
	return o;
}

bool suite_results_has_figure(const char *name)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (strcmp(figures[i].name, name) == 0)
			return true;
	return false;
}

json_t *suite_results_figures(const json_t *steps)
{
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(o, figures[i].name, median_of(steps, figures[i].path, figures[i].side));
	json_object_set_new(o, "connect_stages", stages_of(steps));
	return o;
}

static json_t *step_json(json_t *step)
{
	json_t *alone = json_pack("[O]", step), *o = suite_results_figures(alone);

	json_object_set(o, "repetition", json_object_get(step, "repetition"));
	json_object_set(o, "validity", json_object_get(step, "validity"));
	json_decref(alone);
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
