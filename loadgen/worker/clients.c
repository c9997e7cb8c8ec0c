/* SPDX-License-Identifier: BSD-2-Clause */
/* See clients.h. */
#include "loadgen/worker/clients.h"

#include <assert.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/hist/hist.h"
#include "common/wire/psn.h"
#include "loadgen/striping/lanes.h"

/* Goes on with the client's next lane. False: none is left to connect. */
static bool connect_next(struct connector *k, struct wclient *wc)
{
	uint32_t next = wc->lane + 1, n_lanes = k->traffic->n_lanes;

	while (next < n_lanes && connector_rail(k, next)->dark)
		next++;
	if (next == n_lanes || k->abandoned || k->mode == CONNECT_CLOSE)
		return false;
	connector_connect(k, wc, next);
	return true;
}

/* Counts attempts that met a stale queue pair number; the client module has repeated them by itself. */
static void count_stale(struct connector *k, const struct client_info *info)
{
	static const struct fail stale = { .stage = STAGE_RDMA_CONNECT, .kind = FAIL_CM_STATUS, .code = FAIL_CM_STALE };

	counter_add(&k->stats->retries, info->stale);
	for (uint32_t i = 0; i < info->stale; i++)
		fail_table_count(&k->stats->retried, &stale);
}

static_assert(RAILS_MAX * FRAME_QPS_MAX <= 64, "psns_noted has a bit for each lane");

/* Notes the PSNs of a connection that went live, and counts those that another live connection already has. If one is
 * shared, notes neither, because on_closed must not release the PSN of another connection. */
static void note_psns(const struct rail *rail, struct wclient *wc, const struct client_conn *c)
{
	struct worker_stats *st = rail->connector->stats;
	struct client_info info;
	bool own, servers;

	if (!rail->psns)
		return;
	client_get_info(c, &info);
	own = psn_reserve(rail->psns, info.client_psn);
	servers = psn_reserve(rail->psns, client_grant(c)->psn);
	counter_add(&st->psns_exchanged, 2);
	counter_add(&st->psns_shared, (uint64_t)!own + !servers);
	counter_add(&st->psns_redrawn, info.psn_redraws);
	if (own && servers) {
		wc->psns_noted |= UINT64_C(1) << client_number(c);
		return;
	}
	if (own)
		psn_release(rail->psns, info.client_psn);
	if (servers)
		psn_release(rail->psns, client_grant(c)->psn);
}

static void forget_psns(const struct rail *rail, struct wclient *wc, const struct client_conn *c)
{
	struct client_info info;

	if (!(wc->psns_noted >> client_number(c) & 1))
		return;
	client_get_info(c, &info);
	psn_release(rail->psns, info.client_psn);
	psn_release(rail->psns, client_grant(c)->psn);
	wc->psns_noted &= ~(UINT64_C(1) << client_number(c));
}

/* The times of making connections. */
struct connect_times {
	uint64_t stage_ns[STAGE_TIMED], psn_generate_ns, total_ns;
	enum handshake_kind kind;
};

static void record_times(struct connector *k, const struct connect_times *t)
{
	bool has_reply = !k->traffic->workload->silent;

	for (int i = 0; i < STAGE_TIMED; i++)
		if (stage_applies((enum stage)i, (enum transport)k->cfg->transport, k->cfg->connect) &&
		    (i != STAGE_FIRST_REPLY || has_reply))
			hist_record(k->stats->hists.stages[t->kind][i], t->stage_ns[i]);
	if (k->cfg->transport == TRANSPORT_RDMA)
		hist_record(k->stats->hists.psn_generate, t->psn_generate_ns);
	hist_record(k->stats->hists.total[t->kind], t->total_ns);
}

/* Adds the times of a connection. */
static void add_times(struct connect_times *t, const struct client_conn *c)
{
	struct client_info info;

	client_get_info(c, &info);
	for (int i = 0; i < STAGE_TIMED; i++)
		t->stage_ns[i] += info.stage_ns[i];
	t->psn_generate_ns += info.psn_generate_ns;
	t->total_ns = info.total_ns;
	t->kind = info.resumed ? HANDSHAKE_RESUMED : HANDSHAKE_FULL;
}

/* With several queue pairs, the times of a client are the sums over its connections, and the time until it had them
 * all. */
static void record_client(struct connector *k, const struct wclient *wc)
{
	struct connect_times t = { .kind = HANDSHAKE_FULL };

	for (uint32_t i = 0; i < k->traffic->n_lanes; i++)
		if (lanes_conn_on(wc, i))
			add_times(&t, lanes_conn_on(wc, i));
	t.total_ns = clock_now_ns() - wc->intended_ns;
	record_times(k, &t);
}

