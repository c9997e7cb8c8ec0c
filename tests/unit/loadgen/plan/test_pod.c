/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of a pod with 4 CPUs and 2 GiB on a node with 16 CPUs and 64 GiB, made of files: its limits are those of
 * the default number of threads, the plan and the floors. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/host/cgroup.h"
#include "common/host/res.h"
#include "common/host/sample.h"
#include "loadgen/plan/estimate.h"
#include "loadgen/plan/plan_hosts.h"
#include "loadgen/verdict/resource_floors.h"
#include "tests/unit/files/scratch.h"

#define GIB 0x1p30
#define MIB 0x1p20
#define TICKS_S 100	/* of /proc/stat */

static char root[SCRATCH_MAX];
static struct sampler *sampler;
static struct sample now;
static json_t *environment;
static struct cgroup group;
static struct floors floors;
static char text[256];

static void put(const char *path, const char *content)
{
	scratch_put(root, path, content);
}

static void put_number(const char *path, const char *before, double v)
{
	char content[96];

	snprintf(content, sizeof(content), "%s%.0f\n", before, v);
	put(path, content);
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(scratch_make(root), 0);
	put("proc/self/cgroup", "0::/\n");
	put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
	put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 62914560 kB\n");
	put("sys/fs/cgroup/cpu.max", "400000 100000\n");
	put_number("sys/fs/cgroup/memory.max", "", 2 * GIB);
	put_number("sys/fs/cgroup/memory.current", "", 512 * MIB);
	put_number("sys/fs/cgroup/memory.stat", "active_file 0\ninactive_file ", 256 * MIB);
	cgroup_find(root, &group);
	environment = json_pack("{s:i, s:I, s:o}", "cores", 16, "memory_bytes", (json_int_t)(64 * GIB), "cgroup",
				cgroup_json(&group));
	floors_init(&floors, 5, 0, false);
	floors_set_limits(&floors, FLOORS_SERVER, res_memory_of(environment),
			  json_number_at(environment, "cgroup.cpus"));
	return sampler_new(root, &sampler);
}

static int tear_down(void **state)
{
	(void)state;
	sampler_free(sampler);
	json_decref(environment);
	return scratch_remove(root);
}

TEST(threads__pod__as_many_as_its_cpus)
{
	assert_int_equal(cgroup_threads(&group, 16), 4);
	assert_true(res_cpus_of(environment) == 4);
	assert_true(res_memory_of(environment) == 2 * GIB);
}

/* The limit of the plan's row for memory, for 1,000 clients of a server that runs already. */
static double memory_limit(void)
{
	struct estimate_in in = { .clients = 1000, .generator.memory_floor_ratio = 0.05 };
	struct estimate_row rows[ESTIMATE_ROWS_MAX];
	size_t n;

	hosts_read(environment, &in.server_host);
	sampler_take(sampler, &now);
	in.server_host.available_bytes = now.v[SAMPLE_AVAILABLE_BYTES];
	in.generator_host = in.server_host;
	in.server.size = (struct sizes_server){ .rails = 1, .threads = 4, .max_clients = 1000, .credits = 1,
						.message_bytes = 64, .max_handshakes = 512 };
	in.generator.rails = in.generator.workers = 1;
	in.generator.client = (struct sizes_client){ .max_conns = 1000, .depth = 1, .buffer_bytes = 64 };
	n = estimate_rows(&in, rows);
	for (size_t i = 0; i < n; i++)
		if (rows[i].resource == ESTIMATE_memory_bytes && rows[i].side == ESTIMATE_SERVER)
			return rows[i].limit;
	return NAN;
}

TEST(plan__pod__what_its_limit_leaves)
{
	/* The page cache can be freed, and 5 % of the pod's memory are to stay free. */
	assert_true(fabs(memory_limit() - (2 * GIB - 256 * MIB - 0.05 * 2 * GIB)) < 1);
	json_object_del(environment, "cgroup");
	assert_true(res_memory_of(environment) == 64 * GIB);
}

static enum stop_reason judge(void)
{
	sampler_take(sampler, &now);
	return floors_judge(&floors, FLOORS_SERVER, &now, text, sizeof(text));
}

TEST(memory_floor__pod__of_its_memory)
{
	assert_int_equal(judge(), STOP_NOT);
	put_number("sys/fs/cgroup/memory.current", "", 2 * GIB);
	put_number("sys/fs/cgroup/memory.stat", "active_file 0\ninactive_file ", 90 * MIB);
	assert_int_equal(judge(), STOP_MEMORY_FLOOR);
	assert_string_equal(text, "the server's machine has 4.4 % of its memory left, 90 of 2048 MiB: less than "
			    "--memory-floor 5 %");
}

/* In 10 s the node's 16 CPUs are busy for 40 of 160 s, the pod uses 39 of the 40 s of its quota. */
static void put_cpu(unsigned seconds)
{
	char stat[128];

	snprintf(stat, sizeof(stat), "cpu  %u 0 0 %u 0 0 0 0\n", 4 * seconds * TICKS_S, 12 * seconds * TICKS_S);
	put("proc/stat", stat);
	put_number("sys/fs/cgroup/cpu.stat", "usage_usec ", 3.9e6 * seconds);
}

static enum stop_reason judge_after(unsigned seconds)
{
	put_cpu(seconds);
	sampler_take(sampler, &now);
	now.taken_ns = (100 + seconds) * UINT64_C(1000000000);
	return floors_judge(&floors, FLOORS_SERVER, &now, text, sizeof(text));
}

TEST(cpu_floor__pod__of_its_quota)
{
	floors.cpu_ratio = 0.1;
	assert_int_equal(judge_after(0), STOP_NOT);
	assert_int_equal(judge_after(10), STOP_CPU_FLOOR);
	assert_string_equal(text, "the server's machine: the control group left 2.5 % of its CPU quota unused: less "
			    "than --cpu-floor 10 %");
	/* The node's idle time counts without a quota. */
	floors_set_limits(&floors, FLOORS_SERVER, NAN, INFINITY);
	assert_int_equal(judge_after(20), STOP_NOT);
}

TEST_EACH(set_up, tear_down)
