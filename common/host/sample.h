/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource usage of this process and machine at a moment, to be sampled repeatedly: the files of /proc stay open, so
 * that a sample takes only a few reads, and works when no descriptor is left. A value that cannot be read, or has
 * another format than in proc(5), is NAN.
 *
 * Threads: one at a time for each sampler; not a data thread, because a sample takes as long as reading /proc (about
 * 0.05 ms). Sources: proc(5), getrusage(2).
 */
#ifndef RAMPART_COMMON_SAMPLE_H
#define RAMPART_COMMON_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

enum sample_figure {
	/* of the process since it started, all threads */
	SAMPLE_CPU_USER_S,
	SAMPLE_CPU_SYSTEM_S,
	SAMPLE_SWITCHES_VOLUNTARY,	/* context switches because a thread waited */
	SAMPLE_SWITCHES_INVOLUNTARY,	/* context switches because the scheduler preempted it */
	/* of the process at the moment */
	SAMPLE_RSS_BYTES,
	SAMPLE_PINNED_BYTES,		/* VmPin + VmLck */
	SAMPLE_FDS,
	SAMPLE_THREADS,
	/* of the machine since boot, all CPUs */
	SAMPLE_MACHINE_USER_S,		/* includes nice */
	SAMPLE_MACHINE_SYSTEM_S,	/* includes hard interrupts */
	SAMPLE_MACHINE_SOFTIRQ_S,
	SAMPLE_MACHINE_STEAL_S,		/* time that the hypervisor gave to others */
	SAMPLE_MACHINE_IDLE_S,		/* includes waiting for disks */
	/* of the control group that limits the process (common/host/cgroup.h) since it was made; NAN: no limit */
	SAMPLE_CGROUP_CPU_S,		/* CPU time of all its processes */
	SAMPLE_CGROUP_THROTTLED_S,	/* how long the CPU quota stopped threads, summed over CPUs */
	SAMPLE_CGROUP_MEMORY_HITS,	/* times that the group was about to exceed its memory limit */
	SAMPLE_CGROUP_OOM_KILLS,
	/* of the machine at the moment */
	SAMPLE_BUSIEST_CORE_RATIO,	/* largest busy share of a CPU since the sampler's last sample */
	SAMPLE_AVAILABLE_BYTES,		/* available to the process: MemAvailable, or less if its group has less */
	SAMPLE_SLAB_BYTES,
	SAMPLE_RUNNABLE,		/* threads that run or wait for a CPU */
	/* of the program, which fills them in itself (sampler_take sets NAN) */
	SAMPLE_QPS,
	SAMPLE_CQS,
	SAMPLE_MRS,
	SAMPLE_CONNECTED,		/* clients */
	SAMPLE_HANDSHAKES,		/* clients that are being connected */
	SAMPLE_COMPLETIONS,		/* since the start, like the next two */
	SAMPLE_POLLS,			/* polls of completion queues */
	SAMPLE_WAKEUPS,			/* turns of the event loops of data threads */
	SAMPLE_N
};

/* Names of the figures in JSON. */
extern const char *const sample_names[SAMPLE_N];
/* True for figures that only grow, so that the difference of two samples is what happened in between. */
bool sample_is_counter(enum sample_figure f);

/* Threads that a sample lists; further threads count only in the figures of the process. */
#define SAMPLE_THREADS_MAX 64
/* Files that a sampler keeps open, beside one for each thread and those of a limited control group
 * (cgroup_n_files). */
#define SAMPLE_FILES 6

struct sample_thread {
	char name[16];		/* printable ASCII; "main" for the first one */
	double user_s, system_s;	/* CPU time since the thread started; NAN if unknown */
};

struct sample {
	uint64_t taken_ns;	/* CLOCK_MONOTONIC */
	double v[SAMPLE_N];	/* by enum sample_figure; NAN: unknown */
	uint32_t n_threads;	/* entries of `thread` */
	struct sample_thread thread[SAMPLE_THREADS_MAX];
};

struct sampler;

/* Creates a sampler of this process and machine. `root` is ""; tests pass a folder that contains proc and, as for
 * cgroup_find, control groups. Files that cannot be opened are tried again with each sample. Returns 0 or -ENOMEM. */
int sampler_new(const char *root, struct sampler **out) __attribute__((warn_unused_result));
void sampler_free(struct sampler *s);	/* NULL-safe; closes the files */

/* Takes a sample; fills all of *out. */
void sampler_take(struct sampler *s, struct sample *out);

/* {"taken_ns", the figures by their names, "by_thread": [{"name", "cpu_user_s", "cpu_system_s"}]}; null for NAN. The
 * caller owns it; NULL when out of memory. */
json_t *sample_json(const struct sample *s) __attribute__((warn_unused_result));
/* Reads such JSON back, of any origin: a value that is missing, of another type, below 0 or beyond 2^63 becomes NAN;
 * threads without a name are left out. */
void sample_read(const json_t *o, struct sample *out);

#endif
