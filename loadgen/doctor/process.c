/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the limits of this process; the next programs of the same shell have the same limits. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <linux/capability.h>
#include <math.h>
#include <sys/resource.h>

#include "common/host/cgroup.h"
#include "common/host/proc_text.h"
#include "loadgen/doctor/base/tree.h"

#define MEMLOCK_ENOUGH ((rlim_t)1 << 30)
#define NOFILE_ENOUGH 4096
#define CGROUP_MEMORY_ENOUGH (512 << 20)
#define CGROUP_PIDS_ENOUGH 64	/* for two threads on each CPU of a small machine, and the programs' other threads */

/* A process with CAP_IPC_LOCK may exceed the limit of locked memory. */
static bool may_lock(const char *root)
{
	char text[4096];

	tree_text(tree_at(root, "/proc/self/status"), text, sizeof(text));
	return proc_text_number(text, "CapEff", 16) >> CAP_IPC_LOCK & 1;
}

static void check_memlock(const char *root, const struct rlimit *l, struct findings *out)
{
	static const char why[] = "Memory that a device reads and writes is locked; requests above the limit are "
				  "refused.";
	bool exempt = may_lock(root);
	struct finding *f;

	if (l->rlim_cur >= MEMLOCK_ENOUGH) {
		findings_add(out, "memlock", FINDING_FINE, NULL, "memory may be locked: %s",
			     l->rlim_cur == RLIM_INFINITY ? "without limit" : "1 GiB or more");
		return;
	}
	f = findings_add(out, "memlock", exempt ? FINDING_NOTE : FINDING_WRONG, why, "%llu KiB may be locked%s",
			 (unsigned long long)l->rlim_cur >> 10,
			 exempt ? ", which does not bind this user (CAP_IPC_LOCK)" : "");
	if (!exempt)
		finding_mend(f, l->rlim_max == RLIM_INFINITY ? "ulimit -l unlimited" :
			     "sudo prlimit --pid $$ --memlock=unlimited:unlimited");
}

static void check_nofile(const struct rlimit *l, struct findings *out)
{
	struct finding *f = findings_add(out, "nofile", l->rlim_cur >= NOFILE_ENOUGH ? FINDING_FINE : FINDING_WRONG,
					 "Each connection has descriptors of its own.", "%llu files may be open",
					 (unsigned long long)l->rlim_cur);

	if (l->rlim_max >= NOFILE_ENOUGH)
		finding_mend(f, "ulimit -n %d", NOFILE_ENOUGH);
	else
		finding_mend(f, "sudo prlimit --pid $$ --nofile=65536:65536");
}

static const char *limit_text(double limit, double unit, const char *name, char text[32])
{
	if (isinf(limit))
		return "no limit";
	snprintf(text, 32, "%.4g%s", limit / unit, name);
	return text;
}

static void check_cgroup(const char *root, struct findings *out)
{
	char cpus[32], memory[32], pids[32];
	struct cgroup g;
	bool low;

	cgroup_find(root, &g);
	if (!g.version) {
		findings_add(out, "cgroup", FINDING_FINE, NULL, "this process is in no control group with limits");
		return;
	}
	low = g.memory_bytes < CGROUP_MEMORY_ENOUGH || g.pids < CGROUP_PIDS_ENOUGH;
	findings_add(out, "cgroup", low ? FINDING_NOTE : FINDING_FINE,
		     "These limits count as the machine's. The kernel ends a process of a group that exceeds its "
		     "memory limit, and a group at its limit of threads can start no more.",
		     "limits of the control group (version %d): CPUs %s, memory %s, processes and threads %s%s",
		     g.version, limit_text(g.cpus, 1, "", cpus),
		     limit_text(g.memory_bytes, 0x1p20, " MiB", memory), limit_text(g.pids, 1, "", pids),
		     low ? ", which is low" : "");
}

void process_check(const char *root, struct findings *out)
{
	struct rlimit memlock, nofile;

	check_cgroup(root, out);
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) || getrlimit(RLIMIT_NOFILE, &nofile)) {
		findings_add(out, "limits", FINDING_UNKNOWN, NULL, "the limits of this process cannot be read");
		return;
	}
	check_memlock(root, &memlock, out);
	check_nofile(&nofile, out);
}
