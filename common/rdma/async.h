/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a device: the device failed, its port went down, a queue or a queue pair broke.
 *
 * librdmacm opens each device once in a process, so all loops share one context and with it one descriptor of events
 * (without librdmacm each loop has its own: dev.h). Every loop watches that descriptor, and whichever wakes first takes
 * the events for all: it posts each to the loop that owns the queue or queue pair, and events of the whole device to
 * every loop on it. So there is no single reader whose role would have to be handed over when its loop ends, and a
 * stuck loop delays nobody. Waking all loops for one event is affordable because events are rare.
 *
 * All loops share the list of loops, the counts and the times of the last log lines: the only global here, protected by
 * a lock. Events are acked at once, because destroying a queue pair waits for the acks of its events.
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
	ASYNC_EP_FAILED,	/* the device, a completion queue or the shared receive queue failed: nothing completes
				 * any more */
	ASYNC_QP_FAILED,	/* the queue pair is in ERR */
	ASYNC_SRQ_LOW,		/* the shared receive queue fell below its limit; reported once until ep_watch_srq */
	ASYNC_QP_LAST_WQE,	/* the queue pair is in ERR and takes nothing more from the shared receive queue */
};

struct async_event {
	enum async_action action;	/* never ASYNC_NOTED */
	uint32_t qpn;			/* queue pair number; ASYNC_QP_ actions only */
	enum ibv_wc_status status;	/* ASYNC_QP_FAILED: the status that a completion would have */
};

typedef void async_on_event_fn(void *arg, const struct async_event *e);

/* Maximum number of events pending for a loop. Further events are dropped and counted; the liveness probe then detects
 * a broken queue pair. */
#define ASYNC_PENDING_MAX 256u

/* A loop's subscription to the events of one endpoint's device. Embedded in the endpoint's pump. */
struct async {
	struct ev_loop *loop;		/* NULL: not started */
	const struct ep *ep;
	async_on_event_fn *on_event;
	void *arg;
	ev_io io;
	ev_async wake;
	TAILQ_ENTRY(async) link;	/* this and all following members: protected by the lock */
	struct async_event pending[ASYNC_PENDING_MAX];
	uint32_t n_pending;
};

/* Starts the watchers on `loop`. on_event is called on the loop's thread for each event that requires an action. If the
 * device's descriptor cannot be made non-blocking, an error is logged and events stay unread. Thread: the loop's, or
 * the one that sets it up. */
void async_start(struct async *a, struct ev_loop *loop, const struct ep *ep, async_on_event_fn *on_event, void *arg);
/* Call before the endpoint is freed. May be called twice, or on a zeroed struct. Thread: the loop's; later, any. */
void async_stop(struct async *a);

/* Number of events of this type that the process has received since its start. Any thread. */
uint64_t async_count(enum ibv_event_type type);
/* Object with the count of each event type that occurred ("qp_fatal": 2), and "dropped" if events could not be posted
 * to their loop. NULL when out of memory. Any thread. */
json_t *async_json(void) __attribute__((warn_unused_result));

#endif
