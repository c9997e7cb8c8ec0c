/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that leave and come back while the workload runs (--churn).
 *
 * Clients leave in turn, at an even rate. A leaving client sends no more, waits for its replies, closes its connection,
 * and connects again as soon as the pace allows. If no client is connected, the next one to return leaves at once: the
 * schedule falls behind, but no departure is skipped. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_CHURN_H
#define RAMPART_LOADGEN_CHURN_H

#include <stdint.h>

#include <ev.h>

#include "loadgen/worker/connector.h"

struct churn {
	struct connector *connector;
	ev_timer timer;
	uint32_t of_all;		/* clients of all workers in this step */
	uint32_t cursor;		/* the client that leaves next */
	uint64_t start_ns, left;	/* start of the schedule, and clients that have left since */
};

/* Prepares churn of the clients of `k`, which must outlive it. */
void churn_init(struct churn *ch, struct connector *k);
/* Until churn_stop, clients leave at this worker's share of the rate. Does nothing without --churn. */
void churn_start(struct churn *ch, uint32_t of_all);
void churn_stop(struct churn *ch);
/* Call when a client that had left or been lost is connected again. */
void churn_on_back(struct churn *ch, struct wclient *wc);

#endif
