/* The state machine of a run: steps and their phases. What happens from outside is told to it by ramp.c.
 * Owning thread: main.
 *
 * A step: mark the server's interval, connect all clients, have the server count them, start the traffic, warm up, read
 * the server's counters, measure, stop and read them again, wait for what is in flight, disconnect, and check that the
 * server's pools are as they were.
 */
#ifndef RAMPART_LOADGEN_PHASES_H
#define RAMPART_LOADGEN_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "loadgen/ramp/agenda.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/ramp/current.h"
#include "loadgen/ramp/progress.h"
#include "loadgen/ramp/sut.h"
#include "loadgen/results/outcome.h"
#include "loadgen/results/step_files.h"

struct results;

enum ramp_phase {
	RAMP_SERVER,		/* waits for our server to be ready; 60 s */
	RAMP_INFO,		/* waits for the server's description */
	RAMP_MARK,		/* waits until the server's figures of stages begin anew; 60 s */
	RAMP_CONNECT,		/* waits until every client is connected or has failed; --step-timeout */
	RAMP_COUNT,		/* waits for the server's count of clients */
	RAMP_START,		/* waits until every client has sent */
	RAMP_WARMUP,		/* waits for --warmup */
	RAMP_BEGIN,		/* waits for the server's counters, which the measured time begins with */
	RAMP_MEASURE,		/* waits for --duration, or for --cycles */
	RAMP_DRAIN,		/* waits for operations in flight, clients that are away, and the server's counters; 15 s, then
				 * those clients are given up */
	RAMP_DISCONNECT,	/* waits until all clients are gone; 120 s */
	RAMP_RESTORE,		/* waits until the server's pools are as at the start; 40 s */
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
	bool report_asked, report_arrived;	/* the one this phase waits for */
	uint32_t restarts;		/* of our server, in a search */
	struct sut sut;
	struct crew crew;
	struct agenda agenda;
	struct current current;
	struct step_files files;
	struct progress progress;
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
/* A STATS report that was asked for in the running phase. */
void ramp_on_stats(struct ramp *r, json_t *report);

void ramp_begin_step(struct ramp *r);
/* Stops the traffic, if there is any; the step goes on with RAMP_DRAIN. */
void ramp_stop_traffic(struct ramp *r);
/* Ends the running step early, because the run is to end; its figures so far are kept. */
void ramp_cut_short(struct ramp *r);
/* In RAMP_RESTORE: ends the step. The server cannot say any more whether its pools came back. */
void ramp_give_up_restore(struct ramp *r);

#endif
