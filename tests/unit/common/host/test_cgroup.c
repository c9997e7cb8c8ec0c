/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/cgroup.c: trees of version 2 and 1, of both, of containers, and damaged ones, which the
 * test makes. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/host/cgroup.h"
#include "tests/unit/files/scratch.h"

#define GIB 0x1p30

#define assert_near(a, b, most) \
	do { \
		double a_ = (a), b_ = (b); \
		if (a_ != b_ && !(fabs(a_ - b_) <= (most))) \
			fail_msg("%s is %f, not %f", #a, a_, b_); \
	} while (0)

static char root[SCRATCH_MAX];
static struct cgroup g;

static int setup(void **state)
{
	(void)state;
	return scratch_make(root);
}

static int teardown(void **state)
{
	(void)state;
	return scratch_remove(root);
}

static void put(const char *path, const char *text)
{
	scratch_put(root, path, text);
}

static void find(const char *cgroup, const char *mountinfo)
{
	if (cgroup)
		put("proc/self/cgroup", cgroup);
	if (mountinfo)
		put("proc/self/mountinfo", mountinfo);
	memset(&g, 0xa5, sizeof(g));
	cgroup_find(root, &g);
}

static void assert_limits(int version, double cpus, double memory_bytes, double pids)
{
	assert_int_equal(g.version, version);
	assert_near(g.cpus, cpus, 0);
	assert_near(g.memory_bytes, memory_bytes, 0);
	assert_near(g.pids, pids, 0);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OTHERS "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:21 / /proc rw - proc proc rw\n"

TEST(find__own_group_of_version_2__its_limits_and_figures)
{
	put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	put("sys/fs/cgroup/a/b/memory.max", "2147483648\n");
	put("sys/fs/cgroup/a/b/memory.high", "max\n");
	put("sys/fs/cgroup/a/b/pids.max", "512\n");
	put("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 7500000\nuser_usec 1\nnr_throttled 3\nthrottled_usec 250000\n");
	put("sys/fs/cgroup/a/b/memory.current", "1073741824\n");
	put("sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 1000\nactive_file 24\n");
	put("sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 3\nmax 14\noom 2\noom_kill 1\noom_group_kill 0\n");
	find("0::/a/b\n", OTHERS V2_MOUNT);
	assert_limits(2, 1.5, 2 * GIB, 512);
	assert_near(cgroup_now(&g, CGROUP_CPU_S), 7.5, 1e-9);
	assert_near(cgroup_now(&g, CGROUP_THROTTLED_S), 0.25, 1e-9);
	assert_near(cgroup_now(&g, CGROUP_MEMORY_BYTES), GIB, 0);
	assert_near(cgroup_now(&g, CGROUP_CACHE_BYTES), 1024, 0);
	assert_near(cgroup_now(&g, CGROUP_MEMORY_HITS), 17, 0);
	assert_near(cgroup_now(&g, CGROUP_OOM_KILLS), 1, 0);
}

/* The figures are those of the group whose limit counts. */
TEST(find__groups_above_with_lower_limits__those)
{
	put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
	put("sys/fs/cgroup/a/cpu.stat", "throttled_usec 1000000\n");
	put("sys/fs/cgroup/a/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.high", "4294967296\n");
	put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 5\n");
	put("sys/fs/cgroup/a/b/memory.max", "8589934592\n");
	put("sys/fs/cgroup/a/b/c/", "");
	put("sys/fs/cgroup/a/b/pids.max", "max\n");
	put("sys/fs/cgroup/pids.max", "100\n");
	find("0::/a/b/c\n", V2_MOUNT);
	assert_limits(2, 2, 4 * GIB, 100);
	assert_near(cgroup_now(&g, CGROUP_THROTTLED_S), 1, 0);
}

#define V1_GROUPS "9:name=systemd:/x\n8:pids:/pod\n4:memory:/pod\n2:cpu,cpuacct:/pod/one\n"
#define V1_MOUNTS "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" \
	"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" \
	"36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"

static void put_v1(void)
{
	put("sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "400000\n");
	put("sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/cpu,cpuacct/pod/cpuacct.usage", "2500000000\n");
	put("sys/fs/cgroup/cpu,cpuacct/pod/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 500000000\n");
	put("sys/fs/cgroup/cpu,cpuacct/pod/one/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu,cpuacct/pod/one/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "8589934592\n");
	put("sys/fs/cgroup/memory/pod/memory.usage_in_bytes", "4096\n");
	put("sys/fs/cgroup/memory/pod/memory.stat", "inactive_file 1\ntotal_inactive_file 2048\ntotal_active_file 0\n");
	put("sys/fs/cgroup/memory/pod/memory.failcnt", "6\n");
	put("sys/fs/cgroup/memory/pod/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	put("sys/fs/cgroup/pids/pod/pids.max", "99\n");
}

TEST(find__version_1__its_limits_and_figures)
{
	put_v1();
	find(V1_GROUPS, V1_MOUNTS);
	assert_limits(1, 4, 8 * GIB, 99);
	assert_near(cgroup_now(&g, CGROUP_CPU_S), 2.5, 1e-9);
	assert_near(cgroup_now(&g, CGROUP_THROTTLED_S), 0.5, 1e-9);
	assert_near(cgroup_now(&g, CGROUP_MEMORY_BYTES), 4096, 0);
	assert_near(cgroup_now(&g, CGROUP_CACHE_BYTES), 2048, 0);
	assert_near(cgroup_now(&g, CGROUP_MEMORY_HITS), 6, 0);
	assert_near(cgroup_now(&g, CGROUP_OOM_KILLS), 2, 0);
}

/* A controller is in one hierarchy only: pids is in that of version 2 here, the other two are not. */
TEST(find__both_versions__each_controller_where_it_is)
{
	put_v1();
	put("sys/fs/cgroup/unified/u/pids.max", "7\n");
	put("sys/fs/cgroup/unified/u/memory.max", "1\n");
	find("4:memory:/pod\n2:cpu,cpuacct:/pod/one\n0::/u\n",
	     "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" V1_MOUNTS);
	assert_limits(1, 4, 8 * GIB, 7);
}

/* With a namespace of its own a container sees its group as "/" (cgroup_namespaces(7)). */
TEST(find__container_with_a_namespace__limits_at_the_mount)
{
	put("sys/fs/cgroup/cpu.max", "50000 100000\n");
	put("sys/fs/cgroup/memory.max", "536870912\n");
	find("0::/\n", V2_MOUNT);
	assert_limits(2, 0.5, GIB / 2, INFINITY);
}

/* Without one its group's path is the host's, but only its group is mounted, here at a path with a blank. */
TEST(find__container_that_sees_its_group_only__limits_at_the_mount)
{
	put("sys/fs/c group/memory.limit_in_bytes", "1073741824\n");
	put("sys/fs/c group/sub/memory.limit_in_bytes", "4096\n");
	find("4:memory:/kube/pod7\n", "35 31 0:32 /kube/pod7 /sys/fs/c\\040group ro - cgroup cgroup rw,memory\n");
	assert_limits(1, INFINITY, GIB, INFINITY);
	find("4:memory:/kube/pod7/sub\n", NULL);
	assert_limits(1, INFINITY, 4096, INFINITY);
	/* The group is not below the mount, or its path leads out of it. */
	find("4:memory:/kube/pod77/sub\n", NULL);
	assert_limits(1, INFINITY, GIB, INFINITY);
	find("4:memory:/kube/pod7/../pod7/sub\n", NULL);
	assert_limits(1, INFINITY, GIB, INFINITY);
}

/* The mount that shows the group counts, not the first one. */
TEST(find__several_mounts__the_one_with_the_group)
{
	put("first/memory.max", "4096\n");
	put("second/mine/memory.max", "8192\n");
	find("0::/mine\n", "1 1 0:1 /other /first rw - cgroup2 c rw\n2 1 0:1 / /second rw - cgroup2 c rw\n");
	assert_limits(2, INFINITY, 8192, INFINITY);
}

TEST(find__no_groups__no_limits)
{
	find(NULL, NULL);
	assert_limits(0, INFINITY, INFINITY, INFINITY);
	assert_true(isnan(cgroup_now(&g, CGROUP_THROTTLED_S)));
	assert_int_equal(cgroup_open(&g, CGROUP_MEMORY_BYTES), -1);
	find("0::/\n", OTHERS);
	assert_limits(0, INFINITY, INFINITY, INFINITY);
	find("0::/\n", V2_MOUNT);
	assert_limits(2, INFINITY, INFINITY, INFINITY);
}

static const char *const hostile[] = {
	"", "\n", ":", "::", ":::\n", "0::", "0::x\n", "4:memory", "4:memory:", "cpu", "max", "max max", "-1", "-1 -1",
	"0", "0 0",
	"1 0", "1x", "12 34", "1 2 3 x", "99999999999999999999", "99999999999999999999 1", "1e3", "nan nan", "\xff\xfe",
	"1 2 3", "1 2 3 4", "1 2 3 / / - ", "1 2 3 / / - cgroup2", "1 2 3 / / - cgroup",
	"1 2 3 / /\\777 - cgroup2 c rw",
	"throttled_usec", "throttled_usec x\n", "throttled_usec -5\n", "oom_kill 99999999999999999999\n", "max\nmax",
};

TEST(find__hostile_texts__no_limit_and_no_crash)
{
	static const char *const files[] = { "cpu.max", "memory.max", "memory.high", "pids.max", "cpu.stat" };

	for (size_t i = 0; i < N_ELEMENTS(hostile); i++) {
		find(hostile[i], V2_MOUNT);
		assert_limits(g.version, INFINITY, INFINITY, INFINITY);
		find("0::/a\n", hostile[i]);
		assert_limits(g.version, INFINITY, INFINITY, INFINITY);
	}
	for (size_t i = 0; i < N_ELEMENTS(hostile); i++) {
		put("sys/fs/cgroup/b/cpu.max", "1 1\n");
		for (size_t f = 0; f < N_ELEMENTS(files); f++) {
			char path[64];

			snprintf(path, sizeof(path), "sys/fs/cgroup/a/%s", files[f]);
			put(path, hostile[i]);
		}
		find("0::/a\n", V2_MOUNT);
		/* "12 34" and "1 2 3" are quotas of a CPU with something behind them, which later kernels may have. */
		assert_near(g.memory_bytes, INFINITY, 0);
		assert_near(g.pids, INFINITY, 0);
		assert_true(g.cpus > 0);
		assert_true(isnan(cgroup_now(&g, CGROUP_THROTTLED_S)));
	}
}

TEST(find__texts_that_are_too_long__no_limit)
{
	char *text = malloc(40000);

	assert_non_null(text);
	memset(text, '7', 39999);
	text[39999] = '\0';
	put("sys/fs/cgroup/memory.max", text);
	find("0::/\n", V2_MOUNT);
	assert_limits(2, INFINITY, INFINITY, INFINITY);
	memcpy(text, "0::/", 4);
	find(text, V2_MOUNT);
	assert_limits(0, INFINITY, INFINITY, INFINITY);
	/* A long line of another mount does not hide the one behind it. */
	put("sys/fs/cgroup/memory.max", "4096\n");
	memcpy(text + 39999 - strlen("\n" V2_MOUNT), "\n" V2_MOUNT, strlen("\n" V2_MOUNT));
	find("0::/\n", text);
	assert_limits(2, INFINITY, 4096, INFINITY);
	free(text);
}

TEST(threads__quota__rounded_up_and_at_least_one)
{
	g = (struct cgroup){ .cpus = INFINITY };
	assert_int_equal(cgroup_threads(&g, 16), 16);
	assert_int_equal(cgroup_threads(&g, 0), 1);
	g.cpus = 4;
	assert_int_equal(cgroup_threads(&g, 16), 4);
	assert_int_equal(cgroup_threads(&g, 2), 2);
	g.cpus = 1.5;
	assert_int_equal(cgroup_threads(&g, 16), 2);
	g.cpus = 0.001;
	assert_int_equal(cgroup_threads(&g, 16), 1);
}

TEST(left__memory_in_use__without_what_can_be_freed)
{
	g = (struct cgroup){ .memory_bytes = 1000 };
	assert_near(cgroup_left_bytes(&g, 600, 100), 500, 0);
	assert_near(cgroup_left_bytes(&g, 50, 100), 1000, 0);
	assert_near(cgroup_left_bytes(&g, 5000, 100), 0, 0);
	assert_true(isnan(cgroup_left_bytes(&g, NAN, 100)));
	assert_true(isnan(cgroup_left_bytes(&g, 600, NAN)));
	g.memory_bytes = INFINITY;
	assert_true(isinf(cgroup_left_bytes(&g, 600, 100)));
}

TEST(json__limits_and_none__numbers_and_null)
{
	json_auto_t *some = NULL, *none = NULL;

	g = (struct cgroup){ .version = 2, .cpus = 1.5, .memory_bytes = 4096, .pids = INFINITY };
	some = cgroup_json(&g);
	assert_near(json_number_at(some, "cpus"), 1.5, 0);
	assert_int_equal(json_integer_value(json_at(some, "memory_bytes")), 4096);
	assert_true(json_is_null(json_at(some, "pids")));
	assert_int_equal(json_integer_value(json_at(some, "version")), 2);
	g = (struct cgroup){ .cpus = INFINITY, .memory_bytes = INFINITY, .pids = INFINITY };
	none = cgroup_json(&g);
	assert_true(json_is_null(json_at(none, "version")) && json_is_null(json_at(none, "cpus")));
}

TEST_EACH(setup, teardown)
