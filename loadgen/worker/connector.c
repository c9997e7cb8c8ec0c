/* SPDX-License-Identifier: BSD-2-Clause */
/* See connector.h. */
#include "loadgen/worker/connector.h"

#include <sys/param.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "loadgen/striping/lanes.h"
#include "loadgen/one_sided/rma.h"

#define RETRY_NS (200 * NS_PER_MS)

/* The counter of the clients in a state; NULL: the state has none. */
static counter *counter_of(struct worker_stats *st, enum wclient_state state)
{
	switch (state) {
	case WCLIENT_CONNECTING: return &st->connecting;
	case WCLIENT_PARKED: return &st->parked;
	case WCLIENT_WAITING: return &st->waiting;
	case WCLIENT_LIVE: return &st->live;
	case WCLIENT_LEAVING:
	case WCLIENT_LOST: return &st->leaving;
	case WCLIENT_NONE: break;
	}
	return NULL;
}

void connector_set_state(struct connector *k, struct wclient *wc, enum wclient_state to)
{
	counter *from = counter_of(k->stats, wc->state), *into = counter_of(k->stats, to);

	if (from)
		counter_take(from);
	if (into)
		counter_add(into, 1);
	if (wc->state == WCLIENT_PARKED)
		TAILQ_REMOVE(&k->parked, wc, link);
	wc->state = to;
}

/* The first rail that is not dark; rail 0 if all are. */
static uint32_t first_rail(const struct connector *k)
{
	uint32_t i = 0;

	while (i < k->n_rails && k->rails[i].dark)
		i++;
	return i < k->n_rails ? i : 0;
}

/* When the i-th connection of this worker should start; 0: as soon as the pace allows. Of all connections that start,
 * this worker makes one in of_all / target. */
static uint64_t intended_start(const struct connector *k, uint64_t i)
{
	uint64_t rate = k->cfg->connect_rate;

	if (!rate)
		return 0;
	return k->start_ns + (i * k->of_all / k->target + k->traffic->worker) * NS_PER_S / rate;
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	connector_more(timer->data);
}

static void come_back_at(struct connector *k, uint64_t at_ns, uint64_t now_ns)
{
	double after_s = (double)(at_ns - now_ns) / 1e9;

	if (ev_is_active(&k->timer) && ev_timer_remaining(k->loop, &k->timer) <= after_s)
		return;
	ev_timer_stop(k->loop, &k->timer);
	ev_timer_set(&k->timer, after_s, 0.);
	ev_timer_start(k->loop, &k->timer);
}

void connector_reset_client(struct wclient *wc)
{
	traffic_reset(wc);
	lanes_reset(wc);
	rma_reset(wc);
}

/* False if no connection object or queue pair is free. connector_more tries again at the end of each turn, after closed
 * connections have been freed or queue pairs have finished their quarantine. */
static bool begin_attempt(struct connector *k, struct wclient *wc, uint64_t now_ns)
{
	/* The client's last connection on the rail, if it has one there: its TLS connection is used again. */
	struct client_conn *before = wc->lane < k->n_rails ? NULL : lanes_conn_on(wc, wc->lane - k->n_rails);
	struct client_conn *c = client_connect_after(connector_rail(k, wc->lane)->ctx, before, wc->intended_ns, wc);

	if (!c)
		return false;
	client_set_number(c, wc->lane);
	if (wc->open++ == 0)
		connector_reset_client(wc);
	wc->conn = c;
	if (k->cfg->tls_resume && !k->alone)
		client_use_session(c, &wc->session);
	lanes_use_window(wc, wc->lane, c);
	if (wc->lane + k->n_rails < k->traffic->n_lanes)
		client_keep_tls(c);
	wc->begun_ns = now_ns;
	wc->attempts++;
	connector_set_state(k, wc, WCLIENT_CONNECTING);
	return true;
}

/* Lets a parked client go on. False: no parked client may. */
static bool go_on_one(struct connector *k)
{
	struct wclient *wc = TAILQ_FIRST(&k->parked);

	/* Clients that park again go to the list's end; the first one parked before a later stage ends the round. */
	if (k->mode != CONNECT_GO_ON || !wc || client_parked_before(wc->conn) > k->upto)
		return false;
	connector_set_state(k, wc, WCLIENT_CONNECTING);
	wc->begun_ns = clock_now_ns();
	client_go_on(wc->conn);
	return true;
}

/* Begins to connect the first client of a list, and removes the client from the list. */
static bool begin_first(struct connector *k, struct wclient_list *list, uint64_t now_ns)
{
	struct wclient *wc = TAILQ_FIRST(list);

	if (!wc)
		return false;
	TAILQ_REMOVE(list, wc, link);
	if (begin_attempt(k, wc, now_ns))
		return true;
	TAILQ_INSERT_HEAD(list, wc, link);
	return false;
}

static bool retry_one(struct connector *k, uint64_t now_ns)
{
	const struct wclient *wc = TAILQ_FIRST(&k->retry);

	if (wc && wc->retry_at_ns > now_ns) {
		come_back_at(k, wc->retry_at_ns, now_ns);
		return false;
	}
	return begin_first(k, &k->retry, now_ns);
}

static bool start_one(struct connector *k, uint64_t now_ns)
{
	uint64_t i = counter_get(&k->stats->attempted), intended;
	struct wclient *wc = &k->traffic->clients[i];

	if (k->mode != CONNECT_START || i >= k->target)
		return false;
	intended = intended_start(k, i);
	if (intended > now_ns) {
		come_back_at(k, intended, now_ns);
		return false;
	}
	wc->intended_ns = intended ? intended : now_ns;
	wc->lane = first_rail(k);
	wc->attempts = 0;
	wc->away = false;
	if (!begin_attempt(k, wc, now_ns))
		return false;
	counter_add(&k->stats->attempted, 1);
	return true;
}

