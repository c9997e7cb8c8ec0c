/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins an endpoint and a CM channel to a libev loop, and decides when the thread sleeps.
 *
 * event: sleep until the completion channel is readable. busy: never sleep, never arm. adaptive: spin
 * for a bounded time after the last completion, then arm and sleep. A turn of the loop begins with CM events, because a
 * full backlog drops requests silently; then come completions and everything else; what may wait (on_rest) comes last.
 * Each has a budget of time, so that nobody waits for more than one piece of another's work and these few milliseconds.
 * Events of the device are watched too: when it or a
 * queue fails, so does the pump. Several can share a loop, one for each device a
 * thread works on. Owning thread: the loop's, for every function here; before the loop
 * runs and after it, whoever sets it up.
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

/* Since pump_start. */
struct pump_counts {
	uint64_t completions;
	uint64_t polls;		/* of the endpoint's completion queues, also those that found nothing */
	uint64_t wakeups;	/* of the first pump: turns of the loop that may have slept */
};

struct pump {
	struct ev_loop *loop;
	struct ep *ep;
	struct cm_channel *cm;
	pump_on_cm_fn *on_cm;
	void *arg;
	/* Its device stopped working while other pumps of the loop still work: nothing of it completes any more. May be NULL. */
	void (*on_broken)(void *arg);
	/* One of its queue pairs broke (ASYNC_QP_FAILED) or is done with the shared receive queue (ASYNC_QP_LAST_WQE).
	 * May be NULL. */
	async_on_event_fn *on_qp_event;
	/* Does one piece of the work that may wait until completions were handled; false: there is no more. See
	 * pump_set_rest. */
	bool (*on_rest)(void *arg);
	bool rest_due;
	enum poll_mode mode;
	uint64_t spin_ns;
	uint64_t last_busy_ns;
	bool spinning;
	struct retry cm_reads;	/* of CM events */
	ev_timer cm_again;	/* goes on after one that failed */
	unsigned turn;		/* iteration of the loop that turn_ns, turn_wcs and used_up belong to */
	uint64_t turn_ns;	/* when the turn began; 0: with its first completions */
	uint32_t turn_wcs;	/* completions handled in the turn */
	struct pump_counts counts;
	bool used_up;		/* the turn's budget; there may be more */
	bool stop;		/* of the first pump: the loop is to end */
	bool broken;		/* its device stopped working: its queues are not polled any more */
	struct pump *first;	/* of the pumps that share the loop: it runs all of them */
	STAILQ_HEAD(pump_list, pump) joined;	/* of the first pump: all pumps of the loop, itself first */
	STAILQ_ENTRY(pump) entry;
	ev_io cm_io, cq_io;
	ev_timer more;	/* goes on after a turn that used its budget up */
	struct async async;	/* the device's events */
	ev_timer sweep;	/* polls for what raises no event, while ep_needs_sweep */
	ev_check rest;	/* the end of a turn, for on_rest */
	ev_idle awake;	/* while rest_due: the loop does not sleep */
};

/* Starts the watchers. `ep` must have been made with spin = (mode == POLL_BUSY). on_broken and on_qp_event may be set
 * afterwards. All that is given must outlive pump_stop_watchers. */
void pump_start(struct pump *p, struct ev_loop *loop, struct ep *ep, struct cm_channel *cm,
		enum poll_mode mode, uint64_t spin_ns, pump_on_cm_fn *on_cm, void *arg);
/* May be called twice, and of one that was not started (all zero). */
void pump_stop_watchers(struct pump *p);

/* `other`, started on the same loop, is run by pump_run(p) too. Both were just started. */
void pump_join(struct pump *p, struct pump *other);

/* For work that may wait, such as that of strangers: at the end of each turn, while pump_rest_is_due was called, on_rest(arg)
 * is called for as long as it returns true and the turn's budget of time lasts. Completions are handled before each piece. */
void pump_set_rest(struct pump *p, bool (*on_rest)(void *arg));
/* There is such work, until on_rest returns false. */
void pump_rest_is_due(struct pump *p);

/* Runs the loop until pump_break, and returns 0. Errors:
 *   -EIO  the device stopped working (pump_fail); where there are several, the last of them
 */
int pump_run(struct pump *p);
/* From within a callback of the loop: the device of this pump stopped working. Ends the loop if it was the last. */
void pump_fail(struct pump *p);
/* Ends the loop. From within one of its callbacks, for any of its pumps. */
void pump_break(struct pump *p);

#endif
