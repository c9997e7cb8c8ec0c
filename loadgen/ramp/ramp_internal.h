/* Between ramp.c, the state machine of a run, and ramp_run.c, which tells it what happened.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_RAMP_INTERNAL_H
#define RAMPART_LOADGEN_RAMP_INTERNAL_H

#include "common/base/clock.h"
#include "loadgen/ramp/ramp.h"

/* For an answer of the server. */
#define RAMP_CONTROL_TIMEOUT_NS (30 * NS_PER_S)

/* The only writer of the phase: sets its deadline, and asks and orders what it needs. */
void ramp_enter(struct ramp *r, enum ramp_phase phase);
/* Goes on when the running phase has all it waits for. */
void ramp_advance(struct ramp *r);

/* The run ends after this step; the first reason counts. */
void ramp_stop_because(struct ramp *r, enum stop_reason reason, const char *detail);

void ramp_begin_step(struct ramp *r);
/* Our server ended: another one, and workers for it, for the next step. */
void ramp_restart_server(struct ramp *r);
/* Collects, judges and writes the step; begins the next or ends the run. */
void ramp_end_step(struct ramp *r);

/* Length of an interval of the measured phase. */
uint64_t ramp_interval_ns(const struct ramp *r);
/* A phase's deadline passed. */
void ramp_on_deadline(struct ev_loop *loop, ev_timer *w, int revents);

#endif
