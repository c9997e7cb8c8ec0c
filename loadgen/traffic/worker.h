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

#include "client/client.h"
#include "common/base/counter.h"
#include "common/wire/fail_table.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/workload.h"

struct hist;
struct trace;

enum worker_order {
	ORDER_NONE,
	ORDER_CONNECT,		/* make connections, up to a stage; fulfilled when each is there or has failed */
	ORDER_STAGE,		/* those that wait before a stage go on, up to the next; fulfilled likewise */
	ORDER_TRAFFIC,		/* start the workload, unmeasured; fulfilled when every client has sent */
	ORDER_MEASURE,		/* from now on record; fulfilled at once */
	ORDER_STOP,		/* send no more; fulfilled when nothing is in flight and all who left are back */
	ORDER_ABANDON,		/* clients that still wait for a reply or a connection fail with a timeout */
	ORDER_DISCONNECT,	/* close all; fulfilled when all are gone */
	ORDER_QUIT,		/* end the thread */
};

/* What goes with an order. */
struct worker_task {
	uint32_t clients;	/* ORDER_CONNECT: this worker's */
	uint32_t active;	/* and how many of them send */
	uint32_t active_of_all;	/* and of those of all workers */
	uint32_t of_all;	/* and the clients of all workers in this step */
	uint64_t bytes;		/* of an operation */
	enum stage upto;	/* ORDER_CONNECT, ORDER_STAGE: the last stage to enter */
};

/* Full and resumed TLS handshakes are kept apart. */
enum handshake_kind { HANDSHAKE_FULL, HANDSHAKE_RESUMED, HANDSHAKE_N };

/* Written by the worker, read by anybody. */
struct worker_stats {
	counter started, connecting, live, failed, dropped;
	counter parked;		/* wait before a stage */
	counter through;	/* with --phased: are through the present stage */
	counter waiting;	/* wait to be tried again */
	counter leaving;	/* dropped ones that are not torn down yet */
	counter away;		/* left on purpose, and not back yet */
	counter retries;
	counter rails_dropped;	/* by clients that went on with others */
	counter messages, messages_measured, in_flight;		/* operations of the workload */
	counter stream_measured[WORKLOAD_STREAMS_MAX];		/* the same, apart */
	counter sends_measured;		/* SENDs that they came in, where several may share one */
	counter checked, corrupt;	/* with --verify: operations whose data were compared, and were wrong */
	counter measure_start_ns, measure_end_ns;
	counter cycles, cycles_failed;	/* clients that left and came back while measuring, or did not */
	counter bytes_sent, bytes_received;
	counter psn_verified;
	counter fulfilled;	/* number of the last order fulfilled */
	counter cpu_ns;		/* of the thread, at the last turn of the loop */
	counter qps, cqs, mrs, pinned_bytes, bufs_missing;
	/* messages of each active client while measuring: how many clients, sum, sum of squares, extremes */
	counter fair_n, fair_sum, fair_min, fair_max;
	_Atomic double fair_squares;
	struct hist *stages[HANDSHAKE_N][STAGE_TIMED];
	struct hist *total[HANDSHAKE_N];	/* from intended start until live */
	struct hist *away_ns;	/* from leaving to being connected again, while measuring */
	struct hist *response;	/* of operations while measuring, from when they were due */
	struct hist *service, *lag;	/* open loop: from when they were sent; and how long after they were due that was */
	counter late;		/* open loop: operations sent more than 1 ms after they were due */
	struct fail_table failures, retried;
};

struct worker;

/* Where a rail leads. */
struct worker_rail {
	struct addr server;
	const char *verify_name;
	const char *device;		/* NULL: whichever reaches the server */
};

struct worker_config {
	const struct loadgen_config *cfg;
	struct client_config client;	/* max_conns: this worker's share of the largest step; the rest is by rail */
	struct worker_rail rails[RAILS_MAX];
	uint32_t n_rails;
	uint32_t index, n_workers;
	/* Called on the worker's thread when an order is fulfilled, its measured time has ended, or it broke down. */
	void (*on_progress)(void *arg);
	void *arg;
};

/* Makes the worker's resources in the calling thread. 0 or -errno with a line in `err`. */
int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* 0 or -errno with a line in `err`. */
int worker_start(struct worker *w, char *err, size_t err_size) __attribute__((warn_unused_result));
/* After ORDER_QUIT was fulfilled or the worker was never started. NULL-safe. */
void worker_free(struct worker *w);

/* Main thread: gives an order; `task` may be NULL for those that need none. The previous one need not be
 * fulfilled. */
void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task);
/* Main thread: true when the last order given is fulfilled. */
bool worker_is_done(const struct worker *w);
/* True if the device failed under the worker; it fulfils no more orders. */
bool worker_is_broken(const struct worker *w);

const struct worker_stats *worker_stats(const struct worker *w);
const struct dev *worker_dev(const struct worker *w);
/* Main thread, when the worker has stopped: the raw times of the step; NULL without --trace. */
const struct trace *worker_trace(const struct worker *w);

#endif
