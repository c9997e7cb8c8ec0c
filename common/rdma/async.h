/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a device: it failed, its port went down, a queue or a queue pair broke.
 *
 * librdmacm opens each device once in a process, so all loops share one context and with it one descriptor of events.
 * Every loop watches that descriptor, and whichever wakes first takes the events for all: it posts each to the loop
 * that owns the queue or queue pair, and those of the whole device to every loop on it. So there is no reader whose
 * end would have to be handed over, and a loop that is stuck delays nobody. Events are rare; that all loops wake for
 * one costs nothing that counts.
 *
 * The list of loops, the counts and the times of the last log lines are the process's: the one global here, behind a
 * lock. Events are acked at once, because destroying a queue pair waits for the acks of its events.
 */
#ifndef RAMPART_COMMON_ASYNC_H
#define RAMPART_COMMON_ASYNC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ev.h>
#include <infiniband/verbs.h>
#include <jansson.h>

struct ep;

enum async_action {
	ASYNC_NOTED,		/* counted and logged, nothing to do */
	ASYNC_EP_FAILED,	/* the device, a completion queue or the shared receive queue: nothing completes any more */
	ASYNC_QP_FAILED,	/* the queue pair is in ERR */
	ASYNC_SRQ_LOW,		/* the shared receive queue has fewer receives than its limit; not told again before ep_watch_srq */
	ASYNC_QP_LAST_WQE,	/* the queue pair, in ERR, takes nothing more from the shared receive queue */
};

struct async_event {
	enum async_action action;	/* never ASYNC_NOTED */
	uint32_t qpn;			/* of the ASYNC_QP_ ones */
	enum ibv_wc_status status;	/* ASYNC_QP_FAILED: as a completion would name it */
};

typedef void async_on_event_fn(void *arg, const struct async_event *e);

/* Events that wait for a loop, at most. Further ones are counted as dropped: a peer whose queue pair broke is then
 * noticed by the liveness probe. */
#define ASYNC_PENDING_MAX 256u

/* What a loop is told of one endpoint's device. Embedded in its pump. */
struct async {
	struct ev_loop *loop;		/* NULL: not started */
	const struct ep *ep;
	async_on_event_fn *on_event;
	void *arg;
	ev_io io;
	ev_async wake;
	TAILQ_ENTRY(async) link;	/* this and the following: behind the lock */
	struct async_event pending[ASYNC_PENDING_MAX];
	uint32_t n_pending;
};

/* Starts the watchers on `loop`. on_event is called on the loop's thread for what is to be acted on. If the device's
 * descriptor cannot be made non-blocking, events stay unread, and that is logged. Thread: the loop's, or the one that
 * sets it up. */
void async_start(struct async *a, struct ev_loop *loop, const struct ep *ep, async_on_event_fn *on_event, void *arg);
/* Before the endpoint is freed. May be called twice, and on a zeroed one. Thread: the loop's, or when it has ended. */
void async_stop(struct async *a);

/* Events of this type that the process has taken since its start. Any thread. */
uint64_t async_count(enum ibv_event_type type);
/* Object of those that came, by name ("qp_fatal": 2), with "dropped" if some were not posted to their loop. NULL when
 * out of memory. Any thread. */
json_t *async_json(void) __attribute__((warn_unused_result));

#endif
