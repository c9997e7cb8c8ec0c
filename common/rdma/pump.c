/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins an endpoint and a CM channel to a libev loop. See pump.h. */
#include "common/rdma/pump.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/base/log.h"

/* Budgets of one turn of the loop: number and time of completions, number and time of CM events, and the time of
 * on_rest. Completions have a time limit because a software device executes a request while it is posted: the next
 * completion is then always ready, and a turn would never end. All watchers of a turn share the budget of completions:
 * with one budget each, a few large requests would keep the loop from its other descriptors for seconds. */
#define WC_BUDGET 512
#define TIME_BUDGET_NS NS_PER_MS
/* Delay between two attempts to take a CM event while memory is short. */
#define CM_AGAIN_NS_MIN (10 * NS_PER_MS)
#define CM_AGAIN_NS_MAX NS_PER_S
#define CM_BUDGET 256
#define CM_BUDGET_NS (2 * NS_PER_MS)
#define REST_BUDGET_NS (2 * NS_PER_MS)
#define SWEEP_S 0.1
/* Polls between two looks at the other descriptors. One look costs as much as a hundred polls. */
#define SPINS_PER_LOOK 1024

const char *const poll_mode_names[] = { "event", "busy", "adaptive", NULL };

static bool all_are_broken(const struct pump *first)
{
	const struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		if (!p->broken)
			return false;
	return true;
}

void pump_fail(struct pump *p)
{
	if (p->broken)
		return;
	p->broken = true;
	p->spinning = false;
	ev_io_stop(p->loop, &p->cq_io);
	ev_timer_stop(p->loop, &p->more);
	ev_timer_stop(p->loop, &p->sweep);
	if (all_are_broken(p->first))
		pump_break(p);
	else if (p->on_broken)
		p->on_broken(p->arg);
}

/* True if the turn's budget is used up and more completions may be waiting. */
static bool process(struct pump *p)
{
	for (;;) {
		int n = ep_process(p->ep, EP_BATCH);
		uint64_t now;

		p->counts.polls++;
		if (n < 0)
			pump_fail(p);
		if (n <= 0)
			return false;
		p->counts.completions += (uint64_t)n;
		now = clock_now_ns();
		p->last_busy_ns = now;
		p->turn_ns = p->turn_ns ? p->turn_ns : now;
		p->turn_wcs += (uint32_t)n;
		if (now - p->turn_ns >= TIME_BUDGET_NS || p->turn_wcs >= WC_BUDGET)
			return true;
	}
}

static void begin_turn(struct pump *p, uint64_t now_ns)
{
	p->turn = ev_iteration(p->loop);
	p->turn_ns = now_ns;
	p->turn_wcs = 0;
	p->used_up = false;
}

static void process_and_continue(struct pump *p)
{
	if (p->turn != ev_iteration(p->loop))
		begin_turn(p, clock_now_ns());
	if (!p->used_up)
		p->used_up = process(p);
	if (p->used_up && !p->spinning && !ev_is_active(&p->more)) {
		ev_timer_set(&p->more, 0., 0.);
		ev_timer_start(p->loop, &p->more);
	}
}

static void on_more(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	process_and_continue(w->data);
}

static void on_sweep(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct pump *p = w->data;

	(void)loop;
	(void)revents;
	/* Arm before polling, because an SRQ that is already below its limit raises no event. */
	ep_watch_srq(p->ep);
	ep_sweep(p->ep);
	process_and_continue(p);
}

static void on_completions(struct ev_loop *loop, ev_io *w, int revents)
{
	struct pump *p = w->data;
	int ret;

	(void)loop;
	(void)revents;
	if (p->mode == POLL_ADAPTIVE) {
		/* Spin before taking the events, so that ep_take_events does not arm the queues again. */
		p->spinning = true;
		p->last_busy_ns = clock_now_ns();
		ep_set_spin(p->ep, true);
	}
	/* Answer messages first, because taking the event and arming the queue again takes two system calls. */
	ep_sweep(p->ep);
	process_and_continue(p);
	/* If more completions are waiting, the event stays in the channel, so that it wakes the thread again. */
	if (p->broken || p->first->stop || ev_is_active(&p->more))
		return;
	ret = ep_take_events(p->ep);
	if (ret) {
		log_error("the completion channel failed: %s", strerror(-ret));
		pump_fail(p);
		return;
	}
	process_and_continue(p);
}

