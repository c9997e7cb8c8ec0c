/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress on stderr: one rewritten line on a terminal, otherwise a plain line every 5 s; and the same as JSON, for
 * metrics. Owning thread: main. */
#ifndef RAMPART_LOADGEN_PROGRESS_H
#define RAMPART_LOADGEN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct ramp;

struct progress {
	bool quiet;		/* --quiet: nothing is shown */
	uint64_t last_ns;
};

/* Shows the state of the run; call at every tick. `phase` is the running phase's name. */
void progress_show(struct progress *p, const struct ramp *r, const char *phase);
/* Ends the line on a terminal, so that other text can follow. */
void progress_clear(const struct progress *p);

/* The state of a struct ramp (loadgen/output/run_metrics.h, run_metrics_state). */
json_t *progress_json(const void *ramp);

#endif
