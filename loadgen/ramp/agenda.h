/* SPDX-License-Identifier: BSD-2-Clause */
/* Which step comes next: of the ramp, or of the search for capacity. Pure. */
#ifndef RAMPART_LOADGEN_AGENDA_H
#define RAMPART_LOADGEN_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/results/outcome.h"

struct step;

struct agenda {
	uint32_t target;			/* clients of the next step */
	uint64_t rate;				/* and its offered rate; 0: no --rate */
	uint32_t step_index, size_index, rate_index, repetition;	/* which one that is */
	struct capacity_probe probe;		/* with --find-capacity: the next or running one */
	uint32_t knee_probes;			/* made for the knee */
	uint32_t disturbed;			/* probes in a row that told nothing, because everything stood still for a while */
};

/* Before the first step. */
void agenda_init(struct agenda *a, const struct outcome *oc);

/* Tells what came of the running step, which was collected; `broke`: it was a hard failure. */
void agenda_tell(struct agenda *a, struct outcome *oc, const struct step *s, bool broke);

/* Goes on to the next step. False when there is none: then why is in `oc`, if nothing else has stopped the run. */
bool agenda_next(struct agenda *a, struct outcome *oc);

/* True if the running step is the last of a ramp; what a search ends with is not known before. */
bool agenda_is_last(const struct agenda *a, const struct loadgen_config *c);

/* After the last step that ran: adds those that a ramp did not come to to the verdict. What a search came to is said when
 * it stops. */
void agenda_add_rest(const struct agenda *a, struct outcome *oc);

/* The running step's `probe` in run.json: null without a search. NULL when out of memory. */
json_t *agenda_probe_json(const struct agenda *a, const struct loadgen_config *c);

#endif
