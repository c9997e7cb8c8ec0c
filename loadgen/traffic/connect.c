/* Making a worker's connections, in a window that adapts (pace.h), and ending them.
 *
 * A connection that times out, is told `busy` or is hung up on is tried again, so its client is not lost; how
 * long it took counts from the first attempt. Where there are several rails, a client makes its connections on them one
 * after the other; a rail on which that fails, or whose connection breaks later, is dropped, and the client goes on with
 * the others (lanes.h). With --phased, connections park before the stage after `upto`
 * until the main thread has seen all of them there.
 */
#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "loadgen/traffic/worker_internal.h"

#define CLOSE_CHUNK 64
#define RETRY_NS (200 * NS_PER_MS)

static void push(struct worker *w, struct client_queue *q, struct wclient *wc)
{
	uint32_t i = (uint32_t)(wc - w->clients);

	wc->next = NO_CLIENT;
	if (q->last == NO_CLIENT)
		q->first = i;
	else
		w->clients[q->last].next = i;
	q->last = i;
}

static struct wclient *pop(struct worker *w, struct client_queue *q)
{
	struct wclient *wc = &w->clients[q->first];

	q->first = wc->next;
	if (q->first == NO_CLIENT)
		q->last = NO_CLIENT;
	return wc;
}

static void take(counter *c)
{
	counter_set(c, counter_get(c) - 1);
}

