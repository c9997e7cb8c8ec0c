/* The search for capacity as a part of a run: which probe the knee still wants, and what all came to. For ramp_next.c
 * and run_json.c. Owning thread: main. */
#ifndef RAMPART_LOADGEN_FIND_H
#define RAMPART_LOADGEN_FIND_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/ramp/ramp.h"

/* A number of clients next to the knee that was measured only once, to be measured again: the knee is confirmed when
 * both of its sides were measured twice. `of` is CAPACITY_N then. False when it wants none, or had six. */
bool find_knee_probe(struct ramp *r, struct capacity_probe *out);

/* The hard_failure of the step at the breaking point, borrowed; NULL when nothing broke. */
const json_t *find_breaking(const struct ramp *r);

/* The verdict of a search: whether it found what was looked for. */
void find_add_verdict(struct ramp *r);

/* analysis.capacity of run.json (docs/results.md), of a ramp too. NULL when out of memory. */
json_t *find_json(const struct ramp *r);

#endif
