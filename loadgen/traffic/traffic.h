/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins, counts and times the operations of a worker's clients.
 *
 * In a closed loop each active client keeps --inflight operations of each stream in flight. Replacements for ended
 * operations begin at the end of the batch of completions that ended them, so that they share a doorbell. With
 * --total-inflight the worker's active clients begin operations in turn, while fewer than the worker's part of the
 * total are in flight.
 * In the open loop (open_loop.h) operations begin when they are due. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_TRAFFIC_H
#define RAMPART_LOADGEN_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rails.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/client_memory.h"
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
	struct ep *ep;			/* endpoint of the first rail */
	struct ep *eps[RAILS_MAX];
	uint32_t n_rails, n_lanes;	/* n_lanes: connections of a client (loadgen_n_lanes) */
	uint32_t worker, n_workers;	/* the worker's index, and the number of workers */
	uint32_t n_clients;		/* this worker's clients in the largest step */
	struct memory memory;

	/* Owned: */
	struct wclient *clients;
	struct stream_times *rings;	/* one for each stream of each client */
	uint64_t ring_mask;		/* number & ring_mask: operation's index in its ring of --inflight or more */
	struct lane_plan plans[WORKLOAD_STREAMS_MAX];	/* only for workloads with plans */
	struct trace *trace;		/* NULL: no --trace */

	/* In this step: */
	uint64_t bytes;			/* size of an operation */
	uint64_t rate;			/* operations per second of all clients; 0: no --rate */
	uint32_t active;		/* clients 0 to active - 1 send */
	uint32_t active_of_all;		/* clients of all workers that send */
	bool on;			/* operations may begin */
	bool measuring;
	bool records_more;		/* record_more() is called for each measured operation */
	uint64_t allowed;		/* operations that each stream of a client may begin in the step */
	uint64_t last_end_ns;		/* when the last measured operation ended; 0: none has */
	uint64_t begin_ns;		/* begin time of the operations that workload->start is called for */
	uint64_t in_flight;
	uint64_t budget;		/* most operations in flight (--total-inflight); 0: `inflight` of each client */
	uint32_t turn;			/* client whose turn it is to begin an operation of the budget */
	uint64_t batch, batch_ns;	/* number of the last batch that was timed, and when */
};

/* The times of an operation in flight. */
static inline struct stream_times *traffic_times(const struct traffic *t, const struct stream *s, uint64_t number)
{
	return &s->times[number & t->ring_mask];
}

/* Makes the clients, after the worker has set its fields. 0 or -ENOMEM; call traffic_release in either case. */
int traffic_init(struct traffic *t) __attribute__((warn_unused_result));
void traffic_release(struct traffic *t);

/* Prepares a step, without beginning operations. `active_before`: active clients of the workers before this one. */
void traffic_begin_step(struct traffic *t, uint64_t bytes, uint32_t active, uint32_t active_before,
			uint32_t active_of_all, uint64_t rate);
/* Starts recording operations. With --iterations none is in flight at this point, and the measured ones may begin now:
 * the caller starts the clients again. */
void traffic_measure(struct traffic *t);
/* With --iterations: true if all operations that may begin have ended, except those of clients that are gone. */
bool traffic_is_through(const struct traffic *t);
/* Stops beginning and recording operations. */
void traffic_stop(struct traffic *t);
/* Begins as many operations as may begin, if this client is live and active. */
void traffic_start_client(struct wclient *wc);
/* Like traffic_start_client, for a client that is connected again after an outage: in the open loop it first begins the
 * operations that were due during the outage. */
void traffic_resume_client(struct wclient *wc);
/* Call when a client's first connection begins or its last one is gone: forgets its operations. Those that were in
 * flight when a connection was lost (--reconnect) will begin again. */
void traffic_reset(struct wclient *wc);

static inline bool traffic_is_idle(const struct wclient *wc)
{
	return wc->streams[0].begun == wc->streams[0].done && wc->streams[1].begun == wc->streams[1].done;
}

/* Functions that workloads call: */

/* Begins one operation; the workload posts it next. */
void traffic_begin(struct traffic *t, struct wclient *wc, unsigned stream);
/* Ends the oldest `n` operations of the stream. May close the connection. */
void traffic_end(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
/* The current time. All completions of a batch get the time at which it was first asked for, to save clock readings. */
uint64_t traffic_now_ns(struct traffic *t);
/* The `shift` of payload_text for a client's operation. */
uint32_t traffic_pattern(const struct traffic *t, const struct wclient *wc, uint64_t number);
/* Counts an operation whose data were compared; `right`: they matched. */
void traffic_checked(struct traffic *t, bool right);

#endif
