/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the hosts of a run wait for each other, and what the leader (rank 0) does for all of them meanwhile: it announces
 * steps, asks the server, and adds up what the hosts counted. The others take their steps from it. A run of one host is its own leader,
 * and passes each gate at once. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_GATES_H
#define RAMPART_LOADGEN_GATES_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct ramp;

enum gate {
	GATE_MET,		/* all have workers and their proof of the servers: the leader compares the RDMA devices */
	GATE_READY,		/* the step is announced and the clocks are compared: all begin to connect at one moment */
	GATE_CONNECTED,		/* the server is asked for its count, then all begin their traffic */
	GATE_WARM,		/* the server's counters are read, then all begin to measure at one moment */
	GATE_MEASURED,		/* nobody records any more: the server's counters are read, then all leave */
	GATE_COUNTED,		/* what the hosts counted is added up */
	GATE_N,
};

/* False when this host has only itself to wait for. */
bool gates_has_others(const struct ramp *r);
/* This host has nothing more to do before the gate; it goes on when all are there and the leader has done its part. */
void gates_arrive(struct ramp *r, enum gate g);
/* Leader: its part is done, all go on. */
void gates_release(struct ramp *r, enum gate g);

/* The step that begins is made known to all. */
void gates_announce(struct ramp *r);
/* What the servers said of themselves is made known; the other hosts do not ask them. */
void gates_tell_infos(struct ramp *r);
/* The run is over on the leader. */
void gates_tell_end(struct ramp *r);

/* A member waits for the leader: for the next step, or for the end. */
void gates_await(struct ramp *r);
/* This host ends its part of the run: it leaves the others, who hear `why`. */
void gates_quit(struct ramp *r, const char *why);
/* The gate's deadline passed. The `first` time, the leader puts out the absent hosts; a member gives up on the leader. */
void gates_late(struct ramp *r, bool first);
/* A member's: the leader may have been silent for too long. */
void gates_await_late(struct ramp *r);
/* Clients leave: nobody waits for this host's measuring any more. */
void gates_leave(struct ramp *r);

/* To be called at each tick: tells the others how it goes here, and that this host wants the step to end. */
void gates_tick(struct ramp *r);

/* Clients of all hosts that were connected when connecting ended, known from GATE_CONNECTED on. */
uint32_t gates_connected(const struct ramp *r);

struct team_events;
extern const struct team_events gates_events;

#endif