static void record_connection(struct connector *k, const struct client_conn *c)
{
	struct connect_times t = { .kind = HANDSHAKE_FULL };
	struct client_info info;

	client_get_info(c, &info);
	count_stale(k, &info);
	if (k->cfg->qps > 1)
		return;
	add_times(&t, c);
	record_times(k, &t);
}

/* Only the first client of the step to drop a connection of the rail is logged: there may be thousands. */
static void drop_lane(struct rail *rail, const struct wclient *wc)
{
	struct connector *k = rail->connector;
	char text[64];

	counter_add(&k->stats->rails_dropped, 1);
	if (rail->told)
		return;
	rail->told = true;
	log_warn("client %u drops %s %u (%s) in %s: %s; it goes on with %u of %u%s", wc->index,
		 k->cfg->qps > 1 ? "a queue pair of rail" : "rail", rail->index, client_dev(rail->ctx)->name,
		 stage_names[rail->fail.stage], fail_code_text(&rail->fail, text, sizeof(text)), lanes_alive(wc),
		 k->traffic->n_lanes, k->cfg->qps > 1 ? " queue pairs" : "");
}

/* Makes the client live with the connections that it has; lanes without one are dropped. */
static void become_live(struct connector *k, struct wclient *wc)
{
	uint32_t n_lanes = k->traffic->n_lanes;

	for (uint32_t i = 0; i < n_lanes && n_lanes > 1; i++) {
		if (lanes_conn_on(wc, i))
			client_end_tls(lanes_conn_on(wc, i));
		else
			drop_lane(connector_rail(k, i), wc);
	}
	if (k->cfg->qps > 1)
		record_client(k, wc);
	connector_set_state(k, wc, WCLIENT_LIVE);
	counter_add(&k->stats->through, 1);
	if (wc->away)
		k->on_back(k->churn, wc);
}

static void on_live(void *arg, struct client_conn *c)
{
	struct rail *rail = arg;
	struct connector *k = rail->connector;
	struct wclient *wc = client_user(c);

	lanes_add(wc, client_number(c), c);
	rail->works = true;
	pace_on_success(&k->pace);
	record_connection(k, c);
	note_psns(rail, wc, c);
	if (k->cfg->verify)
		counter_add(&k->stats->psn_verified, 1);
	if (!connect_next(k, wc))
		become_live(k, wc);
	connector_more(k);
}

/* Marks the client lost. With --reconnect it is away, as a leaving client already is, until it returns or is given
 * up. */
static void lose_client(struct connector *k, struct wclient *wc)
{
	bool comes_back = k->cfg->reconnect_ns && !k->abandoned && k->mode != CONNECT_CLOSE;

	if (wc->state != WCLIENT_LIVE && !(wc->state == WCLIENT_LEAVING && comes_back))
		return;
	connector_set_state(k, wc, WCLIENT_LOST);
	if (!comes_back) {
		counter_add(&k->stats->dropped, 1);
		return;
	}
	backoff_begin(&wc->backoff, clock_now_ns());
	counter_add(&k->stats->outages, 1);
	counter_add(&k->stats->away, !wc->away);
	wc->away = true;
}

/* True if the client tries again after a lost connection, or a failed attempt to replace one, ended with `fail`. */
static bool come_back(struct connector *k, struct wclient *wc, const struct fail *fail)
{
	uint64_t at_ns;

	if (k->abandoned || k->mode == CONNECT_CLOSE ||
	    !backoff_next(&wc->backoff, fail, k->cfg->reconnect_ns, clock_now_ns(), &at_ns))
		return false;
	fail_table_count(&k->stats->retried, fail);
	counter_add(&k->stats->comebacks, 1);
	connector_connect_at(k, wc, at_ns);
	return true;
}

static void on_lost(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct rail *rail = arg;
	struct connector *k = rail->connector;
	struct wclient *wc = client_user(c);

	rail->fail = *fail;
	forget_psns(rail, wc, c);
	/* The connection failed within on_live, so the client is not live yet: on_closed sees a failed attempt. */
	if (wc->conn == c && wc->state == WCLIENT_CONNECTING)
		return;
	lanes_lose(wc, client_number(c));
	if (wc->state == WCLIENT_LIVE && lanes_alive(wc)) {
		drop_lane(rail, wc);
		wc->conn = wc->conn == c ? lanes_conn(wc) : wc->conn;
		return;
	}
	lose_client(k, wc);
}

uint64_t clients_left(const struct worker_stats *st)
{
	return counter_get(&st->live) + counter_get(&st->leaving) + counter_get(&st->connecting) +
	       counter_get(&st->parked);
}

/* True if a client timed out on a rail on which none has connected: as there are other rails, no other client waits for
 * this one. A rail that fails at once costs no time, so clients keep trying it. */
