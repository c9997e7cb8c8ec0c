/* Why a run ended. Pure. */
#ifndef RAMPART_LOADGEN_STOP_H
#define RAMPART_LOADGEN_STOP_H

#include <stddef.h>

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
	STOP_N,
};
extern const char *const stop_reason_names[STOP_N];

/* By its name; STOP_NOT when it is none. */
enum stop_reason stop_reason_of(const char *name);

/* Whether the ramp ends with this step: when it lost more than 1 % of its clients, or took too long to
 * connect them. `text` then says what failed, where, and what to do. */
enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size);

#endif
