/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends steps, and decides which one is next. Owning thread: main. */
#ifndef RAMPART_LOADGEN_STEPS_H
#define RAMPART_LOADGEN_STEPS_H

#include "loadgen/ramp/phases.h"

/* Checks the step's parameters, and makes the step with the clients that were dealt (current.h). False: the run
 * ends. */
bool steps_prepare(struct ramp *r, const struct step_figures *f);
/* Leader: begins the step that is next on the agenda. */
void steps_begin(struct ramp *r);
/* Call when all of the step's clients are gone. After a step that went wrong, and after the last one, --floor clients
 * first connect one at a time (not in a search); then the step is concluded. */
void steps_end(struct ramp *r);
/* Records the step, then begins the next one or ends the run. */
void steps_conclude(struct ramp *r);

/* Records and logs that this machine is out of memory. The caller ends the run. */
void steps_stop_without_memory(struct ramp *r);

#endif
