/* SPDX-License-Identifier: BSD-2-Clause */
/* Orders from the main thread to a worker. None is lost: the main thread waits for room, which the worker makes in the
 * next turn of its loop.
 */
#ifndef RAMPART_LOADGEN_MAILBOX_H
#define RAMPART_LOADGEN_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/wire/fail.h"

enum worker_order {
	ORDER_NONE,
	ORDER_CONNECT,		/* make connections, up to a stage; fulfilled when each is there or has failed */
	ORDER_STAGE,		/* clients that wait before a stage go on, up to the next; fulfilled likewise */
	ORDER_TRAFFIC,		/* start the workload, unmeasured; fulfilled when every client has sent */
	ORDER_MEASURE,		/* record operations from here on; fulfilled at once, or with --iterations when every client has
				 * begun the measured ones */
	ORDER_STOP,		/* send no more; fulfilled when nothing is in flight and all clients that left are back */
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
	uint64_t rate;		/* operations a second of all clients; 0: no --rate */
	bool alone;		/* ORDER_CONNECT: outside the steps; no TLS session is resumed or kept */
	enum stage upto;	/* ORDER_CONNECT, ORDER_STAGE: the last stage to enter */
};

struct order {
	enum worker_order what;
	struct worker_task task;
	uint64_t number;
};

#define MAILBOX_MAX 16

struct mailbox {
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct order orders[MAILBOX_MAX];
	uint32_t n;
	bool closed;
};

void mailbox_init(struct mailbox *m);
void mailbox_release(struct mailbox *m);

/* Puts an order behind the others, and waits while there is no room. Main thread. False: the mailbox is closed, and the
 * order will never be carried out. */
bool mailbox_put(struct mailbox *m, const struct order *o);
/* Takes all orders, in their sequence. Returns how many. Worker's thread. */
uint32_t mailbox_take(struct mailbox *m, struct order out[MAILBOX_MAX]);
/* The worker takes no more orders: mailbox_put does not wait any longer. Any thread. */
void mailbox_close(struct mailbox *m);

#endif
