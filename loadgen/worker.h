/* A worker: one thread, one loop, its share of the clients.
 *
 * The main thread gives orders through a mailbox and reads what the worker publishes (relaxed
 * atomics, and histograms that allow a snapshot at any time). Orders of a step come in the order of
 * enum worker_order; the worker calls on_progress when one is fulfilled.
 */
#ifndef RAMPART_LOADGEN_WORKER_H
#define RAMPART_LOADGEN_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "client/conn.h"
#include "common/counter.h"
#include "common/fail_table.h"
#include "loadgen/config.h"

struct hist;

enum worker_order {
	ORDER_NONE,
	ORDER_CONNECT,		/* make `clients` connections; fulfilled when each is live or has failed */
	ORDER_TRAFFIC,		/* start the workload, unmeasured; fulfilled when every client has sent */
	ORDER_MEASURE,		/* from now on record; fulfilled at once */
	ORDER_STOP,		/* send no more; fulfilled when nothing is in flight */
	ORDER_ABANDON,		/* clients that still wait for a reply fail with a timeout */
	ORDER_DISCONNECT,	/* close all; fulfilled when all are gone */
	ORDER_QUIT,		/* end the thread */
};

/* Written by the worker, read by anybody. */
struct worker_stats {
	counter started, connecting, live, failed, dropped;
	counter leaving;	/* dropped ones that are not torn down yet */
	counter messages, messages_measured, in_flight;
	counter measure_start_ns, measure_end_ns;
	counter bytes_sent, bytes_received;
	counter psn_verified;
	counter fulfilled;	/* number of the last order fulfilled */
	counter cpu_ns;		/* of the thread, at the last turn of the loop */
	counter qps, cqs, mrs, pinned_bytes, bufs_missing;
	struct hist *stages[STAGE_TIMED];
	struct hist *total;	/* from intended start to first reply */
	struct hist *response;	/* round trips while measuring */
	struct fail_table failures;
};

struct worker;

struct worker_config {
	const struct loadgen_config *cfg;
	struct client_config client;	/* max_conns: this worker's share of the largest step */
	uint32_t index, n_workers;
	/* Called on the worker's thread when an order is fulfilled or the worker broke down. */
	void (*on_progress)(void *arg);
	void *arg;
};

/* Makes the worker's resources in the calling thread. 0 or -errno with a line in `err`. */
int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
int worker_start(struct worker *w) __attribute__((warn_unused_result));
/* After ORDER_QUIT was fulfilled or the worker was never started. NULL-safe. */
void worker_free(struct worker *w);

/* Main thread: gives an order; `clients` counts for ORDER_CONNECT. The previous one need not be fulfilled. */
void worker_give(struct worker *w, enum worker_order order, uint32_t clients);
/* Main thread: true when the last order given is fulfilled. */
bool worker_is_done(const struct worker *w);
/* True if the device failed under the worker; it fulfils no more orders. */
bool worker_is_broken(const struct worker *w);

const struct worker_stats *worker_stats(const struct worker *w);
const struct dev *worker_dev(const struct worker *w);

#endif