/* Handles all completions that have come, including those that raise no event. */
static void look_now(struct pump *first)
{
	struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry) {
		if (p->broken)
			continue;
		ep_sweep(p->ep);
		begin_turn(p, 0); /* a new budget, as each piece of on_rest may take long */
		process_and_continue(p);
	}
}

static void on_rest(struct ev_loop *loop, ev_check *w, int revents)
{
	struct pump *p = w->data;
	uint64_t until_ns;

	(void)revents;
	if (!p->rest_due)
		return;
	until_ns = clock_now_ns() + REST_BUDGET_NS;
	do {
		look_now(p->first);
		p->rest_due = !p->first->stop && p->on_rest(p->arg);
	} while (p->rest_due && clock_now_ns() < until_ns);
	if (p->rest_due) {
		ev_check_start(loop, &p->rest);
		ev_idle_start(loop, &p->awake);
	} else {
		ev_check_stop(loop, &p->rest);
		ev_idle_stop(loop, &p->awake);
	}
}

static void on_idle(struct ev_loop *loop, ev_idle *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

void pump_set_rest(struct pump *p, bool (*rest)(void *arg))
{
	p->on_rest = rest;
}

void pump_rest_is_due(struct pump *p)
{
	if (p->rest_due)
		return;
	p->rest_due = true;
	/* The event runs last in this turn, because of its priority. A watcher that is always active would run in each
	 * turn of the loop, also in those that have nothing to do here. */
	ev_feed_event(p->loop, &p->rest, EV_CUSTOM);
}

/* No event was taken, so the descriptor stays readable: stop watching it until the next attempt. */
static void on_cm_failed(struct pump *p, int err)
{
	uint64_t ns;

	ev_io_stop(p->loop, &p->cm_io);
	if (!retry_again(&p->cm_reads, "rdma_get_cm_event", err)) {
		pump_fail(p);
		return;
	}
	/* Wait as long as reading has been failing so far. */
	ns = MIN(MAX(retry_failing_ns(&p->cm_reads), CM_AGAIN_NS_MIN), CM_AGAIN_NS_MAX);
	ev_timer_set(&p->cm_again, (double)ns / 1e9, 0.);
	ev_timer_start(p->loop, &p->cm_again);
}

static void on_cm_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct pump *p = w->data;

	(void)revents;
	ev_io_start(loop, &p->cm_io);
}

static void on_cm_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct pump *p = w->data;
	uint64_t until_ns = clock_now_ns() + CM_BUDGET_NS;
	struct cm_event e;
	int ret = 0;

	(void)loop;
	(void)revents;
	for (int i = 0; i < CM_BUDGET; i++) {
		ret = cm_next_event(p->cm, &e);
		if (ret <= 0)
			break;
		p->on_cm(p->arg, &e);
		if (clock_now_ns() >= until_ns)
			break;
	}
	if (ret < 0)
		on_cm_failed(p, -ret);
	else
		retry_worked(&p->cm_reads);
}

static void on_device_event(void *arg, const struct async_event *e)
{
	struct pump *p = arg;

	switch (e->action) {
	case ASYNC_EP_FAILED:
		pump_fail(p);
		break;
	case ASYNC_SRQ_LOW:
		ep_srq_is_low(p->ep);
		if (!p->broken)
			process_and_continue(p);
		break;
	case ASYNC_QP_FAILED:
	case ASYNC_QP_LAST_WQE:
		if (!p->broken && p->on_qp_event)
			p->on_qp_event(p->arg, e);
		break;
	case ASYNC_NOTED:
		break;
	}
}

