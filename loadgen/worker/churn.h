/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that leave and come back while the workload runs (--churn).
 *
 * Clients leave in turn, at an even rate. A leaving client sends no more, waits for its replies, closes its connection,
 * and connects again as soon as the pace allows. If no client is there to leave, because all are on their way, the next
 * one to be back leaves: the schedule falls behind, and no departure of it is dropped. Owning thread: the worker's.
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
	uint64_t start_ns, left;	/* since when clients leave, and how many have left since */
};

/* For the clients of a connector, which must outlive it. */
void churn_init(struct churn *ch, struct connector *k);
/* Clients leave from here on, this worker's share of all, until churn_stop. Without --churn nothing happens. */
void churn_start(struct churn *ch, uint32_t of_all);
void churn_stop(struct churn *ch);
/* A client that left, or was lost, is connected again. */
void churn_on_back(struct churn *ch, struct wclient *wc);

#endif
