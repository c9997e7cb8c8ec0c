/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters and histograms that a worker publishes. Written by the worker's thread only; any thread may read them.
 */
#ifndef RAMPART_LOADGEN_WORKER_STATS_H
#define RAMPART_LOADGEN_WORKER_STATS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/counter.h"
#include "common/observed/observed.h"
#include "common/wire/fail.h"
#include "common/wire/fail_table.h"
#include "loadgen/traffic/step_counters.h"
#include "loadgen/traffic/workload.h"

struct hist;

/* Full and resumed TLS handshakes are kept apart. */
enum handshake_kind { HANDSHAKE_FULL, HANDSHAKE_RESUMED, HANDSHAKE_N };

/* The histograms of a worker; a step has the sums over its workers and hosts. */
#define STEP_HISTS (HANDSHAKE_N * (STAGE_TIMED + 1) + WORKLOAD_KINDS_MAX + 6)
union step_hists {
	struct {
		struct hist *stages[HANDSHAKE_N][STAGE_TIMED];
		struct hist *total[HANDSHAKE_N];	/* from the intended start until live */
		struct hist *kind_response[WORKLOAD_KINDS_MAX];	/* for workloads with kinds */
		struct hist *psn_generate;	/* a part of the stage psn_exchange */
		struct hist *away_ns;	/* from leaving to being connected again, while measuring */
		struct hist *outage_ns;	/* from losing a connection to being connected again */
		struct hist *response;	/* of measured operations, from when they were due */
		struct hist *service, *lag;	/* open loop: from sent to end, and from due to sent */
	};
	struct hist *all[STEP_HISTS];
};
static_assert(sizeof(union step_hists) == STEP_HISTS * sizeof(struct hist *), "all has each histogram");

/* Distribution of measured operations over the active clients, or of times over queue pairs: number of these, sum, sum
 * of squares, extremes. */
struct worker_fairness {
	counter n, sum, min, max;
	_Atomic double squares;
};

/* The same while it is computed; all 0 at first. */
struct fairness_sum {
	uint64_t n, sum, min, max;
	double squares;
};

/* Adds a client that completed `x` operations, or a queue pair that took `x` ns. */
void fairness_add(struct fairness_sum *f, uint64_t x);
void fairness_publish(const struct fairness_sum *f, struct worker_fairness *out);

/* Measured operations of a stream: their total time, and the part of it during which an earlier operation of the same
 * client and stream had not ended. */
struct worker_stream {
	counter took_ns, waited_ns;
	struct worker_fairness fair;
};

struct worker_stats {
#define X(type, name, rule, path) counter name;
	STEP_COUNTERS(X)
#undef X
	counter connecting, live;	/* clients */
	counter parked;		/* clients that wait before a stage */
	counter through;	/* with --phased: clients that completed the present stage */
	counter waiting;	/* clients that wait for another attempt */
	counter leaving;	/* clients that leave or were lost, and are not torn down yet */
	counter away;		/* clients that left or were lost, and have not returned yet */
	counter unproved;	/* 1: no client connects any more, because the server kept failing to prove itself */
	counter messages, messages_measured, in_flight;		/* operations of the workload */
	counter kind_measured[WORKLOAD_KINDS_MAX];		/* for workloads with kinds */
	struct worker_stream streams[WORKLOAD_STREAMS_MAX];	/* for workloads with several streams */
	counter sends_measured;		/* SENDs that carried measured messages, where messages may share SENDs */
	counter measure_start_ns, measure_end_ns;
	/* How long the operations in flight had been due when measuring began and when it ended, summed up. `response`
	 * includes all of carried_in_ns, though it passed before measuring, and none of carried_out_ns. */
	counter carried_in_ns, carried_out_ns;
	counter iterations;	/* with --iterations: operations that every client has ended, except those gone */
	counter bytes_sent, bytes_received;
	counter one_sided_bytes;	/* bytes of READs, WRITEs and atomics in bytes_sent and bytes_received */
	counter fulfilled;	/* number of the last order that was fulfilled */
	counter cpu_ns;		/* CPU time of the thread */
	counter qps, cqs, mrs, pinned_bytes, bufs_missing;
	counter completions, polls, wakeups;	/* since the worker started: sum of struct pump_counts over its rails */
	struct worker_fairness fair;
	struct worker_fairness qp_times;	/* with --qps: of the mean times of single queue pairs, in ns */
	union step_hists hists;
	struct effective effective;	/* published with the counters; settings of a queue pair after connecting */
	struct fail_table failures, retried;
};

/* Makes the histograms; all counters are 0. 0 or -ENOMEM; call worker_stats_release in either case. */
int worker_stats_init(struct worker_stats *st) __attribute__((warn_unused_result));
void worker_stats_release(struct worker_stats *st);
/* Resets the counters, histograms and failure tables of a step. */
void worker_stats_reset(struct worker_stats *st);

static inline void counter_take(counter *c)
{
	counter_set(c, counter_get(c) - 1);
}

#endif