/* The counter a client counts in while it is in its state. */
static counter *counter_of(struct worker *w, enum wclient_state state)
{
	struct worker_stats *st = &w->stats;

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

void connect_set_state(struct worker *w, struct wclient *wc, enum wclient_state to)
{
	counter *from = counter_of(w, wc->state), *into = counter_of(w, to);

	if (from)
		take(from);
	if (into)
		counter_add(into, 1);
	wc->state = to;
}

/* On which a connection may come about. */
static uint32_t first_rail(const struct worker *w)
{
	uint32_t i = 0;

	while (i < w->n_rails && w->rails[i].dark)
		i++;
	return i < w->n_rails ? i : 0;
}

/* When the i-th connection of this worker should start; 0: as soon as one may. */
static uint64_t intended_start(const struct worker *w, uint64_t i)
{
	uint64_t rate = w->cfg.cfg->connect_rate;

	if (!rate)
		return 0;
	return w->connect_start_ns + (i * w->cfg.n_workers + w->cfg.index) * NS_PER_S / rate;
}

static void come_back_at(struct worker *w, uint64_t at_ns, uint64_t now_ns)
{
	double after_s = (double)(at_ns - now_ns) / 1e9;

	if (ev_is_active(&w->pace_timer) && ev_timer_remaining(w->loop, &w->pace_timer) <= after_s)
		return;
	ev_timer_stop(w->loop, &w->pace_timer);
	ev_timer_set(&w->pace_timer, after_s, 0.);
	ev_timer_start(w->loop, &w->pace_timer);
}

/* False if no connection object or queue pair is free: the turn's end, after closed ones were freed, comes back
 * here, and so does it when queue pairs have rested. */
static bool begin(struct worker *w, struct wclient *wc, uint64_t now_ns)
{
	struct client_conn *c = client_connect(w->rails[wc->rail].ctx, wc->intended_ns, wc);

	if (!c)
		return false;
	if (wc->open++ == 0)
		traffic_reset(w, wc);
	wc->conn = c;
	if (w->cfg.cfg->tls_resume)
		client_use_session(c, &wc->session);
	lanes_use_window(w, wc, wc->rail, c);
	wc->begun_ns = now_ns;
	wc->attempts++;
	connect_set_state(w, wc, WCLIENT_CONNECTING);
	return true;
}

/* One that waits before its stage goes on. False: none does. */
static bool go_on_one(struct worker *w)
{
	struct wclient *wc;

	if (w->current.what != ORDER_STAGE || w->parked.first == NO_CLIENT)
		return false;
	/* Those that park anew are put behind: the first to be of a later stage ends the round. */
	wc = &w->clients[w->parked.first];
	if (wc->conn && client_parked_before(wc->conn) > w->upto)
		return false;
	pop(w, &w->parked);
	if (!wc->conn || wc->state != WCLIENT_PARKED)
		return true;	/* it failed while it was parked */
	connect_set_state(w, wc, WCLIENT_CONNECTING);
	wc->begun_ns = clock_now_ns();
	client_go_on(wc->conn);
	return true;
}

/* One that left comes back, or one goes on with its next rail. */
static bool return_one(struct worker *w, uint64_t now_ns)
{
	if (w->returning.first == NO_CLIENT || !begin(w, &w->clients[w->returning.first], now_ns))
		return false;
	pop(w, &w->returning);
	return true;
}

static bool retry_one(struct worker *w, uint64_t now_ns)
{
	struct wclient *wc;

	if (w->retry.first == NO_CLIENT)
		return false;
	wc = &w->clients[w->retry.first];
	if (wc->retry_at_ns > now_ns) {
		come_back_at(w, wc->retry_at_ns, now_ns);
		return false;
	}
	if (!begin(w, wc, now_ns))
		return false;
	pop(w, &w->retry);
	return true;
}

static bool start_one(struct worker *w, uint64_t now_ns)
{
	struct worker_stats *st = &w->stats;
	uint64_t i = counter_get(&st->started), intended;
	struct wclient *wc = &w->clients[i];

	if (w->current.what != ORDER_CONNECT || i >= w->target)
		return false;
	intended = intended_start(w, i);
	if (intended > now_ns) {
		come_back_at(w, intended, now_ns);
		return false;
	}
	wc->intended_ns = intended ? intended : now_ns;
	wc->rail = first_rail(w);
	wc->attempts = 0;
	wc->away = false;
	if (!begin(w, wc, now_ns))
		return false;
	counter_add(&st->started, 1);
	return true;
}

void connect_more(struct worker *w)
{
	struct worker_stats *st = &w->stats;
	bool more = true;

	/* Connections park, fail and go live from within, and come back here. */
	if (w->connecting_more)
		return;
	w->connecting_more = true;
	while (more && counter_get(&st->connecting) < pace_window(&w->pace)) {
		uint64_t now = clock_now_ns();

		/* Who was told to wait, first: else those that come and go could keep him out. */
		more = go_on_one(w) || retry_one(w, now) || return_one(w, now) || start_one(w, now);
	}
	w->connecting_more = false;
	if (counter_get(&st->connecting) || counter_get(&st->waiting))
		return;
	if ((w->current.what == ORDER_CONNECT && counter_get(&st->started) == w->target) ||
	    w->current.what == ORDER_STAGE)
		worker_fulfil(w);
}

void connect_begin(struct worker *w)
{
	w->retry = w->returning = w->parked = (struct client_queue){ NO_CLIENT, NO_CLIENT };
	connect_more(w);
}

void connect_go_on(struct worker *w)
{
	counter_set(&w->stats.through, 0);
	connect_more(w);
}

static void connect_on(struct worker *w, struct wclient *wc, uint32_t rail)
{
	wc->rail = rail;
	wc->intended_ns = clock_now_ns();
	wc->attempts = 0;
	connect_set_state(w, wc, WCLIENT_WAITING);
	push(w, &w->returning, wc);
}

void connect_again(struct worker *w, struct wclient *wc)
{
	connect_on(w, wc, 0);
}

/* False: the connection on the last rail was made, or given up. */
static bool connect_on_next_rail(struct worker *w, struct wclient *wc)
{
	uint32_t next = wc->rail + 1;

	while (next < w->n_rails && w->rails[next].dark)
		next++;
	if (next == w->n_rails || w->abandoned || w->current.what == ORDER_DISCONNECT)
		return false;
	connect_on(w, wc, next);
	return true;
}

bool connect_may_enter(void *arg, struct client_conn *c, enum stage stage)
{
	struct worker *w = rail_worker(arg);
	struct wclient *wc = client_user(c);

	if (stage <= w->upto)
		return true;
	connect_set_state(w, wc, WCLIENT_PARKED);
	counter_add(&w->stats.through, 1);
	push(w, &w->parked, wc);
	pace_on_success(&w->pace);
	return false;
}

static void record_stages(struct worker *w, const struct client_conn *c)
{
	struct client_info info;
	enum handshake_kind kind;
	bool has_reply = !w->workload->silent;

	client_get_info(c, &info);
	kind = info.resumed ? HANDSHAKE_RESUMED : HANDSHAKE_FULL;
	for (int i = 0; i < STAGE_TIMED; i++)
		if (i != STAGE_FIRST_REPLY || has_reply)
			hist_record(w->stats.stages[kind][i], info.stage_ns[i]);
	hist_record(w->stats.total[kind], info.total_ns);
}

/* The first client of the step to drop it says so; else there were thousands of lines. */
static void drop_rail(struct rail *rail, const struct wclient *wc)
{
	struct worker *w = rail->worker;
	char text[64];

	counter_add(&w->stats.rails_dropped, 1);
	if (rail->told)
		return;
	rail->told = true;
	log_warn("client %u drops rail %u (%s) in %s: %s; it goes on with %u of %u", (unsigned)(wc - w->clients),
		 rail->index, client_dev(rail->ctx)->name, stage_names[rail->fail.stage],
		 fail_code_text(&rail->fail, text, sizeof(text)), lanes_alive(w, wc), w->n_rails);
}

/* It has all the connections it will have. */
static void become_live(struct worker *w, struct wclient *wc)
{
	for (uint32_t i = 0; i < w->n_rails && w->n_rails > 1; i++)
		if (!lanes_conn_on(wc, i))
			drop_rail(&w->rails[i], wc);
	connect_set_state(w, wc, WCLIENT_LIVE);
	counter_add(&w->stats.through, 1);
	if (wc->away)
		churn_on_back(w, wc);
}

void connect_on_live(void *arg, struct client_conn *c)
{
	struct rail *rail = arg;
	struct worker *w = rail->worker;
	struct wclient *wc = client_user(c);

	if (client_grant(c)->credits < w->needs.credits) {
		/* Fewer credits than the server said it gives: not what was to be measured. */
		client_fail(c, FAIL_PROTOCOL, PROTO_CREDITS);
		return;
	}
	lanes_add(wc, rail->index, c);
	rail->works = true;
	pace_on_success(&w->pace);
	record_stages(w, c);
	if (w->cfg.cfg->verify)
		counter_add(&w->stats.psn_verified, 1);
	if (!connect_on_next_rail(w, wc))
		become_live(w, wc);
	connect_more(w);
}

static void lose(struct worker *w, struct wclient *wc)
{
	if (wc->state != WCLIENT_LIVE)
		return;
	connect_set_state(w, wc, WCLIENT_LOST);
	counter_add(&w->stats.dropped, 1);
}

void connect_on_lost(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct rail *rail = arg;
	struct worker *w = rail->worker;
	struct wclient *wc = client_user(c);

	rail->fail = *fail;
	/* It was refused here: an attempt that failed. */
	if (wc->conn == c && wc->state == WCLIENT_CONNECTING)
		return;
	lanes_lose(w, wc, rail->index);
	if (wc->state != WCLIENT_LIVE)
		return;
	if (lanes_alive(w, wc)) {
		drop_rail(rail, wc);
		wc->conn = wc->conn == c ? lanes_conn(w, wc) : wc->conn;
		return;
	}
	lose(w, wc);
}

/* True when no connection of the step is left. */
static bool all_gone(const struct worker_stats *st)
{
	return counter_get(&st->live) + counter_get(&st->leaving) + counter_get(&st->connecting) +
	       counter_get(&st->parked) == 0;
}

/* Somebody waited in vain on a rail where nobody has got through: with others there, it is not worth the time of all
 * the clients. What fails at once costs them nothing. */
static bool is_dark(const struct worker *w, const struct wclient *wc, const struct fail *fail)
{
	return w->n_rails > 1 && !w->rails[wc->rail].works &&
	       (fail->kind == FAIL_TIMEOUT || fail->kind == FAIL_CM_STATUS);
}

/* True if the failed attempt is followed by another one. */
static bool try_again(struct worker *w, struct wclient *wc, const struct fail *fail)
{
	uint64_t now = clock_now_ns();

	if (!pace_is_congestion(fail))
		return false;
	pace_on_congestion(&w->pace, wc->begun_ns, now);
	if (is_dark(w, wc, fail))
		return false;
	/* In a phase, a connection that starts anew would be behind all others. */
	if (w->cfg.cfg->phased && !wc->away)
		return false;
	if (wc->attempts > w->cfg.cfg->connect_retries || w->current.what == ORDER_DISCONNECT)
		return false;
	counter_add(&w->stats.retries, 1);
	fail_table_count(&w->stats.retried, fail);
	wc->retry_at_ns = now + RETRY_NS;
	connect_set_state(w, wc, WCLIENT_WAITING);
	push(w, &w->retry, wc);
	return true;
}

/* A client that left does not come back. It was held, and is not any more. */
static void lose_away(struct worker *w, struct wclient *wc)
{
	counter_add(&w->stats.dropped, 1);
	if (w->measuring)
		counter_add(&w->stats.cycles_failed, 1);
	take(&w->stats.away);
	wc->away = false;
}

/* It has no connection, or will have none when those that are being torn down are gone. */
static void end(struct worker *w, struct wclient *wc)
{
	connect_set_state(w, wc, wc->open ? WCLIENT_LOST : WCLIENT_NONE);
}

/* An attempt is over without a connection. */
static void on_attempt_failed(struct worker *w, struct wclient *wc, const struct fail *fail)
{
	if (fail->kind != FAIL_NONE && try_again(w, wc, fail))
		return;
	if (fail->kind != FAIL_NONE) {
		struct rail *rail = &w->rails[wc->rail];

		fail_table_count(&w->stats.failures, fail);
		rail->fail = *fail;
		rail->dark |= is_dark(w, wc, fail);
	}
	if (connect_on_next_rail(w, wc))
		return;
	wc->conn = lanes_conn(w, wc);
	if (wc->conn) {
		become_live(w, wc);
		return;
	}
	if (wc->away)
		lose_away(w, wc);
	else
		counter_add(&w->stats.failed, 1);
	end(w, wc);
}

/* The last connection of a client that had been live is gone. */
static void on_gone(struct worker *w, struct wclient *wc, const struct fail *fail)
{
	if (wc->state == WCLIENT_LEAVING && fail->kind == FAIL_NONE && w->current.what != ORDER_DISCONNECT) {
		connect_again(w, wc);
		return;
	}
	if (wc->away)
		lose_away(w, wc);
	connect_set_state(w, wc, WCLIENT_NONE);
}

void connect_on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct rail *rail = arg;
	struct worker *w = rail->worker;
	struct wclient *wc = client_user(c);
	bool was_attempt = wc->conn == c && (wc->state == WCLIENT_CONNECTING || wc->state == WCLIENT_PARKED);

	wc->open--;
	wc->conn = wc->conn == c ? NULL : wc->conn;
	lanes_remove(wc, rail->index, c);
	if (wc->open == 0)
		traffic_reset(w, wc);
	if (was_attempt) {
		on_attempt_failed(w, wc, fail);
	} else {
		if (fail->kind != FAIL_NONE)
			fail_table_count(&w->stats.failures, fail);
		/* With others left, or one to come, it is still there. */
		if (wc->open == 0 && wc->state != WCLIENT_WAITING)
			on_gone(w, wc, fail);
	}
	connect_more(w);
	traffic_maybe_stopped(w);
	if (w->current.what == ORDER_DISCONNECT && all_gone(&w->stats))
		worker_fulfil(w);
}

