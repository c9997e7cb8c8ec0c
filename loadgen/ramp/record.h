/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of a step that is over: its element of run.json, its files, and what follows from it for those to come.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_RECORD_H
#define RAMPART_LOADGEN_RECORD_H

#include <jansson.h>

struct ramp;

/* Adds up what the workers counted in the running step, and writes its part of the trace. Before the workers are given
 * anything else to do. */
void record_collect(struct ramp *r);
/* What this host counted in the running step, which was collected, for the leader. NULL when out of memory. */
json_t *record_hand_in(const struct ramp *r);
/* Leader: what all hosts counted takes the place of what this one did. A run of one host: nothing. */
void record_merge(struct ramp *r);
/* Judges and writes the running step, which was collected, and ends it. */
void record_step(struct ramp *r);

#endif
