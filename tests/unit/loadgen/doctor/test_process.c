/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/process.c: the limits of control groups. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

static void put_group(const char *cpus, const char *memory, const char *pids)
{
	machine_put("/proc/self/cgroup", "0::/pod\n");
	machine_put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	machine_put("/sys/fs/cgroup/pod/cpu.max", cpus);
	machine_put("/sys/fs/cgroup/pod/memory.max", memory);
	machine_put("/sys/fs/cgroup/pod/pids.max", pids);
}

TEST(cgroup__none__said)
{
	machine_look(process_check);
	machine_says("cgroup", FINDING_FINE, "in no control group");
}

TEST(cgroup__limits__said)
{
	put_group("150000 100000\n", "8589934592\n", "max\n");
	machine_look(process_check);
	machine_says("cgroup", FINDING_FINE, "(version 2): CPUs 1.5, memory 8192 MiB, processes and threads no limit");
}

TEST(cgroup__little_memory_or_few_threads__noted)
{
	put_group("max 100000\n", "268435456\n", "4096\n");
	machine_look(process_check);
	machine_says("cgroup", FINDING_NOTE,
		     "CPUs no limit, memory 256 MiB, processes and threads 4096, which is low");
	put_group("max 100000\n", "8589934592\n", "20\n");
	machine_look(process_check);
	machine_says("cgroup", FINDING_NOTE, "processes and threads 20, which is low");
}

TEST_EACH(machine_make, machine_remove)
