/* SPDX-License-Identifier: BSD-2-Clause */
/* See analysis_run.h. */
#include "tests/unit/helpers/analysis_run.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/helpers/unit.h"

#include "common/base/json_at.h"

static const char head[] =
	"{\"schema_version\": 1, \"steps\": [],"
	" \"config\": {\"workload\": \"echo\", \"server\": null, \"clients\": 100, \"message_bytes\": 64,"
	" \"inflight\": 1, \"message_sizes\": [64], \"poll\": \"event\", \"threads\": 2, \"phased\": false,"
	" \"churn_per_s\": 0, \"tuning\": {\"cq_depth\": 0}},"
	" \"server_config\": {\"threads\": 2, \"max_clients\": 126, \"message_bytes\": 64, \"credits\": 1,"
	" \"receive_buffers\": 222, \"poll\": \"event\"},"
	" \"analysis\": {\"capacity\": {\"slo_capacity\": {\"clients\": null, \"at_least\": false},"
	" \"knee\": {\"clients\": null, \"at_least\": false}}}}";

static const char environment[] =
	"{\"cpu_model\": \"A\", \"cores\": 2, \"memory_bytes\": 4000000000, \"hypervisor\": null,"
	" \"accelerator\": null, \"rlimits\": {\"nofile\": {\"soft\": 1024, \"hard\": 1024},"
	" \"memlock\": {\"soft\": null, \"hard\": null}},"
	" \"sysctls\": {\"net.ipv4.ip_local_port_range\": [32768, 60999]},"
	" \"rdma_device\": {\"name\": \"rxe0\", \"driver\": \"rdma_rxe\", \"link\": \"ethernet\","
	" \"path_mtu_bytes\": 4096, \"is_software\": true, \"limits\": {\"max_qp\": 10000, \"max_cq\": 1000,"
	" \"max_cqe\": 32767, \"max_mr\": 100, \"max_srq_wr\": 1048576}}}";

static json_t *parse(const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	assert_non_null(o);
	return o;
}

static json_t *server_of(int n)
{
	return json_pack("{s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "cpu_user_s", 0.4, "cpu_system_s", 1.2,
			 "window_s", 2.0, "rss_bytes", 20000000 + 40000 * n, "fds", 21, "qps", 200 + n, "cqs", 4,
			 "mrs", 2, "pinned_bytes", 44800, "machine_kernel_bytes", 60000000 + 20000 * n);
}

static json_t *generator_of(int n)
{
	return json_pack("{s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i}", "cpu_user_s", 0.2, "cpu_system_s", 0.6,
			 "window_s", 1.0, "rss_bytes", 10000000 + 30000 * n, "fds", 20, "qps", 100 + n, "cqs", 4,
			 "mrs", 2, "pinned_bytes", 29184);
}

static json_t *intervals_of(double per_s)
{
	json_t *a = json_array();

	for (int i = 0; i < 8; i++)
		json_array_append_new(a, json_pack("{s:f, s:f, s:n}", "t_s", 0.25 * i, "messages_per_s",
						   per_s * (i % 2 ? 1.01 : 0.99), "p99_ns"));
	return a;
}

static json_t *latency_of(int n)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:n}", "count", 1000, "p50", 1000 * n, "p95", 1950 * n, "p99", 1990 * n,
			 "p99_9");
}

void analysis_run_add(json_t *run, int n, double per_s)
{
	json_t *step = json_pack("{s:i, s:i, s:i, s:f, s:f, s:o, s:o, s:{s:o}, s:{s:o, s:o, s:{s:f, s:f, s:f}},"
				 " s:{s:{s:i}}, s:[s]}",
		"target_clients", n, "connected_held", n, "message_bytes", 64, "measured_s", 1.0,
		"throughput_msgs_per_s", per_s, "intervals", intervals_of(per_s), "response_ns", latency_of(n),
		"connect_ns", "total", latency_of(n), "resources", "server", server_of(n), "generator",
		generator_of(n), "machine", "busy_s", 1.9, "softirq_s", 0.2, "window_s", 1.0,
		"server_before", "resources", "machine_kernel_bytes", 60000000, "validity",
		"server_and_generator_share_the_machine");

	assert_non_null(step);
	json_array_append_new(json_object_get(run, "steps"), step);
}

json_t *analysis_run(void)
{
	json_t *run = parse(head);

	json_object_set_new(run, "environment", json_pack("{s:o, s:o}", "server", parse(environment), "clients",
							  parse(environment)));
	analysis_run_add(run, 10, 1000);
	analysis_run_add(run, 50, 3000);
	analysis_run_add(run, 100, 4000);
	return run;
}

json_t *analysis_run_step(const json_t *run, size_t k)
{
	return json_array_get(json_object_get(run, "steps"), k);
}

void analysis_run_set(json_t *o, const char *path, json_t *v)
{
	const char *dot = strrchr(path, '.');
	char parent[128];

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		o = json_at(o, parent);
	}
	assert_int_equal(json_object_set_new(o, dot ? dot + 1 : path, v), 0);
}

json_t *analysis_run_find(const json_t *a, const char *name, const char *text, const char *side)
{
	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *has = json_text_at(json_array_get(a, i), name);
		const char *of = json_text_at(json_array_get(a, i), "side");

		if (has && strcmp(has, text) == 0 && (!side || (of && strcmp(of, side) == 0)))
			return json_array_get(a, i);
	}
	return NULL;
}
