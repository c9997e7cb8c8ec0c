/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker: one thread, one loop, its share of the clients.
 *
 * The main thread gives orders through a mailbox and reads the counters the worker publishes (worker_stats.h). The
 * orders of a step are given in the sequence of enum worker_order; the worker calls on_progress when one is fulfilled.
 */
#ifndef RAMPART_LOADGEN_WORKER_H
#define RAMPART_LOADGEN_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/worker_stats.h"
#include "loadgen/worker/mailbox.h"

struct psn_registry;
struct trace;
struct worker;

/* The server's address on a rail, and the device that reaches it. */
struct worker_rail {
	struct addr server;
	const char *verify_name;
	const char *device;		/* NULL: any device that reaches the server */
	struct psn_registry *psns;	/* shared by all workers of this server and rail; NULL: without RDMA */
};

struct worker_config {
	const struct loadgen_config *cfg;
	struct client_config client;	/* max_conns: worker's share of the largest step; server, device: in `rails` */
	struct worker_rail rails[RAILS_MAX];
	uint32_t n_rails;
	uint32_t index, n_workers;
	/* Called on the worker's thread when an order is fulfilled, measuring has ended, or all devices failed. */
	void (*on_progress)(void *arg);
	void *arg;
};

/* Makes the worker and its resources in the calling thread. 0 or -errno with a line in `err`. */
int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Starts the worker's thread. 0 or -errno with a line in `err`. */
int worker_start(struct worker *w, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Joins the thread and frees the worker, after ORDER_QUIT or if the worker was never started. NULL-safe. */
void worker_free(struct worker *w);

/* Main thread: gives an order; `task` may be NULL for orders without parameters. The previous order need not be
 * fulfilled. Waits while the mailbox is full. A worker that is broken or has quit ignores orders. */
void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task);
/* Main thread: true when the last order given is fulfilled. */
bool worker_is_done(const struct worker *w);
/* -errno if every device of the worker failed: the worker is broken, its thread has ended, and its clients are lost.
 * Else 0. Sets `devices`, unless NULL, to the devices' names. Any thread. */
int worker_failure(const struct worker *w, const char **devices);

const struct worker_stats *worker_stats(const struct worker *w);
/* The most clients an order may give to the worker (max_conns in struct worker_config). */
uint32_t worker_clients_max(const struct worker *w);
const struct dev *worker_dev(const struct worker *w, uint32_t rail);
/* Main thread, while the worker is not measuring: the raw times of the step; NULL without --trace. */
const struct trace *worker_trace(const struct worker *w);

#endif
