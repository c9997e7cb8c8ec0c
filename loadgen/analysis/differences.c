/* What keeps two runs from being compared. See baseline.h. */
#include <math.h>
#include <stdbool.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/read.h"

#define MEMORY_SHARE 0.1

static const char *const same[] = {
	"environment.server.cpu_model", "environment.server.cores", "environment.server.hypervisor",
	"environment.server.accelerator", "environment.server.rdma_device.driver",
	"environment.server.rdma_device.is_software", "environment.server.rdma_device.link",
	"environment.server.rdma_device.path_mtu_bytes",
	"environment.clients.cpu_model", "environment.clients.cores", "environment.clients.hypervisor",
	"environment.clients.accelerator", "environment.clients.rdma_device.driver",
	"environment.clients.rdma_device.is_software", "environment.clients.rdma_device.link",
	"environment.clients.rdma_device.path_mtu_bytes",
	"config.workload", "config.message_sizes", "config.inflight", "config.coalesce", "config.poll",
	"config.rate_per_s", "config.rate_per_client_per_s", "config.arrival", "config.operation",
	"config.chunk_bytes", "config.mix", "config.active", "config.verify", "config.message_auth",
	"config.threads", "config.churn_per_s", "config.cycles", "config.connect_concurrency",
	"config.connect_rate", "config.phased", "config.tls_resume",
	"server_config.threads", "server_config.poll",
};

static const char *const memory[] = { "environment.server.memory_bytes", "environment.clients.memory_bytes" };

/* Returns 0, or -1 when out of memory. */
static int add(json_t *a, const char *field, json_t *base, json_t *run)
{
	return json_array_append_new(a, json_pack("{s:s, s:O, s:O}", "field", field, "base", base, "run", run));
}

/* As numbers where they are: 1 and 1.0 are the same. */
static bool is_same(const json_t *base, const json_t *run)
{
	if (json_is_number(base) && json_is_number(run))
		return json_number_value(base) == json_number_value(run);
	return json_equal(base, run);
}

static int compare_field(json_t *a, const json_t *base, const json_t *run, const char *field)
{
	json_t *x = json_at(base, field), *y = json_at(run, field);

	return !x || !y || is_same(x, y) ? 0 : add(a, field, x, y);
}

/* It is not the same twice: what the kernel keeps for itself varies. */
static int compare_memory(json_t *a, const json_t *base, const json_t *run, const char *field)
{
	double x = read_amount(base, field), y = read_amount(run, field);

	return fabs(x - y) > MEMORY_SHARE * fmin(x, y) ? add(a, field, json_at(base, field), json_at(run, field)) : 0;
}

/* Where the server was does not matter, but whether both ends shared a machine does. */
static int compare_server(json_t *a, const json_t *base, const json_t *run)
{
	json_t *x = json_at(base, "config.server"), *y = json_at(run, "config.server");

	return x && y && json_is_null(x) != json_is_null(y) ? add(a, "config.server", x, y) : 0;
}

/* Only steps of workloads that stripe say it. */
static int compare_rails(json_t *a, const json_t *base, const json_t *run)
{
	json_t *x = json_at(read_step(base, 0), "rails.available"), *y = json_at(read_step(run, 0), "rails.available");

	return x && y && !is_same(x, y) ? add(a, "rails", x, y) : 0;
}

json_t *baseline_differences(const json_t *base, const json_t *run)
{
	json_t *a = json_array();
	int ret = 0;

	for (size_t i = 0; a && i < sizeof(same) / sizeof(same[0]) && !ret; i++)
		ret = compare_field(a, base, run, same[i]);
	for (size_t i = 0; a && i < sizeof(memory) / sizeof(memory[0]) && !ret; i++)
		ret = compare_memory(a, base, run, memory[i]);
	if (a && !ret)
		ret = compare_server(a, base, run);
	if (a && !ret)
		ret = compare_rails(a, base, run);
	if (ret) {
		json_decref(a);
		return NULL;
	}
	return a;
}