void pump_start(struct pump *p, struct ev_loop *loop, struct ep *ep, struct cm_channel *cm,
		enum poll_mode mode, uint64_t spin_ns, pump_on_cm_fn *on_cm, void *arg)
{
	memset(p, 0, sizeof(*p));
	p->loop = loop;
	p->first = p;
	STAILQ_INIT(&p->joined);
	STAILQ_INSERT_TAIL(&p->joined, p, entry);
	p->ep = ep;
	p->cm = cm;
	p->mode = mode;
	p->spin_ns = spin_ns;
	p->spinning = mode == POLL_BUSY;
	p->on_cm = on_cm;
	p->arg = arg;
	ev_io_init(&p->cm_io, on_cm_readable, cm ? cm_channel_fd(cm) : -1, EV_READ);
	ev_set_priority(&p->cm_io, EV_MAXPRI);
	p->cm_io.data = p;
	if (cm)
		ev_io_start(loop, &p->cm_io);
	ev_io_init(&p->cq_io, on_completions, ep_fd(ep), EV_READ);
	ev_set_priority(&p->cq_io, EV_MAXPRI - 1);
	p->cq_io.data = p;
	if (ep_dev(ep))
		ev_io_start(loop, &p->cq_io);
	ev_timer_init(&p->cm_again, on_cm_again, 0., 0.);
	p->cm_again.data = p;
	ev_timer_init(&p->more, on_more, 0., 0.);
	ev_set_priority(&p->more, EV_MAXPRI - 1);
	p->more.data = p;
	ev_timer_init(&p->sweep, on_sweep, 0., 0.);
	p->sweep.data = p;
	/* Lowest priority, so that on_rest is called last in a turn. */
	ev_check_init(&p->rest, on_rest);
	ev_set_priority(&p->rest, EV_MINPRI);
	p->rest.data = p;
	ev_idle_init(&p->awake, on_idle);
	ev_set_priority(&p->awake, EV_MINPRI);
	if (!ep_dev(ep))
		return;
	async_start(&p->async, loop, ep, on_device_event, p);
	ep_watch_srq(ep);
}

void pump_stop_watchers(struct pump *p)
{
	if (!p->loop)
		return;
	ev_io_stop(p->loop, &p->cm_io);
	ev_io_stop(p->loop, &p->cq_io);
	ev_timer_stop(p->loop, &p->cm_again);
	ev_timer_stop(p->loop, &p->more);
	ev_timer_stop(p->loop, &p->sweep);
	ev_check_stop(p->loop, &p->rest);
	ev_idle_stop(p->loop, &p->awake);
	async_stop(&p->async);
}

/* Polls once for every pump that spins. True if one of them used its budget up. */
static bool look_at_completions(struct pump *first)
{
	bool used_up = false;
	struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		if (p->spinning)
			used_up |= process(p);
	return used_up;
}

/* Polls once more afterwards: a completion between the last poll and the arming raised no event. */
static void stop_spinning(struct pump *p)
{
	p->spinning = false;
	ep_set_spin(p->ep, false);
	process_and_continue(p);
}

static bool has_rest(const struct pump *first)
{
	const struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		if (p->rest_due)
			return true;
	return false;
}

static void spin(struct pump *first)
{
	/* Without a device there is nothing but descriptors to look at. */
	int spins = ep_dev(first->ep) ? SPINS_PER_LOOK : 1;
	struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		begin_turn(p, 0);
	for (int i = 0; i < spins && !first->stop && !look_at_completions(first) && !has_rest(first); i++)
		;
	STAILQ_FOREACH(p, &first->joined, entry)
		if (p->spinning && p->mode == POLL_ADAPTIVE && clock_now_ns() - p->last_busy_ns > p->spin_ns)
			stop_spinning(p);
}

static void start_sweep(struct pump *p)
{
	ev_timer_set(&p->sweep, SWEEP_S, 0.);
	ev_timer_start(p->loop, &p->sweep);
}

void pump_join(struct pump *p, struct pump *other)
{
	other->first = p;
	STAILQ_INSERT_TAIL(&p->joined, other, entry);
}

static bool one_spins(const struct pump *first)
{
	const struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		if (p->spinning)
			return true;
	return false;
}

/* Starts the sweep timer of every pump that does not spin and needs sweeps. */
static void start_sweeps(struct pump *first)
{
	struct pump *p;

	STAILQ_FOREACH(p, &first->joined, entry)
		if (!p->spinning && !p->broken && ep_needs_sweep(p->ep) && !ev_is_active(&p->sweep))
			start_sweep(p);
}

int pump_run(struct pump *p)
{
	while (!p->stop) {
		if (one_spins(p))
			spin(p);
		start_sweeps(p);
		if (one_spins(p)) {
			ev_run(p->loop, EVRUN_NOWAIT);
			continue;
		}
		p->counts.wakeups++;
		ev_run(p->loop, EVRUN_ONCE);
	}
	return all_are_broken(p) ? -EIO : 0;
}

void pump_break(struct pump *p)
{
	p->first->stop = true;
	ev_break(p->loop, EVBREAK_ALL);
}
