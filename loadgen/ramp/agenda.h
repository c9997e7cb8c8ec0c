/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which step of the ramp, or which probe of the search for capacity, comes next. Pure. */
#ifndef RAMPART_LOADGEN_AGENDA_H
#define RAMPART_LOADGEN_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/output/outcome.h"

struct step;

struct agenda {
	uint32_t target;			/* clients of the next step */
	uint64_t rate;				/* offered rate of the next step; 0: no --rate */
	uint32_t step_index, size_index, rate_index, repetition;	/* position of the next step */
	struct capacity_probe probe;		/* in a search: the next or running probe */
	uint32_t knee_probes;			/* probes made for the knee */
	uint32_t disturbed;			/* disturbed probes in a row, which are repeated */
};

/* Sets the first step. */
void agenda_init(struct agenda *a, const struct outcome *oc);

/* Evaluates the running step, after step_collect, and tells the search; `broke`: the step had a hard failure. */
void agenda_tell(struct agenda *a, struct outcome *oc, const struct step *s, bool broke);

/* Goes on to the next step. False when there is none; then `oc` gets the reason, unless the run was stopped already. */
bool agenda_next(struct agenda *a, struct outcome *oc);

/* True if the running step is the last of a ramp. False in a search, whose end is not known in advance. */
bool agenda_is_last(const struct agenda *a, const struct loadgen_config *c);

/* After the last step that ran: adds the steps that a ramp did not reach to the verdict. Does nothing for a search,
 * whose verdict is added when the run stops. */
void agenda_add_rest(const struct agenda *a, struct outcome *oc);

/* `probe` of the running step in run.json: null without a search. NULL when out of memory. */
json_t *agenda_probe_json(const struct agenda *a, const struct loadgen_config *c);

#endif
