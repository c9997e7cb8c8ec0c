/* SPDX-License-Identifier: BSD-2-Clause */
/* Orders from the main thread to a worker. No order is lost: if the mailbox is full, the main thread waits until the
 * worker takes the orders in the next turn of its loop.
 */
#ifndef RAMPART_LOADGEN_MAILBOX_H
#define RAMPART_LOADGEN_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/wire/fail.h"

enum worker_order {
	ORDER_NONE,
	ORDER_CONNECT,		/* connect clients, up to a stage; fulfilled when each has got there or failed */
	ORDER_STAGE,		/* let parked clients go on to the next stage; fulfilled when each is there or failed */
	ORDER_TRAFFIC,		/* start the workload, unmeasured; fulfilled when every client has been told to start */
	ORDER_MEASURE,		/* start recording operations; fulfilled at once, or with --iterations when every client
				 * has begun its measured ones */
	ORDER_STOP,		/* send no more; fulfilled when nothing is in flight and all clients that left are
				 * back */
	ORDER_ABANDON,		/* fail, with a timeout, clients that still wait for a reply or a connection */
	ORDER_DISCONNECT,	/* close all connections; fulfilled when all are gone */
	ORDER_QUIT,		/* end the thread */
};

/* Parameters of an order; all but `upto` are for ORDER_CONNECT. */
struct worker_task {
	uint32_t clients;	/* clients of this worker */
	uint32_t active;	/* how many of them send */
	uint32_t active_before;	/* clients of earlier workers that send, numbered across hosts and servers */
	uint32_t active_of_all;	/* clients of all workers that send */
	uint32_t of_all;	/* clients of all workers in this step */
	uint64_t bytes;		/* size of an operation */
	uint64_t rate;		/* operations per second of all clients; 0: no --rate */
	bool alone;		/* connecting outside the steps: no TLS session is resumed or kept */
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

/* Appends an order, waiting while the mailbox is full. Main thread. False: the mailbox is closed, and the order will
 * never be carried out. */
bool mailbox_put(struct mailbox *m, const struct order *o);
/* Takes all orders, in the order they were given. Returns their number. Worker's thread. */
uint32_t mailbox_take(struct mailbox *m, struct order out[MAILBOX_MAX]);
/* Closes the mailbox: the worker takes no more orders, and mailbox_put no longer waits. Any thread. */
void mailbox_close(struct mailbox *m);

#endif
