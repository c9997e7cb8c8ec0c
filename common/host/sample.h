/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process and machine use at a moment, to be read again and again: the files of /proc stay open, so that a
 * sample takes a few reads, and no descriptor when there is none left. What cannot be read, or is not as proc(5) says,
 * is NAN.
 *
 * Threads: one at a time for each sampler; not on a data thread, because a sample takes as long as reading /proc does
 * (about 0.05 ms).
 * Sources: proc(5), getrusage(2).
 */
#ifndef RAMPART_COMMON_SAMPLE_H
#define RAMPART_COMMON_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

enum sample_figure {
	/* of the process since it began, all its threads */
	SAMPLE_CPU_USER_S,
	SAMPLE_CPU_SYSTEM_S,
	SAMPLE_SWITCHES_VOLUNTARY,	/* context switches because a thread waited */
	SAMPLE_SWITCHES_INVOLUNTARY,	/* and because its time was over, or another one's turn had come */
	/* of the process at the moment */
	SAMPLE_RSS_BYTES,
	SAMPLE_PINNED_BYTES,		/* VmPin + VmLck */
	SAMPLE_FDS,
	SAMPLE_THREADS,
	/* of the machine since it booted, all its CPUs */
	SAMPLE_MACHINE_USER_S,		/* with nice */
	SAMPLE_MACHINE_SYSTEM_S,	/* with hard interrupts */
	SAMPLE_MACHINE_SOFTIRQ_S,
	SAMPLE_MACHINE_STEAL_S,		/* the hypervisor gave it to others */
	SAMPLE_MACHINE_IDLE_S,		/* with waiting for disks */
	/* of the machine at the moment */
	SAMPLE_BUSIEST_CORE_RATIO,	/* the CPU with the largest busy share of the time since the sampler's last sample */
	SAMPLE_AVAILABLE_BYTES,		/* that programs can still get: MemAvailable */
	SAMPLE_SLAB_BYTES,
	SAMPLE_RUNNABLE,		/* threads that run or wait for a CPU */
	/* of the program, which sets them itself (NAN after sampler_take) */
	SAMPLE_QPS,
	SAMPLE_CQS,
	SAMPLE_MRS,
	SAMPLE_CONNECTED,		/* clients */
	SAMPLE_HANDSHAKES,		/* clients that are being connected */
	SAMPLE_COMPLETIONS,		/* since the start, as the next two */
	SAMPLE_POLLS,			/* of completion queues */
	SAMPLE_WAKEUPS,			/* turns of the event loops of data threads */
	SAMPLE_N
};

/* Their names in JSON. */
extern const char *const sample_names[SAMPLE_N];
/* True for figures that only grow: what happened between two samples is their difference. */
bool sample_is_counter(enum sample_figure f);

/* A program with more threads has the others in its process's figures only. */
#define SAMPLE_THREADS_MAX 64
/* Files that a sampler keeps open, beside one for each thread. */
#define SAMPLE_FILES 6

struct sample_thread {
	char name[16];		/* printable ASCII; "main" for the first one */
	double user_s, system_s;	/* CPU time since it began, NAN if unknown */
};

struct sample {
	uint64_t taken_ns;	/* CLOCK_MONOTONIC */
	double v[SAMPLE_N];	/* by enum sample_figure; NAN: unknown */
	uint32_t n_threads;	/* in `thread` */
	struct sample_thread thread[SAMPLE_THREADS_MAX];
};

struct sampler;

/* A sampler of this process and machine. `proc` is "/proc"; tests give another folder. What cannot be opened is tried
 * again with each sample. 0 or -ENOMEM. */
int sampler_new(const char *proc, struct sampler **out) __attribute__((warn_unused_result));
void sampler_free(struct sampler *s);	/* NULL-safe; closes the files */

/* Fills all of *out. */
void sampler_take(struct sampler *s, struct sample *out);

/* {"taken_ns", the figures by their names, "by_thread": [{"name", "cpu_user_s", "cpu_system_s"}]}; null for NAN. The
 * caller's; NULL when out of memory. */
json_t *sample_json(const struct sample *s) __attribute__((warn_unused_result));
/* The same read back from JSON of any origin: what is missing, of another type, below 0 or beyond 2^63 is NAN, threads
 * without a name are left out. */
void sample_read(const json_t *o, struct sample *out);

#endif
