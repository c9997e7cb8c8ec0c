/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins an endpoint and a CM channel to a libev loop, and decides when the thread sleeps.
 *
 * event: sleep until the completion channel is readable. busy: never sleep, never arm. adaptive: spin for a bounded
 * time after the last completion, then arm and sleep. A turn of the loop begins with CM events, because a full backlog
 * drops requests silently; then come completions and everything else; work that may wait (on_rest) comes last. Each has
 * a time budget, so that nobody waits longer than these few milliseconds plus one piece of other work. Device events
 * are watched too: when the device or one of its queues fails, so does the pump. Several pumps can share a loop, one
 * for each device the thread works on. Owning thread: the loop's, for every function here; before and after the loop
 * runs, the thread that sets it up.
 */
#ifndef RAMPART_COMMON_PUMP_H
#define RAMPART_COMMON_PUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ev.h>

#include "common/base/retry.h"
#include "common/rdma/async.h"

struct cm_channel;
struct cm_event;
struct ep;

enum poll_mode { POLL_EVENT, POLL_BUSY, POLL_ADAPTIVE };
extern const char *const poll_mode_names[];	/* in the order of the enum, NULL-terminated */

typedef void pump_on_cm_fn(void *arg, const struct cm_event *e);

/* Counters since pump_start. */
struct pump_counts {
	uint64_t completions;
	uint64_t polls;		/* polls of the endpoint's completion queues, including those that found nothing */
	uint64_t wakeups;	/* turns of the loop that may have slept; only counted in the first pump */
};

struct pump {
	struct ev_loop *loop;
	struct ep *ep;
	struct cm_channel *cm;
	pump_on_cm_fn *on_cm;
	void *arg;
	/* Called when this pump's device stopped working while other pumps of the loop still work: nothing on the
	 * device completes any more. May be NULL. */
	void (*on_broken)(void *arg);
	/* Called when a queue pair broke (ASYNC_QP_FAILED) or is done with the shared receive queue
	 * (ASYNC_QP_LAST_WQE). May be NULL. */
	async_on_event_fn *on_qp_event;
	/* Does one piece of the work that may wait until completions were handled; false: no work is left. See
	 * pump_set_rest. */
	bool (*on_rest)(void *arg);
	bool rest_due;
	enum poll_mode mode;
	uint64_t spin_ns;
	uint64_t last_busy_ns;
	bool spinning;
	struct retry cm_reads;	/* reads of CM events */
	ev_timer cm_again;	/* resumes reading after a failure */
	unsigned turn;		/* iteration of the loop that turn_ns, turn_wcs and used_up belong to */
	uint64_t turn_ns;	/* start of the turn; 0: set by its first completions */
	uint32_t turn_wcs;	/* completions handled in the turn */
	struct pump_counts counts;
	bool used_up;		/* the turn's budget is used up; more completions may be waiting */
	bool stop;		/* in the first pump: the loop must end */
	bool broken;		/* the device stopped working: its queues are not polled any more */
	struct pump *first;	/* first of the pumps that share the loop, which runs all of them */
	STAILQ_HEAD(pump_list, pump) joined;	/* in the first pump: all pumps of the loop, itself first */
	STAILQ_ENTRY(pump) entry;
	ev_io cm_io, cq_io;
	ev_timer more;	/* continues after a turn that used up its budget */
	struct async async;	/* the device's events */
	ev_timer sweep;	/* polls for completions that raise no event, while ep_needs_sweep is true */
	ev_check rest;	/* calls on_rest at the end of a turn; active only while rest_due */
	ev_idle awake;	/* keeps the loop from sleeping while rest_due */
};

/* Starts the watchers. `ep` must have been made with spin = (mode == POLL_BUSY). on_broken and on_qp_event may be set
 * afterwards. All arguments must stay valid until pump_stop_watchers. */
void pump_start(struct pump *p, struct ev_loop *loop, struct ep *ep, struct cm_channel *cm,
		enum poll_mode mode, uint64_t spin_ns, pump_on_cm_fn *on_cm, void *arg);
/* May be called twice, and on a pump that was not started (all zero). */
void pump_stop_watchers(struct pump *p);

/* Makes pump_run(p) run `other` too, which was started on the same loop. Call right after both were started. */
void pump_join(struct pump *p, struct pump *other);

/* Sets the callback for work that may wait, such as bootstraps of clients. After pump_rest_is_due, the end of each turn
 * calls on_rest(arg) while it returns true and the time budget lasts. Completions are handled before each piece. */
void pump_set_rest(struct pump *p, bool (*on_rest)(void *arg));
/* Announces such work; on_rest is then called until it returns false. */
void pump_rest_is_due(struct pump *p);

/* Runs the loop until pump_break, and returns 0. Errors:
 *   -EIO  the device stopped working (pump_fail); with several devices, the last of them
 */
int pump_run(struct pump *p);
/* Call from a callback of the loop when this pump's device stopped working. Ends the loop if no other device works. */
void pump_fail(struct pump *p);
/* Ends the loop. Call from one of its callbacks, with any of its pumps. */
void pump_break(struct pump *p);

#endif
