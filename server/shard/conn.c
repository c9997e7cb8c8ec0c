/* SPDX-License-Identifier: BSD-2-Clause */
/* States, deadlines and end of a client's connection. See conn.h. */
#include "server/shard/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/psn.h"
#include "common/wire/msg_tag.h"
#include "common/rdma/region.h"
#include "server/tables/session.h"
#include "server/shard/shard_data.h"

#define REFUSE_TIMEOUT_NS (2 * NS_PER_S)
#define CLOSE_TIMEOUT_NS (3 * NS_PER_S)
#define DRAIN_TIMEOUT_NS (10 * NS_PER_S)	/* further time for the device to flush the QP */

#define NAME(state) [CONN_ST_##state] = #state
const char *const conn_state_names[] = {
	NAME(FREE), NAME(TLS_ACCEPT), NAME(HELLO), NAME(REFUSE), NAME(GRANT), NAME(GRANTED),
	NAME(ACCEPTING), NAME(LIVE), NAME(CLOSING), NAME(DEAD),
};
static_assert(sizeof(conn_state_names) / sizeof(conn_state_names[0]) == CONN_ST_N, "a name per state");

#define TO(state) (1u << CONN_ST_##state)
static const uint32_t legal_edges[CONN_ST_N] = {
	[CONN_ST_FREE] = TO(TLS_ACCEPT) | TO(HELLO),
	[CONN_ST_TLS_ACCEPT] = TO(HELLO) | TO(CLOSING),
	[CONN_ST_HELLO] = TO(REFUSE) | TO(GRANT) | TO(CLOSING),
	[CONN_ST_REFUSE] = TO(HELLO) | TO(CLOSING),
	[CONN_ST_GRANT] = TO(GRANTED) | TO(CLOSING),
	[CONN_ST_GRANTED] = TO(ACCEPTING) | TO(CLOSING),
	[CONN_ST_ACCEPTING] = TO(LIVE) | TO(CLOSING),
	[CONN_ST_LIVE] = TO(CLOSING),
	[CONN_ST_CLOSING] = TO(DEAD),
	[CONN_ST_DEAD] = TO(FREE),
};

bool conn_edge_is_legal(enum conn_state from, enum conn_state to)
{
	return legal_edges[from] >> to & 1;
}

static uint64_t deadline_of(const struct conn *c, enum conn_state state)
{
	const struct server_config *cfg = c->shard->cfg;

	switch (state) {
	case CONN_ST_HELLO:
		/* The client may be making the connection before this one. */
		return c->earlier ? cfg->session_timeout_ns : cfg->handshake_timeout_ns;
	case CONN_ST_TLS_ACCEPT:
	case CONN_ST_GRANT:
		return cfg->handshake_timeout_ns;
	case CONN_ST_GRANTED:
	case CONN_ST_ACCEPTING:
		return cfg->session_timeout_ns;
	case CONN_ST_REFUSE:
		return REFUSE_TIMEOUT_NS;
	case CONN_ST_CLOSING:
		return CLOSE_TIMEOUT_NS;
	case CONN_ST_LIVE:
	case CONN_ST_FREE:
	case CONN_ST_DEAD:
	case CONN_ST_N:
		break;
	}
	return 0;
}

/* Time left until the state's deadline; 0: none. All HELLOs of a client share one; once that has passed, 1 ns is
 * left. */
static uint64_t time_left(const struct conn *c)
{
	uint64_t ns = deadline_of(c, c->state), spent_ns;

	if (c->state != CONN_ST_HELLO)
		return ns;
	spent_ns = clock_now_ns() - c->asked_ns;
	return spent_ns < ns ? ns - spent_ns : 1;
}

