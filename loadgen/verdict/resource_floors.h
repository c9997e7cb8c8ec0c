/* SPDX-License-Identifier: BSD-2-Clause */
/* Floors of a machine's available memory and idle CPU (--memory-floor, --cpu-floor), below which a run must not push
 * it. Judges the samples of all machines as they arrive. Pure. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_RESOURCE_FLOORS_H
#define RAMPART_LOADGEN_RESOURCE_FLOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/host/sample.h"
#include "loadgen/config/targets.h"
#include "loadgen/verdict/breaking.h"

enum floors_host { FLOORS_GENERATOR, FLOORS_SERVER, FLOORS_HOSTS = FLOORS_SERVER + TARGETS_MAX };

/* The host number of a server. */
static inline enum floors_host floors_server(uint32_t target)
{
	return (enum floors_host)(FLOORS_SERVER + target);
}

struct floors {
	double memory_ratio, cpu_ratio;	/* share of a machine that must stay free; 0: no floor */
	bool same_machine;		/* server and generator share a machine; only changes the text */
	struct {
		double memory_bytes;	/* the machine's memory, or its control group's limit; NAN: not known */
		double cpus;		/* CPU quota of the control group; INFINITY or NAN: none */
		uint64_t since_ns;	/* time of the sample that idle time counts from; 0: none yet */
		double busy_s, idle_s, group_s;	/* CPU times in that sample */
	} of[FLOORS_HOSTS];
};

/* Sets the floors, in per cent as in the options. */
void floors_init(struct floors *f, uint64_t memory_percent, uint64_t cpu_percent, bool same_machine);
/* Sets a host's totals: `memory_bytes` and `cpus` of struct floors. */
void floors_set_limits(struct floors *f, enum floors_host host, double memory_bytes, double cpus);

/* Judges a host's newest sample. STOP_MEMORY_FLOOR or STOP_CPU_FLOOR if the machine has less left than a floor, with
 * `text` saying which machine and how much is left; else STOP_NOT. Memory is judged by this sample alone, idle CPU over
 * FLOORS_CPU_NS, because a moment without idle CPU does no harm. With a CPU quota the unused share of the quota counts
 * too. Figures missing from the sample are not judged. */
#define FLOORS_CPU_NS UINT64_C(5000000000)
enum stop_reason floors_judge(struct floors *f, enum floors_host host, const struct sample *s, char *text, size_t size);

/* True if `least_bytes`, the least memory that a host had available in a step, is so little that its programs wait for
 * memory: the kernel then drops pages of program code that are in use and reads them again. `text` then says which
 * machine, and how much was left. Independent of the floors; NAN is not judged. */
#define FLOORS_SHORT_RATIO 0.08	/* a machine of 512 MiB that thrashed had 5.15 % */
#define FLOORS_SHORT_BYTES 1073741824.0	/* a machine with this much left is not short, even below 8 % */
bool floors_memory_was_short(const struct floors *f, enum floors_host host, double least_bytes, char *text,
			     size_t size);

#endif
