/* SPDX-License-Identifier: BSD-2-Clause */
/* What a suite came to. See suite_results.h. */
#include "loadgen/suites/suite_results.h"

#include <string.h>

#include "common/base/json_at.h"
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
