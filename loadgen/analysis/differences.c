/* SPDX-License-Identifier: BSD-2-Clause */
/* The differences that make two runs incomparable. See baseline.h. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/read.h"

#define MEMORY_SHARE 0.1

static const char *const same_on_each_side[] = {
	"cpu_model", "cores", "cgroup.cpus", "cgroup.memory_bytes", "hypervisor", "accelerator", "rdma_device.driver",
	"rdma_device.is_software", "rdma_device.link", "rdma_device.path_mtu_bytes",
};

static const char *const same[] = {
	"config.workload", "config.message_sizes", "config.inflight", "config.total_inflight", "config.qps",
	"config.coalesce", "config.poll",
	"config.rate_per_s", "config.rate_per_client_per_s", "config.arrival", "config.operation",
	"config.chunk_bytes", "config.stripe_min_bytes", "config.mix", "config.active", "config.verify",
	"config.message_auth",
	"config.threads", "config.churn_per_s", "config.cycles", "config.connect_concurrency",
	"config.connect", "config.connect_rate", "config.phased", "config.tls_resume", "config.reconnect_s",
	"server_config.threads", "server_config.poll",
};

/* Returns 0, or -1 when out of memory. */
static int add_difference(json_t *a, const char *field, json_t *base, json_t *run)
{
	return json_array_append_new(a, json_pack("{s:s, s:O, s:O}", "field", field, "base", base, "run", run));
}

/* Numbers are compared by value: 1 and 1.0 are the same. */
static bool is_same(const json_t *base, const json_t *run)
{
	if (json_is_number(base) && json_is_number(run))
		return json_number_value(base) == json_number_value(run);
	return json_equal(base, run);
}

static int compare_field(json_t *a, const json_t *base, const json_t *run, const char *field)
{
	json_t *x = json_at(base, field), *y = json_at(run, field);

	return !x || !y || is_same(x, y) ? 0 : add_difference(a, field, x, y);
}

/* Memory varies a little even on one machine, because the kernel reserves some: only a large difference counts. */
static int compare_memory(json_t *a, const json_t *base, const json_t *run, const char *field)
{
	double x = read_amount(base, field), y = read_amount(run, field);

	return fabs(x - y) > MEMORY_SHARE * fmin(x, y) ? add_difference(a, field, json_at(base, field),
									json_at(run, field)) : 0;
}

static int compare_environment(json_t *a, const json_t *base, const json_t *run, const char *side)
{
	char field[96];
	int ret = 0;

	for (size_t i = 0; i < sizeof(same_on_each_side) / sizeof(same_on_each_side[0]) && !ret; i++) {
		snprintf(field, sizeof(field), "environment.%s.%s", side, same_on_each_side[i]);
		ret = compare_field(a, base, run, field);
	}
	snprintf(field, sizeof(field), "environment.%s.memory_bytes", side);
	return ret ? ret : compare_memory(a, base, run, field);
}

/* Adds the lengths of two arrays as a difference; NULL has length 0. */
static int add_sizes(json_t *a, const char *field, const json_t *base, const json_t *run)
{
	json_t *x = json_integer((json_int_t)json_array_size(base)),
		*y = json_integer((json_int_t)json_array_size(run));
	int ret = add_difference(a, field, x, y);

	json_decref(x);
	json_decref(y);
	return ret;
}

/* The server's address does not matter; whether both ends shared a machine, and the number of servers, do. */
static int compare_server(json_t *a, const json_t *base, const json_t *run)
{
	json_t *x = json_at(base, "config.server"), *y = json_at(run, "config.server");

	if (x && y && json_is_null(x) != json_is_null(y))
		return add_difference(a, "config.server", x, y);
	x = json_at(base, "servers");
	y = json_at(run, "servers");
	return json_array_size(x) != json_array_size(y) ? add_sizes(a, "servers", x, y) : 0;
}

/* Only steps of workloads that stripe have `rails`. */
static int compare_rails(json_t *a, const json_t *base, const json_t *run)
{
	json_t *x = json_at(read_step(base, 0), "rails.available"), *y = json_at(read_step(run, 0), "rails.available");

	return x && y && !is_same(x, y) ? add_difference(a, "rails", x, y) : 0;
}

json_t *baseline_differences(const json_t *base, const json_t *run)
{
	json_t *a = json_array();
	int ret = !a || compare_environment(a, base, run, "server") || compare_environment(a, base, run, "clients");

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]) && !ret; i++)
		ret = compare_field(a, base, run, same[i]);
	if (!ret && !compare_server(a, base, run) && !compare_rails(a, base, run))
		return a;
	json_decref(a);
	return NULL;
}
