/* The open loop (--rate): operations begin when they are due, whether earlier ones have ended or not.
 *
 * Each active client has a schedule of its own, even or Poisson. One whose operations under way are as many as
 * --inflight waits until one ends, and then catches up: nothing of the schedule is skipped. The response time counts
 * from when an operation was due, the service time from when it was sent.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/schedule.h"
#include "loadgen/traffic/worker_internal.h"

/* Operations begun in one turn of the loop, at most. */
#define BEGIN_BUDGET 256

static double period_ns(const struct worker *w)
{
	const struct loadgen_config *c = w->cfg.cfg;

	if (c->rate_per_client)
		return 1e9 / (double)c->rate_per_client;
	return 1e9 * (double)w->active_of_all / (double)c->rate;
}

static double until_next_ns(struct worker *w)
{
	double period = period_ns(w);

	return w->cfg.cfg->arrival == ARRIVAL_POISSON ? schedule_exponential_ns(period, &w->random) : period;
}

/* Wakes the worker when the first one is due. */
static void set_timer(struct worker *w)
{
	const struct schedule_entry *e = schedule_first(w->schedule);
	struct itimerspec at = { 0 };
	uint64_t due;

	if (e) {
		due = (uint64_t)e->due_ns;
		at.it_value.tv_sec = (time_t)(due / NS_PER_S);
		at.it_value.tv_nsec = (long)(due % NS_PER_S);
	}
	timerfd_settime(w->due_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Notes when those operations were due that are due and may begin. Returns how many. */
static uint32_t take_due(struct worker *w, struct wclient *wc, uint64_t now)
{
	uint64_t inflight = w->cfg.cfg->inflight, next = wc->streams[0].begun;

	for (; wc->due_ns <= (double)now && next - wc->streams[0].done < inflight; next++) {
		wc->streams[0].times[next % inflight].due_ns = (uint64_t)wc->due_ns;
		wc->due_ns += until_next_ns(w);
	}
	return (uint32_t)(next - wc->streams[0].begun);
}

void open_loop_begin(struct worker *w, struct wclient *wc)
{
	uint64_t now = clock_now_ns();
	uint32_t n = wc->state == WCLIENT_LIVE ? take_due(w, wc, now) : 0;

	w->begin_ns = now;
	if (n)
		w->workload->start(w, wc, 0, n);
	/* Else it waits for one of its own to end. */
	if (!wc->scheduled && wc->state == WCLIENT_LIVE && wc->due_ns > (double)now) {
		schedule_add(w->schedule, wc->due_ns, (uint32_t)(wc - w->clients));
		wc->scheduled = true;
		if (schedule_first(w->schedule)->client == (uint32_t)(wc - w->clients) && !w->beginning)
			set_timer(w);
	}
}

static void begin_due(struct worker *w)
{
	const struct schedule_entry *e;
	double now = (double)clock_now_ns();

	w->beginning = true;
	ep_hold(w->ep);
	for (int i = 0; i < BEGIN_BUDGET && (e = schedule_first(w->schedule)) && e->due_ns <= now; i++) {
		struct wclient *wc = &w->clients[e->client];

		schedule_remove_first(w->schedule);
		wc->scheduled = false;
		if (w->mode == MODE_TRAFFIC && wc->state == WCLIENT_LIVE)
			open_loop_begin(w, wc);
	}
	ep_unhold(w->ep);
	w->beginning = false;
	set_timer(w);
}

static void on_due(struct ev_loop *loop, ev_io *io, int revents)
{
	struct worker *w = io->data;
	uint64_t expired;

	(void)loop;
	(void)revents;
	if (read(w->due_fd, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		return;
	begin_due(w);
}

void open_loop_start_client(struct worker *w, struct wclient *wc)
{
	uint64_t index = (uint64_t)(wc - w->clients) * w->cfg.n_workers + w->cfg.index;
	double share = (double)index / (double)(w->active_of_all ? w->active_of_all : 1);

	/* Clients with an even schedule take turns. */
	wc->due_ns = (double)clock_now_ns() + (w->cfg.cfg->arrival == ARRIVAL_POISSON ? until_next_ns(w) :
					       share * period_ns(w));
	open_loop_begin(w, wc);
}

void open_loop_reset(struct worker *w)
{
	if (!w->schedule)
		return;
	schedule_clear(w->schedule);
	for (uint32_t i = 0; i < w->cfg.client.max_conns; i++)
		w->clients[i].scheduled = false;
	set_timer(w);
}

int open_loop_new(struct worker *w, char *err, size_t err_size)
{
	int ret;

	if (!loadgen_is_open_loop(w->cfg.cfg))
		return 0;
	w->random = w->cfg.cfg->seed * UINT64_C(1000003) + w->cfg.index;
	w->due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->due_fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot make a timer: %s; raise the limit of open files (ulimit -n)",
			 strerror(-ret));
		return ret;
	}
	ev_io_init(&w->due_io, on_due, w->due_fd, EV_READ);
	w->due_io.data = w;
	ev_io_start(w->loop, &w->due_io);
	return schedule_new(w->cfg.client.max_conns, &w->schedule);
}

void open_loop_free(struct worker *w)
{
	schedule_free(w->schedule);
	if (w->due_fd >= 0)
		close(w->due_fd);
}
