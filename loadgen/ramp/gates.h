/* SPDX-License-Identifier: BSD-2-Clause */
/* Gates at which the hosts of a run wait for each other. The leader (rank 0) acts for all hosts: it announces steps,
 * asks the servers, and adds up the hosts' results. The other hosts, the members, follow the leader's steps. A run on
 * one host is its own leader and passes each gate at once. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_GATES_H
#define RAMPART_LOADGEN_GATES_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct ramp;
struct step_figures;

enum gate {
	GATE_MET,		/* all have workers and proof of the servers: the leader compares the RDMA devices */
	GATE_READY,		/* the step is announced and the clocks are compared: all connect at one moment */
	GATE_CONNECTED,		/* the server is asked for its count of clients, then all start their traffic */
	GATE_WARM,		/* the server's counters are read, then all start to measure at one moment */
	GATE_MEASURED,		/* no host records any more: the server's counters are read, then all clients leave */
	GATE_COUNTED,		/* the hosts' results are added up */
	GATE_N,
};

/* The actions at a gate. */
struct gate_rule {
	const char *name;		/* in the messages between the hosts */
	bool at_one_moment;		/* all hosts go on at the same moment, which the leader sets */
	void (*lead)(struct ramp *r);	/* the leader's part when all hosts have arrived */
	void (*pass)(struct ramp *r);	/* what each host does when the leader has released the gate; NULL: nothing */
};

/* News from the leader that a member looks for. */
enum gates_news { GATES_NOTHING, GATES_STEP, GATES_END };

/* True if there are other hosts to wait for. */
bool gates_has_others(const struct ramp *r);
/* Arrives at a gate. This host goes on when all hosts have arrived and the leader has done its part. */
void gates_arrive(struct ramp *r, enum gate g);
/* Leader: releases the gate after doing its part, so that all hosts go on. */
void gates_release(struct ramp *r, enum gate g);

/* Leader: announces the step that begins to the members. */
void gates_announce(struct ramp *r);
/* Leader: sends the servers' descriptions to the members, which do not ask the servers themselves. */
void gates_tell_infos(struct ramp *r);
/* Leader: tells the members that the run is over. */
void gates_tell_end(struct ramp *r);

/* Member: looks whether the leader has announced the next step or the run's end. A step's figures go to *f; the caller
 * has to check them against the workload. */
enum gates_news gates_read_news(struct ramp *r, struct step_figures *f);
/* Leader, at GATE_MET: ends the run if hosts have devices of different kinds, which would not measure the same. */
void gates_compare_fabrics(struct ramp *r);
/* This host leaves the others and tells them `why`. The caller ends its part of the run (RAMP_STOP). */
void gates_quit(struct ramp *r, const char *why);
/* How long this host waits at the gate for the others. */
uint64_t gates_timeout_ns(const struct ramp *r);
/* The gate's deadline has passed: the leader removes absent hosts (the `first` time); a member gives up the leader. */
void gates_late(struct ramp *r, bool first);
/* Member: gives up the leader if it has been silent for too long. */
void gates_await_late(struct ramp *r);
/* Call when this host's clients leave: the other hosts no longer wait for it to finish measuring. */
void gates_leave(struct ramp *r);

/* Call at each tick: reports this host's progress to the others, and its wish to end the step, if any. */
void gates_tick(struct ramp *r);

/* Clients of all hosts that were connected when connecting ended; known from GATE_CONNECTED on. */
uint32_t gates_connected(const struct ramp *r);

struct team_events;
extern const struct team_events gates_events;

#endif