static bool is_dark(const struct connector *k, const struct wclient *wc, const struct fail *fail)
{
	return k->n_rails > 1 && !k->rails[wc->lane % k->n_rails].works &&
	       (fail->kind == FAIL_TIMEOUT || fail->kind == FAIL_CM_STATUS);
}

/* Repeats the failed attempt if that may help. False: there is no other attempt. */
static bool try_again(struct connector *k, struct wclient *wc, const struct fail *fail)
{
	if (!pace_is_congestion(fail))
		return false;
	pace_on_congestion(&k->pace, wc->begun_ns, clock_now_ns());
	if (is_dark(k, wc, fail))
		return false;
	/* With --phased, a connection that starts anew would be a stage or more behind all others. */
	if (k->cfg->phased && !wc->away)
		return false;
	if (wc->attempts > k->cfg->connect_retries || k->mode == CONNECT_CLOSE)
		return false;
	counter_add(&k->stats->retries, 1);
	fail_table_count(&k->stats->retried, fail);
	connector_retry(k, wc);
	return true;
}

/* Gives up a client that has no connections but those being torn down, if any. */
static void give_up(struct connector *k, struct wclient *wc)
{
	if (wc->away) {
		/* The client had been connected, so it counts as dropped, not as failed. */
		counter_add(&k->stats->dropped, 1);
		if (k->traffic->measuring && !wc->backoff.lost_ns)
			counter_add(&k->stats->cycles_failed, 1);
		wc->backoff.lost_ns = 0;
		counter_take(&k->stats->away);
		wc->away = false;
	} else {
		counter_add(&k->stats->failed, 1);
	}
	connector_set_state(k, wc, wc->open ? WCLIENT_LOST : WCLIENT_NONE);
}

/* The client goes on with the connections it has; without any it is given up. */
static void settle(struct connector *k, struct wclient *wc)
{
	wc->conn = lanes_conn(wc);
	if (wc->conn)
		become_live(k, wc);
	else
		give_up(k, wc);
}

/* Logs the server's explanation, once per step: it says which server option denies what the workload needs. */
static void tell_refusal(struct rail *rail, const struct wclient *wc, const struct client_conn *c,
			 const struct fail *fail)
{
	struct client_info info;

	if (fail->kind != FAIL_REFUSED || (fail->code != REFUSE_UNSUPPORTED && fail->code != REFUSE_NO_RESOURCES) ||
	    rail->told_refusal)
		return;
	client_get_info(c, &info);
	rail->told_refusal = true;
	log_warn("the server refuses client %u: %s: %s", wc->index, refuse_code_name((uint32_t)fail->code), info.words);
}

/* Handles an attempt that ended without a connection. */
static void on_attempt_failed(struct connector *k, struct wclient *wc, const struct fail *fail)
{
	struct rail *rail = connector_rail(k, wc->lane);

	if (come_back(k, wc, fail)) {
		counter_add(&k->stats->retries, 1);
		return;
	}
	if (fail->kind != FAIL_NONE && !wc->backoff.lost_ns && try_again(k, wc, fail))
		return;
	if (fail->kind != FAIL_NONE) {
		fail_table_count(&k->stats->failures, fail);
		rail->fail = *fail;
		rail->dark |= is_dark(k, wc, fail);
	}
	if (!connect_next(k, wc))
		settle(k, wc);
}

/* The server is shutting down. A client with other connections goes on with those at once. Any other client sends
 * nothing more and waits for the replies to its operations in flight. */
static void on_draining(void *arg, struct client_conn *c)
{
	struct rail *rail = arg;
	struct wclient *wc = client_user(c);

	if (lanes_alive(wc) > 1)
		client_fail(c, FAIL_CLOSED, REFUSE_DRAINING);
	else
		lose_client(rail->connector, wc);
}

/* Called when the last connection of a client that had been live is gone. */
static void on_gone(struct connector *k, struct wclient *wc, const struct fail *fail)
{
	if (wc->state == WCLIENT_LEAVING && fail->kind == FAIL_NONE && k->mode != CONNECT_CLOSE)
		connector_connect(k, wc, 0);
	else if (wc->away)
		give_up(k, wc);
	else
		connector_set_state(k, wc, WCLIENT_NONE);
}

