/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a step that did not hold all of its clients failed gracefully: docs/results.md, "Graceful failure". Pure. */
#ifndef RAMPART_LOADGEN_GRACEFUL_H
#define RAMPART_LOADGEN_GRACEFUL_H

#include <stddef.h>
#include <stdint.h>

struct step;

enum graceful {
	GRACEFUL_YES,
	GRACEFUL_NO,
	GRACEFUL_BUT_SLOW,	/* nothing is amiss but that clients waited in vain: more time may be all they needed */
	GRACEFUL_UNKNOWN,	/* the server could not be asked, or nobody connected afterwards */
};

/* Judges a step that was collected. `whole_before` is the largest number of clients, below the step's, that an earlier
 * step of the run held wholly; 0: none. `why` gets what is missing in words; it is empty for GRACEFUL_YES. */
enum graceful graceful_judge(const struct step *s, uint32_t whole_before, char *why, size_t size);

/* So many clients must be held at least. */
uint32_t graceful_least_held(uint32_t target, uint32_t whole_before);

#endif
