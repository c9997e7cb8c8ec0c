/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/pages_and_nodes.c, with machines that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define NODES "/sys/devices/system/node"
#define DEVICE_NODE "/sys/class/infiniband/mlx5_0/device/numa_node"

static void look(void)
{
	machine_look(memory_check);
}

static void put_pages(const char *unused)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "MemTotal:        8000000 kB\nMemAvailable:    2000000 kB\nHugePages_Total:    2000\n"
		 "HugePages_Free:    %s\nHugepagesize:       2048 kB\n",
		 unused);
	machine_put("/proc/meminfo", text);
}

static int set_up(void **state)
{
	if (machine_make(state))
		return -1;
	put_pages("100");
	machine_put(THP, "[always] madvise never\n");
	machine_put(NODES "/node0/cpulist", "0-1023\n");
	return 0;
}

TEST(memory__one_node_and_huge_pages__fine)
{
	look();
	machine_says("hugepages", FINDING_FINE, "100 of 2000 reserved huge pages of 2048 KiB are free");
	machine_says("thp", FINDING_FINE, "always");
	machine_says("numa", FINDING_FINE, "one NUMA node");
	assert_int_equal(machine_found.n, 3);
}

TEST(hugepages__most_memory_reserved__mend_gives_it_back)
{
	put_pages("1500");
	look();
	machine_says("hugepages", FINDING_NOTE, "more than the other memory that is available");
	assert_string_equal(machine_finding("hugepages", FINDING_NOTE)->mend, "echo 0 >/proc/sys/vm/nr_hugepages");
}

TEST(hugepages__not_in_this_kernel__fine)
{
	machine_put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 2000000 kB\n");
	look();
	machine_says("hugepages", FINDING_FINE, "reserves no huge pages");
}

TEST(hugepages__no_meminfo__unknown)
{
	machine_take("/proc/meminfo");
	look();
	assert_non_null(machine_finding("hugepages", FINDING_UNKNOWN));
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST(thp__not_always__mend_sets_it)
{
	machine_put(THP, "always [madvise] never\n");
	look();
	machine_says("thp", FINDING_NOTE, "madvise");
	assert_string_equal(machine_finding("thp", FINDING_NOTE)->mend, "echo always >" THP);
}

TEST(thp__absent_or_odd__said)
{
	machine_put(THP, "always\n");
	look();
	assert_non_null(machine_finding("thp", FINDING_UNKNOWN));
	machine_take(THP);
	look();
	machine_says("thp", FINDING_NOTE, "no transparent huge pages");
}

TEST(numa__device_beside_this_process__fine)
{
	machine_put(NODES "/node1/cpulist", "0-511,512-1023\n");
	machine_put(DEVICE_NODE, "1\n");
	look();
	machine_says("numa", FINDING_FINE, "mlx5_0 is at node 1 of 2, whose CPUs are 0-511,512-1023");
}

/* This machine has no CPU 1023. */
TEST(numa__device_elsewhere__mend_moves_the_shell)
{
	machine_put(NODES "/node1/cpulist", "1023\n");
	machine_put(DEVICE_NODE, "1\n");
	look();
	machine_says("numa", FINDING_NOTE, "may use none");
	assert_string_equal(machine_finding("numa", FINDING_NOTE)->mend, "taskset -pc 1023 $$");
}

TEST(numa__cpus_are_a_command__not_in_a_mend)
{
	machine_put(NODES "/node1/cpulist", "1;reboot\n");
	machine_put(DEVICE_NODE, "1\n");
	look();
	assert_string_equal(machine_finding("numa", FINDING_NOTE)->mend, "");
}

TEST(numa__device_without_a_node__noted)
{
	machine_put(NODES "/node1/cpulist", "1-2\n");
	machine_put(DEVICE_NODE, "-1\n");
	look();
	machine_says("numa", FINDING_NOTE, "mlx5_0 does not say which of 2 NUMA nodes it is at");
}

TEST(numa__several_nodes_and_no_device__fine)
{
	machine_put(NODES "/node1/cpulist", "1-2\n");
	look();
	machine_says("numa", FINDING_FINE, "2 NUMA nodes");
}

TEST(numa__not_in_this_kernel__fine)
{
	machine_take(NODES);
	look();
	machine_says("numa", FINDING_FINE, "no NUMA nodes");
}

TEST_EACH(set_up, machine_remove)
