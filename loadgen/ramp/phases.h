/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine of a run: steps and their phases. What happens from outside is told to it by ramp.c.
 * Owning thread: main.
 *
 * A step: mark the server's interval, connect all clients, have the server count them, start the traffic, warm up, read
 * the server's counters, measure, stop and read them again, wait for what is in flight, disconnect, and check that the
 * server's pools are as they were. Before the first step, and after the last and those that did not go well, clients
 * connect one at a time.
 */
#ifndef RAMPART_LOADGEN_PHASES_H
#define RAMPART_LOADGEN_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "loadgen/judge/floors.h"
#include "loadgen/ramp/agenda.h"
#include "loadgen/ramp/alone.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/ramp/current.h"
#include "loadgen/ramp/gates.h"
#include "loadgen/ramp/progress.h"
#include "loadgen/sut/proof.h"
#include "loadgen/sut/suts.h"
#include "loadgen/ramp/watching.h"
#include "loadgen/results/outcome.h"
#include "loadgen/results/step_files.h"
#include "loadgen/traffic/workload.h"

struct ramp_moves;
struct results;
struct team;

enum ramp_phase {
	RAMP_SERVER,		/* waits for our server to be ready; 60 s */
	RAMP_PROVE,		/* a member waits until its own TLS connections have proved the servers; 60 s */
	RAMP_INFO,		/* waits for the server's description */
	RAMP_FLOOR,		/* waits until --floor clients have connected, one at a time; 60 s */
	RAMP_MARK,		/* waits until the server's figures of stages begin anew; 60 s */
	RAMP_CONNECT,		/* waits until every client is connected or has failed; --step-timeout */
	RAMP_COUNT,		/* waits for the server's count of clients */
	RAMP_START,		/* waits until every client has sent */
	RAMP_WARMUP,		/* waits for --warmup, or for --warmup-iterations */
	RAMP_BEGIN,		/* waits for the server's counters, which the measured time begins with */
	RAMP_MEASURE,		/* waits for --duration, or for --cycles or --iterations */
	RAMP_DRAIN,		/* waits for operations in flight, clients that are away, and the server's counters; 15 s, then
				 * those clients are given up */
	RAMP_DISCONNECT,	/* waits until all clients are gone; 120 s */
	RAMP_RESTORE,		/* waits until the server's pools are as at the start; 40 s */
	RAMP_FOLLOW_UP,		/* waits likewise, after a step that did not hold all its clients, and after the last */
	RAMP_GATE,		/* waits for the other hosts (`gate`); those that miss its deadline are put out */
	RAMP_AWAIT,		/* a member waits for the leader's next step, or the run's end; TEAM_SILENCE_NS without a word */
	RAMP_STOP,		/* waits for our server's end; 20 s */
	RAMP_DONE,
	RAMP_N,
};

struct ramp {
	const struct loadgen_config *cfg;
	struct results *results;	/* the caller's, as is `outcome` */
	struct outcome *outcome;
	struct ev_loop *loop;
	enum ramp_phase phase;
	uint32_t phase_number;		/* counts up with every phase entered */
	uint64_t phase_start_ns;
	uint32_t n_late;		/* deadlines of this phase that have passed */
	bool report_asked, report_arrived;	/* the one this phase waits for */
	uint32_t restarts;		/* of our server, in a search */
	struct suts suts;
	struct proof proof;		/* of the servers, on a member */
	struct crew crew;
	struct agenda agenda;
	struct current current;
	struct alone alone;
	struct step_files files;
	struct progress progress;
	struct watching watching;
	struct floors floors;
	const struct ramp_moves *moves;	/* &ramp_moves */
	/* The leader, when all hosts have their workers: has the servers watched, and then the first step begins. */
	void (*on_all_met)(struct ramp *r);
	struct team *team;		/* the caller's; NULL: this host alone */
	uint32_t step_number;		/* of all hosts, from 1 */
	enum gate gate;			/* the last one that this host arrived at */
	bool gate_traffic;		/* what the leader said when it let it go */
	bool measured_arrived, measured_all, measured_released;	/* of GATE_MEASURED in this step */
	bool cut_told;			/* the others know that this step ends early */
	uint64_t measure_at_ns;		/* when measuring was to begin; 0: at once */
	ev_timer gate_at;		/* the moment at which all go on */
	ev_timer deadline, tick;
	ev_async fulfilled;		/* a worker fulfilled an order, or its device failed */
	ev_signal interrupt, terminate;
	ev_prepare turn_end;
};

/* Of the running phase, as events.ndjson and people have it. */
const char *ramp_phase_name(const struct ramp *r);

/* The only writer of the phase: sets its deadline, and asks and orders what it needs. */
void ramp_enter(struct ramp *r, enum ramp_phase phase);
/* The main thread runs: to be called at every tick. */
void ramp_beat(struct ramp *r);
/* Goes on when the running phase has all it waits for. */
void ramp_advance(struct ramp *r);
/* A phase's deadline passed. */
void ramp_on_deadline(struct ramp *r);
/* A server's report that was asked for in the running phase, before those of the others may be there. */
void ramp_keep_report(struct ramp *r, uint32_t target, json_t *report);
/* STATS of all servers, added up, that was asked for in the running phase. */
void ramp_on_stats(struct ramp *r, json_t *report);
/* The answers to MARK arrived: the servers' statistics when the step began, added up. */
void ramp_on_mark(struct ramp *r, json_t *report);

/* Begins the first step; before it, clients connect one at a time. */
void ramp_begin(struct ramp *r);
void ramp_begin_step(struct ramp *r);
/* Stops the traffic, if there is any; the step goes on with RAMP_DRAIN. */
void ramp_stop_traffic(struct ramp *r);
/* Ends the running step early, because the run is to end; its figures so far are kept. */
void ramp_cut_short(struct ramp *r);
/* In RAMP_RESTORE: ends the step. The server cannot say any more whether its pools came back. */
void ramp_give_up_restore(struct ramp *r);

/* What the gates (gates.h) have the ramp do. */
struct ramp_moves {
	void (*enter)(struct ramp *r, enum ramp_phase phase);
	/* The running phase waits so long from now. */
	void (*wait_on)(struct ramp *r, uint64_t ns);
	void (*cut_short)(struct ramp *r);
	const char *(*phase_name)(const struct ramp *r);
	/* Checks the figures, and makes the step of the clients that were dealt (current.h). False: the run ends. */
	bool (*prepare_step)(struct ramp *r, const struct step_figures *f);
	/* The leader, when all hosts are at a gate: the server's counters are read; what all counted is added up. */
	void (*ask_measured)(struct ramp *r);
	void (*all_counted)(struct ramp *r);
	/* Nobody measures any more: clients may leave. */
	void (*leave_measured)(struct ramp *r);
};
extern const struct ramp_moves ramp_moves;

#endif
