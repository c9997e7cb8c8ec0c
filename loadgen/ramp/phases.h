/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine of a run: the phase that the run is in, and how it enters another. order.c has the actions of each
 * phase and their order. ramp.c reports external events. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_PHASES_H
#define RAMPART_LOADGEN_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "loadgen/verdict/resource_floors.h"
#include "loadgen/ramp/agenda.h"
#include "loadgen/ramp/alone.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/ramp/current.h"
#include "loadgen/ramp/gates.h"
#include "loadgen/ramp/progress.h"
#include "loadgen/server_under_test/proof.h"
#include "loadgen/server_under_test/suts.h"
#include "loadgen/ramp/watching.h"
#include "loadgen/output/outcome.h"
#include "loadgen/output/step_files.h"
#include "loadgen/traffic/workload.h"

struct results;
struct team;

enum ramp_phase {
	RAMP_SERVER,		/* waits until the server we started is ready; 60 s */
	RAMP_PROVE,		/* a member waits until its own TLS connections have proved the servers; 60 s */
	RAMP_INFO,		/* waits for the server's description */
	RAMP_FLOOR,		/* waits until --floor clients have connected, one at a time; 60 s */
	RAMP_MARK,		/* waits until the server has reset its stage times; 60 s */
	RAMP_CONNECT,		/* waits until every client is connected or has failed; --step-timeout */
	RAMP_COUNT,		/* waits for the server's count of clients */
	RAMP_START,		/* waits until every client has been told to start sending */
	RAMP_WARMUP,		/* waits for --warmup, or for --warmup-iterations */
	RAMP_BEGIN,		/* waits for the server's counters at the start of the measured time */
	RAMP_MEASURE,		/* waits for --duration, or for --cycles or --iterations */
	RAMP_DRAIN,		/* waits for operations in flight, clients that are away, and the server's counters;
				 * 15 s, then clients that are still busy or away are given up */
	RAMP_DISCONNECT,	/* waits until all clients are gone; 120 s and 10 ms per client */
	RAMP_RESTORE,		/* waits until the server's pools are restored; 40 s, longer with --churn or --phased */
	RAMP_FOLLOW_UP,		/* as RAMP_FLOOR, after a step that did not hold all its clients, and after the last */
	RAMP_GATE,		/* waits for the other hosts (`gate`); hosts that miss its deadline are removed */
	RAMP_AWAIT,		/* a member waits for the leader's next step or the run's end; TEAM_SILENCE_NS */
	RAMP_STOP,		/* waits until the server we started has ended; 20 s */
	RAMP_DONE,
	RAMP_N,
};

/* The actions of a phase. Functions that it does not need are NULL. */
struct phase {
	const char *name;
	uint64_t timeout_s;		/* used if timeout_ns is NULL; a time of 0: no deadline */
	uint64_t (*timeout_ns)(const struct ramp *r);
	void (*begin)(struct ramp *r);	/* makes the phase's requests and orders */
	void (*advance)(struct ramp *r);	/* goes on if everything the phase waits for is there */
	void (*on_stats)(struct ramp *r, json_t *report);	/* takes the sum of the servers' reports */
	enum step_report keeps;		/* which report of the step a server's answer is kept as */
	void (*on_deadline)(struct ramp *r);
	enum ramp_phase late;		/* phase entered at the deadline if there is no on_deadline */
};

struct ramp {
	const struct loadgen_config *cfg;
	struct results *results;	/* owned by the caller, as is `outcome` */
	struct outcome *outcome;
	struct ev_loop *loop;
	const struct phase *phases;	/* the actions of each phase, RAMP_N entries */
	const struct gate_rule *gates;	/* the actions at each gate, GATE_N entries */
	enum ramp_phase phase;
	uint32_t phase_number;		/* counts the phases entered */
	uint64_t phase_start_ns;
	uint32_t n_late;		/* number of times that this phase's deadline has passed */
	bool report_asked, report_arrived;	/* the server's report that this phase waits for */
	uint32_t restarts;		/* in a search: restarts of the server we started */
	struct suts suts;
	struct proof proof;		/* member: the servers' proof of identity */
	struct crew crew;
	struct agenda agenda;
	struct current current;
	struct alone alone;
	struct step_files files;
	struct progress progress;
	struct run_metrics *metrics;	/* NULL: none are wanted */
	struct watching watching;
	struct floors floors;
	struct team *team;		/* owned by the caller; NULL: the run has this host only */
	uint32_t step_number;		/* from 1, the same on all hosts */
	enum gate gate;			/* the last gate that this host arrived at */
	bool gate_traffic;		/* whether traffic follows, as the leader said when it released the gate */
	bool measured_arrived, measured_all, measured_released;	/* state of GATE_MEASURED in this step */
	bool cut_told;			/* the members have been told that this step ends early */
	ev_timer gate_at;		/* fires at the moment when all hosts go on */
	ev_timer deadline, tick;
	ev_timer interval;		/* ends the intervals of the measured time */
	ev_async fulfilled;		/* a worker fulfilled an order, or its device failed */
	ev_signal interrupt, terminate;
	ev_prepare turn_end;
};

/* Name of the running phase, in events.ndjson and on the terminal. */
const char *ramp_phase_name(const struct ramp *r);

/* The only writer of the phase: sets its deadline, and makes the phase's requests and orders. */
void ramp_enter(struct ramp *r, enum ramp_phase phase);
/* Records that the main thread runs. Call at every tick. */
void ramp_beat(struct ramp *r);
/* Goes on to the next phase if the running phase has everything it waits for. */
void ramp_advance(struct ramp *r);
/* Call when the phase's deadline has passed. */
void ramp_on_deadline(struct ramp *r);
/* Moves the running phase's deadline to `ns` from now. */
void ramp_wait_on(struct ramp *r, uint64_t ns);
/* Keeps one server's report requested in the running phase; reports of other servers may still be missing. */
void ramp_keep_report(struct ramp *r, uint32_t target, json_t *report);
/* Takes the sum over all servers of STATS requested in the running phase. */
void ramp_on_stats(struct ramp *r, json_t *report);
/* Stops the traffic, if there is any; the step goes on with RAMP_DRAIN. */
void ramp_stop_traffic(struct ramp *r);
/* Ends the running step early, because the run is to end; its results so far are kept. */
void ramp_cut_short(struct ramp *r);

#endif
