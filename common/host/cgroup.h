/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the control groups that this process is in (cgroups(7)), and what these groups have used. In a container
 * these limits, not the machine's resources, are what the process may use.
 *
 * Reads versions 1 and 2, also where both are mounted: for each controller, version 1 if the process has a group of it
 * there. A limit is the lowest one of the process's own group and of the groups above it, as far as they are mounted;
 * a container usually sees none above its own. Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/, proc_pid_mountinfo(5).
 *
 * `root` is "", or in tests a folder with proc/self/cgroup, proc/self/mountinfo and the mount points. Files may contain
 * anything: a limit that is missing or malformed counts as none, such a figure as unknown. Any thread except data
 * threads, because a call opens files. */
#ifndef RAMPART_COMMON_CGROUP_H
#define RAMPART_COMMON_CGROUP_H

#include <math.h>
#include <stdint.h>

#include <jansson.h>

#define CGROUP_PATH_MAX 1024	/* groups with a longer path have no known limit */

/* Figures of the group that sets the limit, summed over all processes in it and in the groups below it. */
enum cgroup_figure {
	/* Only where the CPU time is limited. */
	CGROUP_CPU_S,			/* CPU time used */
	CGROUP_THROTTLED_S,		/* how long the quota stopped threads, summed over CPUs */
	/* Only where the memory is limited. */
	CGROUP_MEMORY_BYTES,		/* memory in use, page cache included */
	CGROUP_CACHE_BYTES,		/* part of it: page cache, which the kernel frees if memory is short */
	CGROUP_MEMORY_HITS,		/* times that the group reached its limit */
	CGROUP_OOM_KILLS,		/* processes killed because memory could not stay below the limit */
	CGROUP_FIGURES
};

struct cgroup {
	int version;			/* of the hierarchies with the limits; 0: this process is in no group */
	/* Limits; INFINITY: none, or not known. */
	double cpus;			/* CPU time a second: cpu.max, cpu.cfs_quota_us / cpu.cfs_period_us */
	double memory_bytes;		/* lower one of memory.max and memory.high; memory.limit_in_bytes */
	double pids;			/* processes and threads: pids.max */
	/* The group with the lowest limit; "": there is no limit. */
	struct cgroup_place {
		int version;
		char dir[CGROUP_PATH_MAX];
	} cpu, memory;
};

void cgroup_find(const char *root, struct cgroup *out);

/* Opens the file of a figure. Returns a descriptor; -1 if there is no limit, or no such file. */
int cgroup_open(const struct cgroup *g, enum cgroup_figure f);
/* Number of files that can be open at once: those of all figures of limited groups. */
static inline uint32_t cgroup_n_files(const struct cgroup *g)
{
	return (*g->cpu.dir ? CGROUP_MEMORY_BYTES : 0) + (*g->memory.dir ? CGROUP_FIGURES - CGROUP_MEMORY_BYTES : 0);
}
/* The figure in the text of this file; NAN if it has none. */
double cgroup_value(const struct cgroup *g, enum cgroup_figure f, const char *text);
/* Opens, reads and closes the file. */
double cgroup_now(const struct cgroup *g, enum cgroup_figure f);

/* Memory that the group may still take, if it uses `used`, of which `cache` can be freed. NAN if either is unknown. */
static inline double cgroup_left_bytes(const struct cgroup *g, double used, double cache)
{
	return isnan(used) || isnan(cache) ? NAN : fmax(g->memory_bytes - fmax(used - cache, 0), 0);
}

/* Number of threads that can run at once on `cpus` CPUs. A quota is rounded up, as Go and the JDK do: with 1.5 CPUs a
 * single thread could not use a third of what is allowed. At least 1. */
uint32_t cgroup_threads(const struct cgroup *g, uint32_t cpus);

/* {version, cpus, memory_bytes, pids}: null for no limit, or one that is not known. NULL when out of memory. */
json_t *cgroup_json(const struct cgroup *g) __attribute__((warn_unused_result));

#endif
