/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a run ends; what broke in a step, on which side, for want of what. Pure. */
#ifndef RAMPART_LOADGEN_BREAKING_H
#define RAMPART_LOADGEN_BREAKING_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail.h"

struct step;

enum stop_reason {
	STOP_NOT,		/* it goes on */
	STOP_MAX_REACHED,
	STOP_ERROR_RATE,
	STOP_STEP_TIMEOUT,
	STOP_RESOURCE_EXHAUSTED,
	STOP_ABORTED,		/* by a signal */
	STOP_SERVER_LOST,
	STOP_GENERATOR_FAILED,
	STOP_GENERATOR_SATURATED,	/* a search for capacity went as far as the generator could */
	STOP_MEMORY_FLOOR,	/* a machine had less memory left than --memory-floor */
	STOP_CPU_FLOOR,		/* or less idle CPU than --cpu-floor */
	STOP_HOST_LOST,		/* another load host of the run is gone */
	STOP_N,
};
extern const char *const stop_reason_names[STOP_N];

/* By its name; STOP_NOT when it is none. */
enum stop_reason stop_reason_of(const char *name);

/* Whether the ramp ends with this step: when it lost more than 1 % of its clients, or took too long to
 * connect them. `text` then says what failed, where, and what to do. */
enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size);

struct breaking {
	enum stop_reason reason;	/* error_rate, step_timeout, resource_exhausted, server_lost, generator_failed, a floor */
	const char *resource;		/* nofile, memory, ports, ...: docs/capacity.md */
	const char *side;		/* server, generator, network, unknown */
	bool has_failure;
	struct fail fail;		/* the failure that tells the resource, of several the most frequent */
	uint64_t count;
	char text[320];			/* a line for people */
};

/* Of a failure alone: the resource that ran out, and whose; never NULL. */
void breaking_resource(const struct fail *f, const char **resource, const char **side);

/* `reason` and `detail` as stop_judge_step or the end of the server gave them, for a step that was collected. */
void breaking_of(const struct step *s, enum stop_reason reason, const char *detail, struct breaking *out);

/* An element's `hard_failure` in run.json. NULL when out of memory. */
json_t *breaking_json(const struct breaking *b);

#endif
