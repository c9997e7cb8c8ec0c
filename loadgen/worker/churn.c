/* SPDX-License-Identifier: BSD-2-Clause */
/* See churn.h. */
#include "loadgen/worker/churn.h"

#include "common/base/clock.h"
#include "common/hist/hist.h"

/* Maximum number of clients that leave in one turn of the loop. */
#define LEAVE_BUDGET 64

/* When the next client is due to leave. The worker's share of the rate equals its share of the clients. */
static uint64_t due_ns(const struct churn *ch)
{
	const struct connector *k = ch->connector;
	double rate = (double)k->cfg->churn_per_s * (double)k->target / (double)ch->of_all;

	return ch->start_ns + (uint64_t)((double)ch->left * (double)NS_PER_S / rate);
}

static struct wclient *next_to_leave(struct churn *ch)
{
	const struct connector *k = ch->connector;

	for (uint32_t i = 0; i < k->target; i++) {
		struct wclient *wc = &k->traffic->clients[ch->cursor];

		ch->cursor = ch->cursor + 1 < k->target ? ch->cursor + 1 : 0;
		if (wc->state == WCLIENT_LIVE)
			return wc;
	}
	return NULL;
}

static void churn_leave(struct churn *ch, struct wclient *wc)
{
	wc->away = true;
	wc->left_ns = clock_now_ns();
	connector_set_state(ch->connector, wc, WCLIENT_LEAVING);
	counter_add(&ch->connector->stats->away, 1);
	ch->left++;
	/* With operations in flight, traffic_end closes the connection after the last reply. */
	if (traffic_is_idle(wc))
		client_close(wc->conn);
}

static void sleep_until_due(struct churn *ch, uint64_t now_ns)
{
	struct ev_loop *loop = ch->connector->loop;
	uint64_t due = due_ns(ch);

	ev_timer_stop(loop, &ch->timer);
	ev_timer_set(&ch->timer, due > now_ns ? (double)(due - now_ns) / 1e9 : 0., 0.);
	ev_timer_start(loop, &ch->timer);
}

static void leave_more(struct churn *ch)
{
	const struct connector *k = ch->connector;
	uint64_t now = clock_now_ns();

	if (!k->cfg->churn_per_s || !k->traffic->on || k->target == 0)
		return;
	for (int i = 0; i < LEAVE_BUDGET && due_ns(ch) <= now; i++) {
		struct wclient *wc = counter_get(&k->stats->live) ? next_to_leave(ch) : NULL;

		if (!wc)
			return;	/* churn_on_back calls this function again */
		churn_leave(ch, wc);
	}
	sleep_until_due(ch, now);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	leave_more(timer->data);
}

void churn_init(struct churn *ch, struct connector *k)
{
	ch->connector = k;
	ev_timer_init(&ch->timer, on_timer, 0., 0.);
	ch->timer.data = ch;
}

void churn_start(struct churn *ch, uint32_t of_all)
{
	ch->of_all = of_all;
	ch->start_ns = clock_now_ns();
	ch->left = 0;
	ch->cursor = 0;
	leave_more(ch);
}

void churn_stop(struct churn *ch)
{
	ev_timer_stop(ch->connector->loop, &ch->timer);
}

void churn_on_back(struct churn *ch, struct wclient *wc)
{
	const struct traffic *t = ch->connector->traffic;
	bool was_lost = wc->backoff.lost_ns;

	wc->away = false;
	counter_take(&t->stats->away);
	if (was_lost) {
		hist_record(t->stats->hists.outage_ns, backoff_end(&wc->backoff, clock_now_ns()));
	} else if (t->measuring) {
		counter_add(&t->stats->cycles, 1);
		hist_record(t->stats->hists.away_ns, clock_now_ns() - wc->left_ns);
	}
	if (t->on && was_lost)
		traffic_resume_client(wc);
	else if (t->on)
		traffic_start_client(wc);
	leave_more(ch);
}
