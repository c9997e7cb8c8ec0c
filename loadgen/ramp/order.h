/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a run: the actions of each phase and each gate. Owning thread: main.
 *
 * A step: mark the server's interval, connect all clients, have the server count them, start the traffic, warm up, read
 * the server's counters, measure, stop and read them again, wait for operations in flight, disconnect, and check that
 * the server's pools are restored. Before the first step, after the last, and after steps that went wrong, clients
 * connect one at a time.
 */
#ifndef RAMPART_LOADGEN_ORDER_H
#define RAMPART_LOADGEN_ORDER_H

#include "loadgen/ramp/phases.h"

extern const struct phase order_phases[RAMP_N];
extern const struct gate_rule order_gates[GATE_N];

/* Begins the first step, with clients that connect one at a time before it (--floor). */
void order_begin(struct ramp *r);
/* Takes the answers to MARK: the sum of the servers' statistics at the start of the step. */
void order_on_mark(struct ramp *r, json_t *report);
/* Ends the step in RAMP_RESTORE, because the server can no longer tell whether its pools are restored. */
void order_give_up_restore(struct ramp *r);

#endif
