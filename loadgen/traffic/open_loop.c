/* SPDX-License-Identifier: BSD-2-Clause */
/* See open_loop.h. */
#include "loadgen/traffic/open_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loadgen/traffic/schedule.h"
#include "loadgen/traffic/traffic.h"

/* Maximum number of clients whose operations begin in one turn of the loop. */
#define BEGIN_BUDGET 256

struct open_loop {
	struct traffic *traffic;
	struct schedule *schedule;
	int due_fd;			/* timerfd that expires when the first operation of the schedule is due */
	ev_io due_io;
	bool beginning;			/* begin_due is on the stack */
	uint64_t random;		/* state of the generator of Poisson arrivals */
};

static double period_ns(const struct traffic *t)
{
	const struct loadgen_config *c = t->cfg;

	if (c->rate_per_client)
		return 1e9 / (double)c->rate_per_client;
	return 1e9 * (double)t->active_of_all / (double)t->rate;
}

static double until_next_ns(struct open_loop *o)
{
	double period = period_ns(o->traffic);

	return o->traffic->cfg->arrival == ARRIVAL_POISSON ? schedule_exponential_ns(period, &o->random) : period;
}

/* Sets the timer that wakes the worker when the first operation is due. */
static void set_timer(struct open_loop *o)
{
	const struct schedule_entry *e = schedule_first(o->schedule);
	struct itimerspec at = { 0 };
	uint64_t due;

	if (e) {
		due = (uint64_t)e->due_ns;
		at.it_value.tv_sec = (time_t)(due / NS_PER_S);
		at.it_value.tv_nsec = (long)(due % NS_PER_S);
	}
	timerfd_settime(o->due_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Compares in whole ns: from 2^53 ns (104 days) on, converting a time to double may round it up. */
static bool is_due(const struct wclient *wc, uint64_t now)
{
	return (uint64_t)wc->due_ns <= now;
}

/* Counts the operations that are due and may begin, and records when each was due. */
static uint32_t take_due(struct open_loop *o, struct wclient *wc, uint64_t now)
{
	uint64_t next = wc->streams[0].begun;
	uint64_t end = MIN(wc->streams[0].done + o->traffic->cfg->inflight, o->traffic->allowed);

	for (; is_due(wc, now) && next < end; next++) {
		traffic_times(o->traffic, &wc->streams[0], next)->due_ns = (uint64_t)wc->due_ns;
		wc->due_ns += until_next_ns(o);
	}
	return (uint32_t)(next - wc->streams[0].begun);
}

void open_loop_begin(struct open_loop *o, struct wclient *wc)
{
	uint64_t now = clock_now_ns();
	uint32_t n = wc->state == WCLIENT_LIVE ? take_due(o, wc, now) : 0;

	o->traffic->begin_ns = now;
	if (n)
		o->traffic->workload->start(o->traffic, wc, 0, n);
	/* A client with an operation still due is not scheduled: it waits for one of its operations to end. */
	if (!wc->scheduled && wc->state == WCLIENT_LIVE && !is_due(wc, now) &&
	    wc->streams[0].begun < o->traffic->allowed) {
		schedule_add(o->schedule, wc->due_ns, wc->index);
		wc->scheduled = true;
		if (schedule_first(o->schedule)->client == wc->index && !o->beginning)
			set_timer(o);
	}
}

static void begin_due(struct open_loop *o)
{
	const struct schedule_entry *e;
	double now = (double)clock_now_ns();

	o->beginning = true;
	ep_hold(o->traffic->ep);
	for (int i = 0; i < BEGIN_BUDGET && (e = schedule_first(o->schedule)) && e->due_ns <= now; i++) {
		struct wclient *wc = &o->traffic->clients[e->client];

		schedule_remove_first(o->schedule);
		wc->scheduled = false;
		if (o->traffic->on && wc->state == WCLIENT_LIVE)
			open_loop_begin(o, wc);
	}
	ep_unhold(o->traffic->ep);
	o->beginning = false;
	set_timer(o);
}

static void on_due(struct ev_loop *loop, ev_io *io, int revents)
{
	struct open_loop *o = io->data;
	uint64_t expired;

	(void)loop;
	(void)revents;
	if (read(o->due_fd, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		return;
	begin_due(o);
}

void open_loop_start_client(struct open_loop *o, struct wclient *wc)
{
	const struct traffic *t = o->traffic;
	double turn = (double)wc->index + (double)t->worker / (double)t->n_workers;
	double share = turn / (double)(t->active ? t->active : 1);

	/* Even schedules are staggered over the clients of all workers. */
	wc->due_ns = (double)clock_now_ns() +
		     (t->cfg->arrival == ARRIVAL_POISSON ? until_next_ns(o) : share * period_ns(t));
	open_loop_begin(o, wc);
}

bool open_loop_is_empty(const struct open_loop *o)
{
	return schedule_count(o->schedule) == 0;
}

void open_loop_reset(struct open_loop *o)
{
	schedule_clear(o->schedule);
	for (uint32_t i = 0; i < o->traffic->n_clients; i++) {
		o->traffic->clients[i].scheduled = false;
		o->traffic->clients[i].due_ns = 0;
	}
	set_timer(o);
}

int open_loop_new(struct traffic *t, struct ev_loop *loop, struct open_loop **out, char *err, size_t err_size)
{
	struct open_loop *o = calloc(1, sizeof(*o));
	int ret = -ENOMEM;

	if (!o)
		return ret;
	o->traffic = t;
	o->random = t->cfg->seed * UINT64_C(1000003) + t->worker;
	o->due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (o->due_fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot make a timer: %s; raise the limit of open files (ulimit -n)",
			 strerror(-ret));
		goto err_free;
	}
	ret = schedule_new(t->n_clients, &o->schedule);
	if (ret)
		goto err_free;
	ev_io_init(&o->due_io, on_due, o->due_fd, EV_READ);
	o->due_io.data = o;
	ev_io_start(loop, &o->due_io);
	*out = o;
	return 0;

err_free:
	open_loop_free(o);
	return ret;
}

void open_loop_free(struct open_loop *o)
{
	if (!o)
		return;
	schedule_free(o->schedule);
	if (o->due_fd >= 0)
		close(o->due_fd);
	free(o);
}
