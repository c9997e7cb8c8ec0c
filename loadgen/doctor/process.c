/* SPDX-License-Identifier: BSD-2-Clause */
/* See process.h. */
#include "loadgen/doctor/process.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "common/host/proc_text.h"

#define MEMLOCK_ENOUGH ((rlim_t)1 << 30)
#define NOFILE_ENOUGH 4096

static bool may_lock(void)
{
	char text[4096];
	FILE *f = fopen("/proc/self/status", "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	return proc_text_number(text, "CapEff", 16) >> CAP_IPC_LOCK & 1;
}

int process_limits_read(struct process_limits *out)
{
	if (getrlimit(RLIMIT_MEMLOCK, &out->memlock) || getrlimit(RLIMIT_NOFILE, &out->nofile))
		return -errno;
	out->may_lock = may_lock();
	return 0;
}

static void check_memlock(const struct process_limits *l, struct findings *out)
{
	static const char why[] = "Memory that a device reads and writes is locked; what is above the limit is refused.";
	rlim_t soft = l->memlock.rlim_cur;
	struct finding *f;

	if (soft == RLIM_INFINITY || soft >= MEMLOCK_ENOUGH) {
		findings_add(out, "memlock", FINDING_FINE, NULL, "memory may be locked: %s",
			     soft == RLIM_INFINITY ? "without limit" : "1 GiB or more");
		return;
	}
	f = findings_add(out, "memlock", l->may_lock ? FINDING_NOTE : FINDING_WRONG, why, "%llu KiB may be locked%s",
			 (unsigned long long)soft >> 10, l->may_lock ? ", which does not bind this user (CAP_IPC_LOCK)" : "");
	if (l->may_lock || l->memlock.rlim_max == RLIM_INFINITY)
		finding_mend(f, "ulimit -l unlimited");
	else
		finding_mend(f, "sudo prlimit --pid $$ --memlock=unlimited:unlimited");
}

static void check_nofile(const struct process_limits *l, struct findings *out)
{
	rlim_t soft = l->nofile.rlim_cur;
	struct finding *f;

	f = findings_add(out, "nofile", soft >= NOFILE_ENOUGH ? FINDING_FINE : FINDING_WRONG,
			 "Each connection has descriptors of its own.", "%llu files may be open", (unsigned long long)soft);
	if (soft >= NOFILE_ENOUGH)
		return;
	if (l->nofile.rlim_max >= NOFILE_ENOUGH)
		finding_mend(f, "ulimit -n %d", NOFILE_ENOUGH);
	else
		finding_mend(f, "sudo prlimit --pid $$ --nofile=65536:65536");
}

void process_check(const struct process_limits *l, struct findings *out)
{
	check_memlock(l, out);
	check_nofile(l, out);
}
