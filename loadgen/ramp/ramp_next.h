/* Which step comes next: of the ramp, or of the search for capacity. For ramp.c. Owning thread: main. */
#ifndef RAMPART_LOADGEN_RAMP_NEXT_H
#define RAMPART_LOADGEN_RAMP_NEXT_H

#include <stdbool.h>

#include "loadgen/ramp/ramp.h"

/* Before the first step. */
void ramp_next_init(struct ramp *r);

/* Keeps what came of the running step, which was collected; `broke`: it was a hard failure. */
void ramp_next_tell(struct ramp *r, bool broke);

/* Goes on to the next step: r->target, size_index and repetition. False when there is none, with the reason in *reason
 * and a line in `text`. */
bool ramp_next(struct ramp *r, enum stop_reason *reason, char *text, size_t size);

/* The running step's `probe` in run.json: null without a search. */
json_t *ramp_next_probe_json(const struct ramp *r);

#endif