/* At the end of most turns there is nothing to begin; this check finds that without reading the clock. */
static bool may_begin_any(const struct connector *k)
{
	return (k->mode == CONNECT_GO_ON && !TAILQ_EMPTY(&k->parked)) || !TAILQ_EMPTY(&k->retry) ||
		!TAILQ_EMPTY(&k->returning) ||
	       (k->mode == CONNECT_START && counter_get(&k->stats->attempted) < k->target);
}

void connector_more(struct connector *k)
{
	bool more;

	/* Connections may park, fail or go live inside the loop below, and their handlers call this function again. */
	if (k->beginning || !may_begin_any(k))
		return;
	k->beginning = true;
	more = !counter_get(&k->stats->unproved);
	while (more && counter_get(&k->stats->connecting) < pace_window(&k->pace)) {
		uint64_t now = clock_now_ns();

		/* Parked and retrying clients come first: clients that leave and return (--churn) could starve them. */
		more = go_on_one(k) || retry_one(k, now) || begin_first(k, &k->returning, now) || start_one(k, now);
	}
	k->beginning = false;
}

void connector_note_end(struct connector *k, uint32_t rail, const struct fail *fail)
{
	if (fail->stage != STAGE_TLS_HANDSHAKE || (fail->kind != FAIL_TLS && fail->kind != FAIL_CERTIFICATE))
		return;
	if (++k->rails[rail].unproved >= CONNECTOR_UNPROVED_MAX)
		counter_set(&k->stats->unproved, 1);
}

bool connector_is_done(const struct connector *k)
{
	const struct worker_stats *st = k->stats;

	return !counter_get(&st->connecting) && !counter_get(&st->waiting) &&
	       (k->mode != CONNECT_START || counter_get(&st->attempted) == k->target);
}

void connector_begin_step(struct connector *k, uint32_t clients, uint32_t of_all, enum stage upto, bool alone)
{
	uint64_t window = of_all ? (k->cfg->connect_concurrency * clients + of_all - 1) / of_all : 0;

	for (uint32_t i = 0; i < k->n_rails; i++) {
		k->rails[i].told = k->rails[i].told_refusal = k->rails[i].works = k->rails[i].dark = false;
		k->rails[i].unproved = 0;
	}
	k->mode = CONNECT_START;
	k->alone = alone;
	k->abandoned = false;
	k->target = clients;
	k->of_all = of_all;
	k->upto = upto;
	k->start_ns = clock_now_ns();
	pace_init(&k->pace, (uint32_t)MAX(window, 1));
	connector_more(k);
}

void connector_go_on(struct connector *k, enum stage upto)
{
	k->mode = CONNECT_GO_ON;
	k->upto = upto;
	counter_set(&k->stats->through, 0);
	connector_more(k);
}

void connector_stop(struct connector *k, enum connect_mode mode)
{
	k->mode = mode;
	if (mode == CONNECT_CLOSE)
		ev_timer_stop(k->loop, &k->timer);
}

void connector_connect(struct connector *k, struct wclient *wc, uint32_t lane)
{
	wc->lane = lane;
	/* With several queue pairs the time until the client has all of them counts. */
	if (k->cfg->qps == 1)
		wc->intended_ns = clock_now_ns();
	wc->attempts = 0;
	connector_set_state(k, wc, WCLIENT_WAITING);
	TAILQ_INSERT_TAIL(&k->returning, wc, link);
}

static void retry_at(struct connector *k, struct wclient *wc, uint64_t at_ns)
{
	struct wclient *before = TAILQ_LAST(&k->retry, wclient_list);

	while (before && before->retry_at_ns > at_ns)
		before = TAILQ_PREV(before, wclient_list, link);
	wc->retry_at_ns = at_ns;
	connector_set_state(k, wc, WCLIENT_WAITING);
	if (before)
		TAILQ_INSERT_AFTER(&k->retry, before, wc, link);
	else
		TAILQ_INSERT_HEAD(&k->retry, wc, link);
}

void connector_retry(struct connector *k, struct wclient *wc)
{
	retry_at(k, wc, clock_now_ns() + RETRY_NS);
}

void connector_connect_at(struct connector *k, struct wclient *wc, uint64_t at_ns)
{
	wc->lane = 0;
	wc->intended_ns = at_ns;
	wc->attempts = 0;
	retry_at(k, wc, at_ns);
}

bool connector_may_enter(void *arg, struct client_conn *c, enum stage stage)
{
	struct rail *rail = arg;
	struct connector *k = rail->connector;
	struct wclient *wc = client_user(c);

	if (stage > STAGE_TLS_HANDSHAKE)
		rail->unproved = 0;
	if (stage <= k->upto)
		return true;
	connector_set_state(k, wc, WCLIENT_PARKED);
	TAILQ_INSERT_TAIL(&k->parked, wc, link);
	counter_add(&k->stats->through, 1);
	pace_on_success(&k->pace);
	return false;
}

void connector_init(struct connector *k)
{
	TAILQ_INIT(&k->retry);
	TAILQ_INIT(&k->returning);
	TAILQ_INIT(&k->parked);
	ev_timer_init(&k->timer, on_timer, 0., 0.);
	k->timer.data = k;
}

void connector_release(struct connector *k)
{
	struct traffic *t = k->traffic;

	for (uint32_t i = 0; t && t->clients && i < t->n_clients; i++)
		tls_session_free(t->clients[i].session);
}
