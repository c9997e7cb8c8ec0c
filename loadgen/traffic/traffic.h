/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of a worker's clients: how many may begin, when they began, when they ended.
 *
 * In a closed loop each active client keeps --inflight operations of each stream in flight, and begins others at the end
 * of the batch of completions in which some ended, so that they share a doorbell. In the open loop (open_loop.h)
 * operations begin when they are due. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_TRAFFIC_H
#define RAMPART_LOADGEN_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rails.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/memory.h"
#include "loadgen/traffic/wclient.h"
#include "loadgen/traffic/worker_stats.h"

struct open_loop;
struct trace;

struct traffic {
	/* Over the run, set by the worker: */
	const struct loadgen_config *cfg;
	const struct workload *workload;
	struct worker_stats *stats;
	struct open_loop *open_loop;	/* NULL: closed loop */
	struct ep *ep;			/* the first rail's */
	struct ep *eps[RAILS_MAX];
	uint32_t n_rails;
	uint32_t worker, n_workers;	/* its index, of how many */
	uint32_t n_clients;		/* of the largest step */
	struct memory memory;

	/* Owned: */
	struct wclient *clients;
	struct stream_times *rings;	/* one for each stream of each client */
	uint64_t ring_mask;		/* of a number of an operation; a ring has ring_mask + 1 entries, at least --inflight */
	struct lane_plan plans[WORKLOAD_STREAMS_MAX];	/* where the workload has plans */
	struct trace *trace;		/* NULL: no --trace */

	/* In this step: */
	uint64_t bytes;			/* of an operation */
	uint64_t rate;			/* operations a second of all clients; 0: no --rate */
	uint32_t active;		/* the first so many clients send */
	uint32_t active_of_all;		/* clients of all workers that send */
	bool on;			/* operations begin */
	bool measuring;
	bool records_more;		/* record_more() is called for each measured operation */
	uint64_t allowed;		/* so many operations of each stream of a client may begin in the step */
	uint64_t last_end_ns;		/* when the last measured operation ended; 0: none has */
	uint64_t begin_ns;		/* when the operations begin that the workload is told to start */
	uint64_t in_flight;
	uint64_t batch, batch_ns;	/* the last batch of completions that was timed, and its time */
};

/* The times of an operation in flight. */
static inline struct stream_times *traffic_times(const struct traffic *t, const struct stream *s, uint64_t number)
{
	return &s->times[number & t->ring_mask];
}

/* Makes the clients, from what the worker has set. 0 or -ENOMEM; traffic_release in either case. */
int traffic_init(struct traffic *t) __attribute__((warn_unused_result));
void traffic_release(struct traffic *t);

/* A step begins, without operations. */
void traffic_begin_step(struct traffic *t, uint64_t bytes, uint32_t active, uint32_t active_of_all, uint64_t rate);
/* Operations are recorded from here on. With --iterations none is in flight, and those that are measured may begin: the
 * clients are to be started again. */
void traffic_measure(struct traffic *t);
/* With --iterations: all operations that may begin have ended, those of clients that are gone excepted. */
bool traffic_is_through(const struct traffic *t);
/* No operation begins any more, and none is recorded. */
void traffic_stop(struct traffic *t);
/* Begins what operations may begin, if this client is live and one that sends. */
void traffic_start_client(struct wclient *wc);
/* The same of a client that is connected again after its connection was lost: in the open loop it has the operations to begin
 * that were due meanwhile. */
void traffic_resume_client(struct wclient *wc);
/* A client's first connection begins or its last one is gone: it has no operations. Those that a lost connection had in
 * flight are to begin again. */
void traffic_reset(struct wclient *wc);

static inline bool traffic_is_idle(const struct wclient *wc)
{
	return wc->streams[0].begun == wc->streams[0].done && wc->streams[1].begun == wc->streams[1].done;
}

/* For workloads: */

/* One operation begins; the workload posts it next. */
void traffic_begin(struct traffic *t, struct wclient *wc, unsigned stream);
/* The oldest `n` operations of the stream ended. May close the connection. */
void traffic_end(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
/* The part of the payload's text for a client's operation, as payload_text takes it. */
uint32_t traffic_pattern(const struct traffic *t, const struct wclient *wc, uint64_t number);
/* The data of an operation were compared. */
void traffic_checked(struct traffic *t, bool right);

#endif
