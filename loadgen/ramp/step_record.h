/* SPDX-License-Identifier: BSD-2-Clause */
/* Records a step that is over: its element of run.json, its files, and its consequences for the steps that follow.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_CONNECT_RECORD_H
#define RAMPART_LOADGEN_CONNECT_RECORD_H

#include <jansson.h>

struct ramp;

/* Adds up the workers' counters of the running step, and writes its part of the trace. Call before the workers get
 * another order. */
void record_collect(struct ramp *r);
/* This host's results of the running step for the leader, after record_collect. NULL when out of memory. */
json_t *record_hand_in(const struct ramp *r);
/* Leader: replaces this host's results by the sum over all hosts. Does nothing in a run on one host. */
void record_merge(struct ramp *r);
/* Judges, writes and ends the running step, after record_collect. */
void record_step(struct ramp *r);

#endif
