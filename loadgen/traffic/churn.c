/* Clients that leave and come back while the workload runs (--churn).
 *
 * Who leaves is taken in turn, at an even rate. A leaving client sends no more, waits for its replies, closes
 * its connection, and begins to connect again at once, or when those that left before it have begun to. If nobody
 * is there to leave, because all are on their way, the next one to be back leaves: the schedule falls behind and
 * is not dropped.
 */
#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "loadgen/traffic/worker_internal.h"

/* Clients that leave in one turn, at most. */
#define LEAVE_BUDGET 64

/* When the next of this worker's clients is to leave: its part of the rate is that of the clients. */
static uint64_t due_ns(const struct worker *w)
{
	double rate = (double)w->cfg.cfg->churn_per_s * (double)w->target / (double)w->step_clients;

	return w->churn_start_ns + (uint64_t)((double)w->churn_left * (double)NS_PER_S / rate);
}

static struct wclient *next_to_leave(struct worker *w)
{
	for (uint32_t i = 0; i < w->target; i++) {
		struct wclient *wc = &w->clients[w->churn_cursor];

		w->churn_cursor = w->churn_cursor + 1 < w->target ? w->churn_cursor + 1 : 0;
		if (wc->state == WCLIENT_LIVE)
			return wc;
	}
	return NULL;
}

static void leave(struct worker *w, struct wclient *wc)
{
	struct worker_stats *st = &w->stats;

	wc->away = true;
	wc->left_ns = clock_now_ns();
	connect_set_state(w, wc, WCLIENT_LEAVING);
	counter_add(&st->away, 1);
	w->churn_left++;
	churn_leave(wc);
}

void churn_leave(struct wclient *wc)
{
	if (traffic_is_idle(wc))
		client_close(wc->conn);
}

static void sleep_until_due(struct worker *w, uint64_t now_ns)
{
	uint64_t due = due_ns(w);

	ev_timer_stop(w->loop, &w->churn_timer);
	ev_timer_set(&w->churn_timer, due > now_ns ? (double)(due - now_ns) / 1e9 : 0., 0.);
	ev_timer_start(w->loop, &w->churn_timer);
}

void churn_more(struct worker *w)
{
	uint64_t now = clock_now_ns();

	if (!w->cfg.cfg->churn_per_s || w->mode != MODE_TRAFFIC || w->target == 0)
		return;
	for (int i = 0; i < LEAVE_BUDGET && due_ns(w) <= now; i++) {
		struct wclient *wc = counter_get(&w->stats.live) ? next_to_leave(w) : NULL;

		if (!wc)
			return;	/* who is back next comes here */
		leave(w, wc);
	}
	sleep_until_due(w, now);
}

void churn_on_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	churn_more(t->data);
}

void churn_start(struct worker *w)
{
	w->churn_start_ns = clock_now_ns();
	w->churn_left = 0;
	w->churn_cursor = 0;
	churn_more(w);
}

void churn_stop(struct worker *w)
{
	ev_timer_stop(w->loop, &w->churn_timer);
}

void churn_on_back(struct worker *w, struct wclient *wc)
{
	struct worker_stats *st = &w->stats;

	wc->away = false;
	counter_set(&st->away, counter_get(&st->away) - 1);
	if (w->measuring) {
		counter_add(&st->cycles, 1);
		hist_record(st->away_ns, clock_now_ns() - wc->left_ns);
	}
	if (w->mode == MODE_TRAFFIC)
		traffic_start_client(w, wc);
	churn_more(w);
	traffic_maybe_stopped(w);
}
