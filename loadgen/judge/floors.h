/* SPDX-License-Identifier: BSD-2-Clause */
/* Floors below which a run does not push a machine: memory that is available, CPU that is idle (--memory-floor,
 * --cpu-floor). Judges the samples of both machines as they come. Pure. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_FLOORS_H
#define RAMPART_LOADGEN_FLOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/host/sample.h"
#include "loadgen/config/targets.h"
#include "loadgen/judge/breaking.h"

enum floors_host { FLOORS_GENERATOR, FLOORS_SERVER, FLOORS_HOSTS = FLOORS_SERVER + TARGETS_MAX };

/* The host of one of several servers. */
static inline enum floors_host floors_server(uint32_t target)
{
	return (enum floors_host)(FLOORS_SERVER + target);
}

struct floors {
	double memory_ratio, cpu_ratio;	/* what is to stay free of a machine; 0: no floor */
	bool same_machine;		/* server and generator share it; for the words */
	struct {
		double memory_bytes;	/* of the machine; NAN: not known */
		uint64_t since_ns;	/* the sample that idle time counts from; 0: none yet */
		double busy_s, idle_s;	/* in that sample */
	} of[FLOORS_HOSTS];
};

/* Floors in per cent, as the options have them. */
void floors_init(struct floors *f, uint64_t memory_percent, uint64_t cpu_percent, bool same_machine);
/* What a machine has. */
void floors_set_memory(struct floors *f, enum floors_host host, double memory_bytes);

/* A host's newest sample. STOP_MEMORY_FLOOR or STOP_CPU_FLOOR if the machine has less left than a floor, with `text` that says
 * which machine and how much is left; else STOP_NOT. Memory is that of the sample; idle CPU is judged over FLOORS_CPU_NS,
 * because a moment in which all CPUs are busy harms nobody. What the sample does not know is not judged. */
#define FLOORS_CPU_NS UINT64_C(5000000000)
enum stop_reason floors_judge(struct floors *f, enum floors_host host, const struct sample *s, char *text, size_t size);

#endif
