/* SPDX-License-Identifier: BSD-2-Clause */
/* The running step: gives its orders to the workers, and records its moments and the figures of its intervals. Owning
 * thread: main.
 */
#ifndef RAMPART_LOADGEN_CURRENT_H
#define RAMPART_LOADGEN_CURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/config/config.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/server_under_test/suts.h"
#include "loadgen/measurement/step.h"
#include "loadgen/worker/pulse.h"

struct hist;
struct results;

#define CURRENT_TICK_NS (250 * NS_PER_MS)	/* maximum time between two beats of the main thread */

struct current {
	const struct loadgen_config *cfg;
	struct results *results;	/* receives the events */
	struct step *step;		/* NULL between two steps */
	uint32_t total;			/* clients of all hosts in the step */
	uint32_t dealt[TARGETS_MAX];	/* how many of them each server gets */
	double begin_s;			/* when the step began, in seconds since the results folder was made */
	uint64_t connect_start_ns;	/* clock_now_ns when connecting began */
	uint64_t connect_cpu_start_ns;	/* clock_process_ns at that moment */
	uint32_t reconnects;		/* control sessions restored by the time of MARK */
	uint32_t restarts;		/* server restarts by the time its counters were read before measuring */
	enum stage upto;		/* last stage that connections may enter now */
	uint64_t barrier_ns;		/* when the running stage was allowed to begin (--phased) */
	uint64_t last_cycles, last_cycle_ns;	/* progress of --cycles */
	uint64_t last_moved, last_moved_ns;	/* progress of --iterations: messages and bytes */
	struct hist *now, *before, *interval;	/* response times: up to now, up to the interval's start, within it */
	uint64_t interval_ns;		/* how long the next interval of the measured time should be */
	uint64_t last_interval_ns, last_messages;
	uint64_t last_sample_ns;
	struct pulse pulse;		/* pulse of the main thread */
};

/* 0 or -ENOMEM. */
int current_init(struct current *c, const struct loadgen_config *cfg, struct results *results)
	__attribute__((warn_unused_result));
void current_clear(struct current *c);

/* Distributes the clients of all hosts over the servers; `infos` are the servers' descriptions. */
void current_deal(struct current *c, uint32_t total, const struct suts *suts, json_t *const infos[TARGETS_MAX]);
/* Begins a step with this host's share of the distributed clients. 0 or -ENOMEM. */
int current_begin(struct current *c, const struct crew *crew, uint64_t bytes, uint32_t repetition,
		  const struct suts *suts)
	__attribute__((warn_unused_result));
/* Ends the step and frees it. */
void current_end(struct current *c);

/* Records that the main thread runs. Call every CURRENT_TICK_NS from current_begin until no operation is in flight. */
void current_beat(struct current *c);

/* Gives every worker the order, with its share of the step's clients. */
void current_order(const struct current *c, struct crew *crew, enum worker_order order);

/* The last stage of connecting. */
enum stage current_last_stage(const struct loadgen_config *cfg);
/* Tells the clients to connect; with --phased, up to the first barrier. */
void current_connect(struct current *c, struct crew *crew);
/* Call when all clients are at a barrier (--phased): they enter the next stage if `go_on`. False: no stage follows. */
bool current_next_stage(struct current *c, struct crew *crew, bool go_on);
/* Call when connecting is over: records how long it took, its CPU time, and how many clients are connected. */
void current_connected(struct current *c, const struct crew *crew);

/* Records how many clients are connected, including those that are away if `away_too`. */
void current_hold(struct current *c, const struct crew *crew, bool away_too);
/* True if a server that had clients when connecting ended has none left. */
bool current_lost_all_of_one(const struct current *c, const struct crew *crew);

/* Tells all clients to leave. */
void current_leave(struct current *c, struct crew *crew);

/* Starts or ends the measured time: records the generator's counters and usage. order.c requests the server's
 * reports. */
void current_measure(struct current *c, struct crew *crew);
void current_measured(struct current *c, const struct crew *crew);
/* Ends the running interval of the measured time. If it has lasted less than half of interval_ns, it goes on instead,
 * because it would weigh as much as a full one. */
void current_interval(struct current *c, const struct crew *crew);
/* With --cycles: true if this host's share of --cycles clients has returned, or no client has returned for 60 s. */
bool current_cycles_are_done(struct current *c, const struct crew *crew);

/* With --iterations: true if nothing was transferred for 60 s. Call at every tick while there is traffic. */
bool current_is_stuck(struct current *c, const struct crew *crew);

/* Writes how many clients are in each state, and the number of messages, to events.ndjson: at every call if `changing`,
 * else once a second. `phase` is the phase's name. */
void current_sample(struct current *c, const struct crew *crew, const char *phase, bool changing);

#endif