static void forget_queue(struct worker *w, struct client_queue *q)
{
	while (q->first != NO_CLIENT) {
		struct wclient *wc = pop(w, q);

		wc->conn = lanes_conn(w, wc);
		if (wc->conn) {
			become_live(w, wc);
			continue;
		}
		if (wc->away)
			lose_away(w, wc);
		else
			counter_add(&w->stats.failed, 1);
		end(w, wc);
	}
}

/* Those that wait to be tried again, or to come back, are not: the step ends. */
static void forget_waiting(struct worker *w)
{
	forget_queue(w, &w->retry);
	forget_queue(w, &w->returning);
}

/* Calls `f` for each of the client's connections. */
static void for_each_conn(const struct worker *w, struct wclient *wc, void (*f)(struct client_conn *c))
{
	struct client_conn *being_made = wc->conn;

	for (uint32_t i = 0; i < w->n_rails; i++) {
		struct client_conn *c = lanes_conn_on(wc, i);

		if (c && c != being_made)
			f(c);
	}
	if (being_made)
		f(being_made);
}

void connect_close_some(struct worker *w)
{
	uint32_t end = w->next_start + CLOSE_CHUNK;

	forget_waiting(w);
	for (; w->next_start < w->target && w->next_start < end; w->next_start++)
		for_each_conn(w, &w->clients[w->next_start], client_close);
	if (w->next_start < w->target)
		worker_run_chunks(w);
	else if (all_gone(&w->stats))
		worker_fulfil(w);
}

static void time_out(struct client_conn *c)
{
	client_fail(c, FAIL_TIMEOUT, 0);
}

void connect_abandon(struct worker *w)
{
	static const struct fail timed_out = { .stage = STAGE_TCP_CONNECT, .kind = FAIL_TIMEOUT };

	w->abandoned = true;
	for (uint32_t i = 0; i < w->target; i++) {
		struct wclient *wc = &w->clients[i];

		/* No more attempts: what comes now ends them. */
		wc->attempts = UINT32_MAX;
		if (wc->state == WCLIENT_WAITING) {
			fail_table_count(&w->stats.failures, &timed_out);
		} else if (wc->state == WCLIENT_CONNECTING || wc->state == WCLIENT_PARKED) {
			time_out(wc->conn);
		} else if (wc->state != WCLIENT_LIVE || !traffic_is_idle(wc)) {
			lose(w, wc);
			for_each_conn(w, wc, time_out);
		}
	}
	forget_waiting(w);
}
