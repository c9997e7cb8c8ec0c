/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges whether a step that did not hold all clients failed gracefully: docs/results.md, "Graceful failure". Pure. */
#ifndef RAMPART_LOADGEN_GRACEFUL_H
#define RAMPART_LOADGEN_GRACEFUL_H

#include <stddef.h>
#include <stdint.h>

struct step;

enum graceful {
	GRACEFUL_YES,
	GRACEFUL_NO,
	GRACEFUL_BUT_SLOW,	/* clients just timed out or were cut off without a reason; more time might help */
	GRACEFUL_UNKNOWN,	/* the server could not be asked, or no client tried to connect afterwards */
};

/* Judges a step after step_collect. `whole_before` is the largest number of clients, below the step's, of which an
 * earlier step of the run held all; 0: none. `why` gets the reason in words; it is empty for GRACEFUL_YES. */
enum graceful graceful_judge(const struct step *s, uint32_t whole_before, char *why, size_t size);

/* The minimum number of clients that must be held. */
uint32_t graceful_least_held(uint32_t target, uint32_t whole_before);

#endif
