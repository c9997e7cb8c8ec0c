/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker publishes: counters and histograms. One writer, the worker's thread; any thread may read them at any
 * time.
 */
#ifndef RAMPART_LOADGEN_WORKER_STATS_H
#define RAMPART_LOADGEN_WORKER_STATS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/counter.h"
#include "common/effective/effective.h"
#include "common/wire/fail.h"
#include "common/wire/fail_table.h"
#include "loadgen/traffic/step_counters.h"
#include "loadgen/traffic/workload.h"

struct hist;

/* Full and resumed TLS handshakes are kept apart. */
enum handshake_kind { HANDSHAKE_FULL, HANDSHAKE_RESUMED, HANDSHAKE_N };

/* Histograms in struct worker_stats. */
#define WORKER_HISTS (HANDSHAKE_N * (STAGE_TIMED + 1) + WORKLOAD_KINDS_MAX + 6)

/* Operations of each active client while measuring: number of clients, sum, sum of squares, extremes. */
struct worker_fairness {
	counter n, sum, min, max;
	_Atomic double squares;
};

/* Measured operations of a kind (struct workload), from when they were due. */
struct worker_kind {
	counter measured;
	struct hist *response;
};

/* Measured operations of a stream: their time, and the part of it in which an earlier one of the same client and stream had
 * not ended. */
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
	counter away;		/* clients that left or were lost, and are not back yet */
	counter unproved;	/* 1: the server failed to prove itself so often in a row that no client connects any more */
	counter messages, messages_measured, in_flight;		/* operations of the workload */
	struct worker_kind kinds[WORKLOAD_KINDS_MAX];		/* where the workload has kinds */
	struct worker_stream streams[WORKLOAD_STREAMS_MAX];	/* where it has several streams */
	counter sends_measured;		/* SENDs that carried them, where several messages may share one */
	counter measure_start_ns, measure_end_ns;
	/* Of the operations in flight at that begin and at that end: the time since they were due. `response` has the first whole,
	 * though it was before the measured time, and nothing of the second. */
	counter carried_in_ns, carried_out_ns;
	counter iterations;	/* with --iterations: each client has ended so many operations, if it is not gone */
	counter bytes_sent, bytes_received;
	counter one_sided_bytes;	/* of both, that of READs, WRITEs and atomics */
	counter fulfilled;	/* number of the last order that was fulfilled */
	counter cpu_ns;		/* of the thread */
	counter qps, cqs, mrs, pinned_bytes, bufs_missing;
	counter completions, polls, wakeups;	/* since the worker began: struct pump_counts of its rails added up */
	struct worker_fairness fair;
	struct hist *stages[HANDSHAKE_N][STAGE_TIMED];
	struct hist *psn_generate;	/* a part of the stage psn_exchange */
	struct hist *total[HANDSHAKE_N];	/* from the intended start until live */
	struct hist *away_ns;	/* from leaving to being connected again, while measuring */
	struct hist *outage_ns;	/* from losing a connection to being connected again */
	struct hist *response;	/* of operations while measuring, from when they were due */
	struct hist *service, *lag;	/* open loop: from when they were sent; and from due to sent */
	struct effective effective;	/* published with the rest; what a queue pair has, when connecting is over */
	struct fail_table failures, retried;
};

/* Makes the histograms; all counters are 0. 0 or -ENOMEM; worker_stats_release in either case. */
int worker_stats_init(struct worker_stats *st) __attribute__((warn_unused_result));
void worker_stats_release(struct worker_stats *st);
/* A step begins: everything of a step is 0 again. */
void worker_stats_reset(struct worker_stats *st);

static inline void counter_take(counter *c)
{
	counter_set(c, counter_get(c) - 1);
}

#endif
