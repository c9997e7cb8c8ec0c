/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/place.c: NUMA nodes and governors of a /sys that the test makes, and this process's
 * threads. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/host/place.h"
#include "tests/unit/files/scratch.h"

static char sys[SCRATCH_MAX];

static int setup(void **state)
{
	(void)state;
	return scratch_make(sys);
}

static int teardown(void **state)
{
	(void)state;
	return scratch_remove(sys);
}

static void put(const char *path, const char *text)
{
	scratch_put(sys, path, text);
}

static void two_nodes(void)
{
	put("devices/system/node/node0/cpulist", "0,2\n");
	put("devices/system/node/node1/cpulist", "1,3\n");
	put("devices/system/cpu/cpu0/node0/", "");
	put("devices/system/cpu/cpu1/node1/", "");
	put("class/infiniband/mlx5_0/device/numa_node", "1\n");
	put("class/net/eth0/device/numa_node", "-1\n");
}

TEST(nodes__two__cpus_and_devices_are_found)
{
	uint16_t cpus[8];
	uint32_t n;

	two_nodes();
	assert_int_equal(place_nodes(sys), 2);
	assert_int_equal(place_node_of_cpu(sys, 0), 0);
	assert_int_equal(place_node_of_cpu(sys, 1), 1);
	assert_int_equal(place_node_of_cpu(sys, 9), PLACE_NO_NODE);
	assert_int_equal(place_node_of_cpu(sys, -1), PLACE_NO_NODE);
	assert_int_equal(place_node_of_device(sys, "class/infiniband/mlx5_0/device/numa_node"), 1);
	assert_int_equal(place_node_of_device(sys, "class/net/eth0/device/numa_node"), PLACE_NO_NODE);
	assert_int_equal(place_node_of_device(sys, "class/net/none"), PLACE_NO_NODE);
	assert_int_equal(place_cpus_of_node(sys, 1, cpus, 8, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(cpus[1], 3);
	assert_int_equal(place_cpus_of_node(sys, 2, cpus, 8, &n), -ENOENT);
}

TEST(nodes__machine_does_not_say__none)
{
	assert_int_equal(place_nodes(sys), 0);
	assert_int_equal(place_node_of_cpu(sys, 0), PLACE_NO_NODE);
}

TEST(rdma__device_with_a_node__that)
{
	two_nodes();
	assert_int_equal(place_node_of_rdma(sys, "mlx5_0"), 1);
	assert_int_equal(place_node_of_rdma(sys, "none"), PLACE_NO_NODE);
}

TEST(rdma__software__node_of_its_interface)
{
	two_nodes();
	put("class/infiniband/rxe0/parent", "eth1\n");
	put("class/net/eth1/device/numa_node", "0\n");
	put("class/infiniband/rxe1/parent", "eth0\n");
	put("class/infiniband/rxe2/parent", "dummy0\n");
	assert_int_equal(place_node_of_rdma(sys, "rxe0"), 0);
	assert_int_equal(place_node_of_rdma(sys, "rxe1"), PLACE_NO_NODE);
	assert_int_equal(place_node_of_rdma(sys, "rxe2"), PLACE_NO_NODE);
}

TEST(beside__node__its_cpus_that_may_be_used)
{
	cpu_set_t mine, got;
	char text[32];
	int cpu = 0;

	two_nodes();
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (!CPU_ISSET(cpu, &mine))
		cpu++;
	/* A CPU of this process and one that no machine here has; the latter only; none. */
	snprintf(text, sizeof(text), "%d,1023\n", cpu);
	put("devices/system/node/node2/cpulist", text);
	put("devices/system/node/node3/cpulist", "1023\n");
	put("devices/system/node/node4/cpulist", "\n");
	assert_ptr_equal(place_cpus_beside(sys, 2, &got), &got);
	assert_int_equal(CPU_COUNT(&got), 1);
	assert_true(CPU_ISSET(cpu, &got));
	assert_null(place_cpus_beside(sys, 3, &got));
	assert_null(place_cpus_beside(sys, 4, &got));
	assert_null(place_cpus_beside(sys, 5, &got));
	assert_null(place_cpus_beside(sys, PLACE_NO_NODE, &got));
}

TEST(describe__what_sysfs_says__words)
{
	json_auto_t *o = json_object();
	const char *governor;

	two_nodes();
	put("devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
	put("devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
	put("kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	place_describe(sys, o);
	governor = json_text_at(o, "cpu_governor");
	assert_non_null(governor);
	assert_says(governor, "performance");
	assert_says(governor, "powersave");
	assert_int_equal(json_number_at(o, "numa_nodes"), 2);
	assert_string_equal(json_text_at(o, "huge_pages.transparent"), "madvise");
}

TEST(describe__nothing_there__null_and_not_0)
{
	json_auto_t *o = json_object();

	place_describe(sys, o);
	assert_true(json_is_null(json_at(o, "cpu_governor")));
	assert_true(json_is_null(json_at(o, "numa_nodes")));
	assert_true(json_is_null(json_at(o, "huge_pages.transparent")));
}

/* The 39th field of a thread's stat (proc(5)): where it ran last. */
static int processor_of(pid_t tid)
{
	char path[64], text[1024], *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	p = strrchr(text, ')');
	for (int field = 2; p && field < 39; field++)
		p = strchr(p + 1, ' ');
	assert_non_null(p);
	return atoi(p);
}

TEST(thread__pinned__as_proc_says)
{
	cpu_set_t all, one;
	char text[16];
	json_auto_t *o = NULL;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(processor_of(gettid()), cpu);
	o = place_thread_json(PLACE_SYS, gettid(), sched_getcpu());
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	snprintf(text, sizeof(text), "%d", cpu);
	assert_string_equal(json_text_at(o, "cpus"), text);
	assert_int_equal(json_number_at(o, "cpu"), cpu);
	assert_int_equal(json_number_at(o, "tid"), getpid());
	assert_true(json_is_false(json_at(o, "realtime")));
}

TEST(thread__does_not_run__null)
{
	json_auto_t *o = place_thread_json(PLACE_SYS, 0, -1);

	assert_true(json_is_null(json_at(o, "tid")));
	assert_true(json_is_null(json_at(o, "cpu")));
	assert_true(json_is_null(json_at(o, "cpus")));
	assert_true(json_is_null(json_at(o, "numa_node")));
	assert_true(json_is_null(json_at(o, "realtime")));
}

TEST_EACH(setup, teardown)
