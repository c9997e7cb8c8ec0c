/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a run ends, and for a step that broke: which resource ran out, and on which side. Pure. */
#ifndef RAMPART_LOADGEN_BREAKING_H
#define RAMPART_LOADGEN_BREAKING_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail.h"

struct step;

enum stop_reason {
	STOP_NOT,		/* the run goes on */
	STOP_MAX_REACHED,
	STOP_ERROR_RATE,
	STOP_STEP_TIMEOUT,
	STOP_RESOURCE_EXHAUSTED,
	STOP_ABORTED,		/* by a signal */
	STOP_SERVER_LOST,
	STOP_GENERATOR_FAILED,
	STOP_GENERATOR_SATURATED,	/* a search for capacity went as far as the generator could */
	STOP_MEMORY_FLOOR,	/* a machine had less memory left than --memory-floor */
	STOP_CPU_FLOOR,		/* a machine had less idle CPU than --cpu-floor */
	STOP_HOST_LOST,		/* another load host of the run is gone */
	STOP_N,
};
extern const char *const stop_reason_names[STOP_N];

/* The reason with this name; STOP_NOT if there is none. */
enum stop_reason stop_reason_of(const char *name);

/* Why the ramp ends with this step, or STOP_NOT. It ends when more than 1 % of the clients are not held, or connecting
 * took too long. `text` then says what failed, where, and what to do. */
enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size);

struct breaking {
	enum stop_reason reason;	/* error_rate, step_timeout, resource_exhausted, server_lost, generator_failed,
					 * a floor */
	const char *resource;		/* nofile, memory, ports, ...: docs/capacity.md */
	const char *side;		/* server, generator, network, unknown */
	bool has_failure;
	struct fail fail;		/* the failure that reveals the resource; the most frequent of several */
	uint64_t count;
	const char *meaning;		/* what it means and what to do; "" if there is no more to say than `text` */
	char text[320];			/* one line in plain words */
};

/* A machine that had almost no memory left in the step. */
struct breaking_memory {
	bool of_server;
	char text[128];		/* which machine, and how much was left; "": no machine was short of memory */
};

/* The resource that ran out and its side, judged by one failure alone; never NULL. */
void breaking_resource(const struct fail *f, const char **resource, const char **side);

/* Finds what broke in a step, after step_collect; `reason` and `detail` as by stop_judge_step or the server's end. If a
 * machine was short of memory, that explains failures that slowness alone can cause, such as timeouts. */
void breaking_of(const struct step *s, enum stop_reason reason, const char *detail,
		 const struct breaking_memory *memory, struct breaking *out);

/* `hard_failure` of a step in run.json. NULL when out of memory. */
json_t *breaking_json(const struct breaking *b);

#endif