static enum stage stage_of(const struct conn *c)
{
	switch (c->state) {
	case CONN_ST_TLS_ACCEPT:
		return STAGE_TLS_HANDSHAKE;
	case CONN_ST_GRANTED:
	case CONN_ST_ACCEPTING:
		return !link_is_rdma(&c->link) ? STAGE_SOCKET_CONNECT : c->oob ? STAGE_QP_EXCHANGE : STAGE_RDMA_CONNECT;
	case CONN_ST_LIVE:
		return STAGE_TRAFFIC;
	case CONN_ST_CLOSING:
	case CONN_ST_DEAD:
		return STAGE_DISCONNECT;
	case CONN_ST_FREE:
	case CONN_ST_HELLO:
	case CONN_ST_REFUSE:
	case CONN_ST_GRANT:
	case CONN_ST_N:
		break;
	}
	return STAGE_PSN_EXCHANGE;
}

static void restart_deadline(struct conn *c)
{
	uint64_t deadline_ns = time_left(c);

	ev_timer_stop(c->shard->loop, &c->deadline);
	if (deadline_ns) {
		ev_timer_set(&c->deadline, (double)deadline_ns / 1e9, 0.);
		ev_timer_start(c->shard->loop, &c->deadline);
	}
}

void conn_set_state(struct conn *c, enum conn_state to)
{
	struct shard *s = c->shard;

	assert(conn_edge_is_legal(c->state, to));
	log_event(LOG_LVL_DEBUG, &(struct log_fields){ .shard = &s->index, .connection = &c->index },
		  "shard %u conn %u: %s -> %s", s->index, c->index, conn_state_names[c->state], conn_state_names[to]);
	TAILQ_REMOVE(&s->lists[c->state], c, entry);
	s->counts[c->state]--;
	TAILQ_INSERT_TAIL(&s->lists[to], c, entry);
	s->counts[to]++;
	c->state = to;
	s->regions_awaited -= c->awaits_region;
	c->awaits_region = false;
	c->overdue = false;
	restart_deadline(c);
}

void conn_set_live(struct conn *c)
{
	struct shard *s = c->shard;
	uint32_t connected;

	if (c->state != CONN_ST_ACCEPTING)
		return;
	hist_record(s->stats.stages[SS_ACCEPT_TO_ESTABLISHED], clock_now_ns() - c->accepted_ns);
	counter_add(&s->stats.established, 1);
	peers_note_progress(s->peers, addr_network(&c->peer), clock_now_ns());
	c->heard = c->acked = true;
	/* The client has used its GRANT: the server has nothing left to say over TLS, if that was not handed on. */
	conn_close_tls(c);
	conn_set_state(c, CONN_ST_LIVE);
	connected = s->counts[CONN_ST_LIVE];
	/* Set this before the first reply: a client that asks for a report after its reply must be counted in it. */
	counter_set(&s->stats.connected, connected);
	if (connected > counter_get(&s->stats.connected_peak))
		counter_set(&s->stats.connected_peak, connected);
}

/* Called when the close takes too long. The first time, stops waiting for the peer: the QP is in ERR, so its
 * completions come from the device alone. The second time, stops waiting for the device. */
static void give_up_waiting(struct conn *c)
{
	log_event(LOG_LVL_DEBUG, &(struct log_fields){ .shard = &c->shard->index, .connection = &c->index },
		  "shard %u conn %u: %s did not finish the close", c->shard->index, c->index,
		  c->drain_overdue ? "the device" : "the peer");
	if (c->drain_overdue)
		rc_abandon(&c->link.rc);
	c->drain_overdue = true;
	c->cm_connected = false;
	conn_close_tls(c);
	conn_try_finish(c);
	if (c->state == CONN_ST_CLOSING) {
		ev_timer_set(&c->deadline, (double)DRAIN_TIMEOUT_NS / 1e9, 0.);
		ev_timer_start(c->shard->loop, &c->deadline);
	}
}

void conn_queue(struct conn *c)
{
	struct shard *s = c->shard;

	if (c->queued) {
		if (c->io)
			tls_io_watch(c->io, 0);
		return;
	}
	c->queued = true;
	c->crowd = peers_has_most(s->peers, PEERS_TLS, &c->tls_hold);
	TAILQ_INSERT_TAIL(&s->ready[c->crowd], c, ready);
	pump_rest_is_due(&s->pump);
}