static void on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct rail *rail = arg;
	struct connector *k = rail->connector;
	struct wclient *wc = client_user(c);
	bool was_attempt = wc->conn == c && (wc->state == WCLIENT_CONNECTING || wc->state == WCLIENT_PARKED), last;

	wc->open--;
	forget_psns(rail, wc, c);
	counter_add(&k->stats->psn_mismatches, fail->kind == FAIL_PROTOCOL && fail->code == PROTO_PSN_MISMATCH);
	wc->conn = wc->conn == c ? NULL : wc->conn;
	lanes_remove(wc, client_number(c), c);
	if (wc->open == 0)
		connector_reset_client(wc);
	if (was_attempt) {
		connector_note_end(k, rail->index, fail);
		tell_refusal(rail, wc, c, fail);
		on_attempt_failed(k, wc, fail);
	} else {
		/* A client that has other connections, or waits to begin one, is not gone. */
		last = wc->open == 0 && wc->state != WCLIENT_WAITING;
		if (!last || !come_back(k, wc, fail)) {
			if (fail->kind != FAIL_NONE)
				fail_table_count(&k->stats->failures, fail);
			if (last)
				on_gone(k, wc, fail);
		}
	}
	connector_more(k);
}

static void on_reply(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	struct wclient *wc = client_user(c);
	struct traffic *t = wc->traffic;

	(void)arg;
	if (t->workload->on_reply)
		t->workload->on_reply(t, wc, sequence, data, bytes);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

static void on_credit(void *arg, struct client_conn *c, uint32_t credits, uint64_t sequence)
{
	struct wclient *wc = client_user(c);
	struct traffic *t = wc->traffic;

	(void)arg;
	if (t->workload->on_credit)
		t->workload->on_credit(t, wc, client_number(c), credits, sequence);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

static void on_ping(void *arg, struct client_conn *c, uint32_t number, const uint8_t *data, uint32_t bytes)
{
	struct wclient *wc = client_user(c);
	struct traffic *t = wc->traffic;

	(void)arg;
	if (t->workload->on_ping)
		t->workload->on_ping(t, wc, number, data, bytes);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

static void on_pushed(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	struct wclient *wc = client_user(c);
	struct traffic *t = wc->traffic;

	(void)arg;
	if (t->workload->on_pushed)
		t->workload->on_pushed(t, wc, client_number(c), sequence, data, bytes);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

static void on_rma(void *arg, struct client_conn *c, uint32_t n)
{
	struct wclient *wc = client_user(c);

	(void)arg;
	wc->traffic->workload->on_rma(wc->traffic, wc, client_number(c), n);
}

const struct client_ops clients_ops = {
	.may_enter = connector_may_enter,
	.on_live = on_live,
	.on_message = on_reply,
	.on_credit = on_credit,
	.on_ping = on_ping,
	.on_pushed = on_pushed,
	.on_rma = on_rma,
	.on_draining = on_draining,
	.on_lost = on_lost,
	.on_closed = on_closed,
};

/* Clients that wait to retry or to return stop waiting and go on with the connections they have. */
static void forget_waiting(struct connector *k)
{
	struct wclient_list *const lists[] = { &k->retry, &k->returning };
	struct wclient *wc;

	for (unsigned i = 0; i < 2; i++)
		while ((wc = TAILQ_FIRST(lists[i]))) {
			TAILQ_REMOVE(lists[i], wc, link);
			settle(k, wc);
		}
}

/* Calls `f` for each of the client's connections. */
static void for_each_conn(const struct connector *k, struct wclient *wc, void (*f)(struct client_conn *c))
{
	struct client_conn *being_made = wc->conn;

	for (uint32_t i = 0; i < k->traffic->n_lanes; i++) {
		struct client_conn *c = lanes_conn_on(wc, i);

		if (c && c != being_made)
			f(c);
	}
	if (being_made)
		f(being_made);
}

uint32_t clients_close(struct connector *k, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	forget_waiting(k);
	for (; from < to; from++) {
		n += k->traffic->clients[from].open > 0;
		for_each_conn(k, &k->traffic->clients[from], client_close);
	}
	return n;
}

static void time_out(struct client_conn *c)
{
	client_fail(c, FAIL_TIMEOUT, 0);
}

void clients_abandon(struct connector *k)
{
	static const struct fail timed_out = { .stage = STAGE_TCP_CONNECT, .kind = FAIL_TIMEOUT };

	connector_stop(k, CONNECT_HOLD);
	k->abandoned = true;
	for (uint32_t i = 0; i < k->target; i++) {
		struct wclient *wc = &k->traffic->clients[i];

		/* The present attempt is the client's last. */
		wc->attempts = UINT32_MAX;
		if (wc->state == WCLIENT_WAITING) {
			fail_table_count(&k->stats->failures, &timed_out);
		} else if (wc->state == WCLIENT_CONNECTING || wc->state == WCLIENT_PARKED) {
			time_out(wc->conn);
		} else if (wc->state != WCLIENT_LIVE || !traffic_is_idle(wc)) {
			lose_client(k, wc);
			for_each_conn(k, wc, time_out);
		}
	}
	forget_waiting(k);
}