bool conn_is_overdue(const struct conn *c)
{
	return c->overdue || (deadline_of(c, c->state) && !ev_is_active(&c->deadline));
}

void conn_await_leave(struct conn *c)
{
	c->left = true;
	ev_timer_set(&c->deadline, (double)CLOSE_TIMEOUT_NS / 1e9, 0.);
	ev_timer_start(c->shard->loop, &c->deadline);
}

void conn_end_overdue(struct conn *c)
{
	if (c->state == CONN_ST_REFUSE)
		conn_close(c, CLOSE_REFUSED);
	else if (c->left)
		conn_close(c, CLOSE_PEER_LEFT);
	else
		conn_fail(c, FAIL_TIMEOUT, 0);
}

/* Gives up a close that takes too long. Queues other connections to be closed one by one, after clients' data, because
 * those opened at the same time expire at the same time. */
static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct conn *c = w->data;

	(void)loop;
	(void)revents;
	if (c->state == CONN_ST_CLOSING) {
		give_up_waiting(c);
		return;
	}
	c->overdue = true;
	conn_queue(c);
}

static void on_broken(struct rc *rc)
{
	conn_fail((struct conn *)((char *)rc - offsetof(struct conn, link.rc)), FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

static void reset(struct conn *c, uint64_t now_ns, const struct addr *peer)
{
	c->greeted = c->retry_hello = c->awaits_region = c->overdue = c->more = false;
	c->hellos = 0;
	c->earlier = 0;
	c->peer = *peer;
	c->admitted_ns = 0;
	c->admitted = c->has_psns = false;
	c->credits = 0;
	c->region = REGION_NONE;
	c->window = (struct frame_window){ 0 };
	c->tags = NULL;
	c->link.transport = TRANSPORT_RDMA;
	c->link.ep = c->shard->ep;
	rc_init(&c->link.rc, c->shard->ep, c->shard->qps, on_broken);
	sock_init(&c->link.sock, c->shard->socks);
	c->cm_connected = c->qpn_lingers = c->drain_overdue = c->told = c->left = c->oob = c->grant_sent = false;
	c->heard = c->acked = c->doubted = false;
	c->waited_looks = 0;
	c->look = 0;
	c->in_flight = c->owed = 0;
	c->started_ns = now_ns;
	c->accepted_ns = 0;
}

void conn_uncount_tls(struct conn *c)
{
	struct shard *s = c->shard;

	peers_give(s->peers, PEERS_TLS, &c->tls_hold);
	peers_give(s->server->peers, PEERS_TLS, &c->tls_share);
	s->tls_open--;
}

/* Counts the TLS connection. False if its address has too many already. */
static bool count_tls(struct conn *c)
{
	struct shard *s = c->shard;
	uint64_t network = addr_network(&c->peer);

	s->tls_open++;
	if (peers_take(s->peers, PEERS_TLS, network, &c->tls_hold, UINT32_MAX) &&
	    (!s->server->peers || peers_take(s->server->peers, PEERS_TLS, network, &c->tls_share,
					     server_config_per_address(s->cfg))))
		return true;
	conn_uncount_tls(c);
	return false;
}

/* Returns a free object, or NULL if all are in use. Prefers one that was used before, so that objects never used
 * take no memory. */
static struct conn *find_free_conn(struct shard *s)
{
	if (TAILQ_EMPTY(&s->lists[CONN_ST_FREE]) && s->conns_used < s->cfg->shard_conns) {
		struct conn *c = &s->conns[s->conns_used];

		c->index = s->conns_used++;
		c->shard = s;
		TAILQ_INSERT_TAIL(&s->lists[CONN_ST_FREE], c, entry);
	}
	return TAILQ_FIRST(&s->lists[CONN_ST_FREE]);
}

/* The state of TLS is on the heap, because most connections outlive TLS. */
static int make_io(struct conn *c, void (*on_ready)(void *conn))
{
	struct shard *s = c->shard;

	c->io = malloc(sizeof(*c->io));
	if (!c->io)
		return -ENOMEM;
	tls_io_init(c->io, s->loop, on_ready, c, &s->stats.tls_bytes_in, &s->stats.tls_bytes_out);
	return 0;
}

static void drop_io(struct conn *c)
{
	free(c->io);
	c->io = NULL;
}

int conn_new(struct shard *s, int fd, const struct addr *peer, void (*on_ready)(void *conn), struct conn **out)
{
	struct conn *c = find_free_conn(s);
	int ret;

	if (!c) {
		close(fd);
		return -ENOBUFS;
	}
	reset(c, clock_now_ns(), peer);
	if (!count_tls(c)) {
		close(fd);
		return -EDQUOT;
	}
	ret = make_io(c, on_ready);
	if (ret)
		close(fd);
	else
		ret = tls_io_accept(c->io, s->tls_ctx, fd);
	if (ret) {
		drop_io(c);
		conn_uncount_tls(c);
		return ret;
	}
	ev_timer_init(&c->deadline, on_deadline, 0., 0.);
	c->deadline.data = c;
	conn_set_state(c, CONN_ST_TLS_ACCEPT);
	*out = c;
	return 0;
}

static void unqueue(struct conn *c)
{
	if (c->queued)
		TAILQ_REMOVE(&c->shard->ready[c->crowd], c, ready);
	c->queued = false;
}

void conn_close_tls(struct conn *c)
{
	unqueue(c);
	if (c->io && tls_io_is_open(c->io)) {
		tls_io_close(c->io);
		conn_uncount_tls(c);
	}
	drop_io(c);
}

struct tls *conn_release_tls(struct conn *c)
{
	struct tls *tls = tls_io_release(c->io);

	/* It may be queued because its deadline has passed while it waited for a region. */
	unqueue(c);
	drop_io(c);
	conn_uncount_tls(c);
	return tls;
}

int conn_follow(struct conn *c, void (*on_ready)(void *conn), struct conn **out)
{
	struct shard *s = c->shard;
	struct conn *next = find_free_conn(s);
	struct tls *tls;
	int ret;

	if (!next) {
		conn_close_tls(c);
		return -ENOBUFS;
	}
	reset(next, c->started_ns, &c->peer);	/* its age is that of the TLS connection */
	next->earlier = c->earlier + 1;
	next->asked_ns = clock_now_ns();
	tls = conn_release_tls(c);
	if (!count_tls(next)) {
		tls_free(tls);
		return -EDQUOT;
	}
	ret = make_io(next, on_ready);
	if (ret) {
		tls_free(tls);
		conn_uncount_tls(next);
		return ret;
	}
	tls_io_adopt(next->io, tls);
	ev_timer_init(&next->deadline, on_deadline, 0., 0.);
	next->deadline.data = next;
	counter_add(&s->stats.tls_shared, 1);
	conn_set_state(next, CONN_ST_HELLO);
	*out = next;
	return 0;
}

/* Gives back the place among the clients, and the credits. */
static void give_place(struct conn *c)
{
	struct shard *s = c->shard;

	if (c->admitted)
		atomic_fetch_sub_explicit(s->admitted, 1, memory_order_relaxed);
	c->admitted = false;
	peers_give(s->peers, PEERS_CLIENTS, &c->grant_hold);
	peers_give(s->server->peers, PEERS_CLIENTS, &c->client_share);
	s->credits_granted -= c->credits;
	s->credit_holders -= c->credits > 0;
	c->credits = 0;
}

/* Releases everything the grant took. PSNs that were programmed into a QP go into quarantine with it. */
static void release_grant(struct conn *c)
{
	struct shard *s = c->shard;

	if (c->region != REGION_NONE) {
		region_put(s->regions, c->region);
		s->regions_to_clear = true;
	}
	c->region = REGION_NONE;
	if (c->has_psns && c->link.rc.slot != QP_POOL_NONE) {
		s->resting[c->link.rc.slot] = (struct psn_pair){ c->client_psn, c->server_psn, true };
	} else if (c->has_psns) {
		psn_release(s->server->psns, c->client_psn);
		psn_release(s->server->psns, c->server_psn);
	}
	c->has_psns = false;
	give_place(c);
	auth_wipe(&c->keys);
	msg_tags_free(c->tags);
	c->tags = NULL;
}

static void finish(struct conn *c)
{
	bool had_region = c->region != REGION_NONE;

	release_grant(c);
	/* Do not reuse a QP that may have served READs: in Soft-RoCE a half-done READ survives RESET. Do not reuse a QP
	 * number that the client's host may refuse as stale, as it does while a process there keeps the CM id. */
	rc_release(&c->link.rc, clock_now_ns(), !had_region && !c->qpn_lingers);
	conn_set_state(c, CONN_ST_DEAD);
}

void conn_try_finish(struct conn *c)
{
	if (c->state != CONN_ST_CLOSING || !rc_is_drained(&c->link.rc) || c->cm_connected || c->io)
		return;
	finish(c);
}

void conn_abandon(struct conn *c)
{
	conn_close(c, CLOSE_DRAINING);
	if (c->state == CONN_ST_CLOSING) {
		conn_close_tls(c);
		finish(c);
	}
	if (c->state == CONN_ST_DEAD)
		conn_set_state(c, CONN_ST_FREE);
}

static void begin_close(struct conn *c, enum close_reason reason)
{
	struct shard *s = c->shard;
	bool was_granted = c->state == CONN_ST_GRANTED;

	/* A HELLO that is refused or cut off costs no rest: otherwise TLS alone could put all queue pairs to rest. */
	c->link.rc.peer_unaware = c->state == CONN_ST_HELLO || c->state == CONN_ST_REFUSE ||
				  (c->state == CONN_ST_GRANT && !c->grant_sent);
	counter_add(&s->stats.closed[reason], 1);
	if (was_granted)
		session_take(s->sessions, c->session);
	conn_set_state(c, CONN_ST_CLOSING);
	conn_close_tls(c);
	if (c->cm_connected && cm_disconnect(c->link.rc.id))
		c->cm_connected = false;
	rc_drain(&c->link.rc);
	sock_close(&c->link.sock);
	/* A session that is taken back makes room for another client at once. Out of band its QP, which receives no
	 * more, has yet to be drained; after that whoever asks most often would get the place. */
	if (was_granted)
		give_place(c);
	conn_try_finish(c);
}

void conn_close(struct conn *c, enum close_reason reason)
{
	if (c->state == CONN_ST_CLOSING || c->state == CONN_ST_DEAD || c->state == CONN_ST_FREE)
		return;
	begin_close(c, reason);
}

void conn_fail(struct conn *c, enum fail_kind kind, int code)
{
	struct fail f = { .stage = stage_of(c), .kind = kind, .code = code };
	char text[96], peer[ADDR_TEXT_MAX];

	if (c->state == CONN_ST_CLOSING || c->state == CONN_ST_DEAD || c->state == CONN_ST_FREE)
		return;
	fail_table_count(&c->shard->stats.failures, &f);
	log_event(LOG_LVL_DEBUG, &(struct log_fields){
			  .shard = &c->shard->index, .connection = &c->index, .peer = addr_text(&c->peer, peer),
			  .stage = stage_names[f.stage], .reason = fail_code_text(&f, text, sizeof(text)),
			  .advice = fail_advice(&f) },
		  "client %s failed at %s: %s (%s)", peer, stage_names[f.stage], text, fail_advice(&f));
	begin_close(c, CLOSE_FAILED);
}
