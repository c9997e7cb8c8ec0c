/* SPDX-License-Identifier: BSD-2-Clause */
/* States, deadlines and end of a client connection. See internal.h. */
#include "client/internal.h"

#include <assert.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/observed/observed.h"
#include "common/base/log.h"
#include "common/wire/msg.h"

#define STALE_MAX 8
/* After a failure the server may be gone, so the close waits for it for less time than an orderly close does. */
#define CLOSE_FAILED_NS (3 * NS_PER_S)

#define NAME(state) [CLIENT_ST_##state] = #state
const char *const client_state_names[] = {
	NAME(FREE), NAME(TCP_CONNECT), NAME(TLS_HANDSHAKE), NAME(PSN_EXCHANGE), NAME(SOCKET_CONNECT),
	NAME(QP_EXCHANGE), NAME(ADDR_RESOLVE),
	NAME(ROUTE_RESOLVE), NAME(RDMA_CONNECT), NAME(FIRST_REPLY), NAME(LIVE), NAME(CLOSING), NAME(DEAD),
};
static_assert(sizeof(client_state_names) / sizeof(client_state_names[0]) == CLIENT_ST_N,
	      "a name per state");

#define TO(state) (1u << CLIENT_ST_##state)
static const uint32_t legal_edges[CLIENT_ST_N] = {
	[CLIENT_ST_FREE] = TO(TCP_CONNECT),
	[CLIENT_ST_TCP_CONNECT] = TO(TLS_HANDSHAKE) | TO(PSN_EXCHANGE) | TO(CLOSING),
	[CLIENT_ST_TLS_HANDSHAKE] = TO(PSN_EXCHANGE) | TO(CLOSING),
	[CLIENT_ST_PSN_EXCHANGE] = TO(ADDR_RESOLVE) | TO(SOCKET_CONNECT) | TO(QP_EXCHANGE) | TO(FIRST_REPLY) |
				   TO(LIVE) | TO(CLOSING),
	[CLIENT_ST_SOCKET_CONNECT] = TO(FIRST_REPLY) | TO(LIVE) | TO(CLOSING),
	[CLIENT_ST_QP_EXCHANGE] = TO(LIVE) | TO(CLOSING),
	[CLIENT_ST_ADDR_RESOLVE] = TO(ROUTE_RESOLVE) | TO(CLOSING),
	[CLIENT_ST_ROUTE_RESOLVE] = TO(RDMA_CONNECT) | TO(CLOSING),
	[CLIENT_ST_RDMA_CONNECT] = TO(FIRST_REPLY) | TO(LIVE) | TO(CLOSING),
	[CLIENT_ST_FIRST_REPLY] = TO(LIVE) | TO(CLOSING),
	[CLIENT_ST_LIVE] = TO(CLOSING),
	[CLIENT_ST_CLOSING] = TO(DEAD),
	[CLIENT_ST_DEAD] = TO(FREE),
};

bool client_edge_is_legal(enum client_state from, enum client_state to)
{
	return legal_edges[from] >> to & 1;
}

static enum stage stage_of(enum client_state state)
{
	switch (state) {
	case CLIENT_ST_FREE:
	case CLIENT_ST_TCP_CONNECT: return STAGE_TCP_CONNECT;
	case CLIENT_ST_TLS_HANDSHAKE: return STAGE_TLS_HANDSHAKE;
	case CLIENT_ST_PSN_EXCHANGE: return STAGE_PSN_EXCHANGE;
	case CLIENT_ST_SOCKET_CONNECT: return STAGE_SOCKET_CONNECT;
	case CLIENT_ST_QP_EXCHANGE: return STAGE_QP_EXCHANGE;
	case CLIENT_ST_ADDR_RESOLVE: return STAGE_ADDR_RESOLVE;
	case CLIENT_ST_ROUTE_RESOLVE: return STAGE_ROUTE_RESOLVE;
	case CLIENT_ST_RDMA_CONNECT: return STAGE_RDMA_CONNECT;
	case CLIENT_ST_FIRST_REPLY: return STAGE_FIRST_REPLY;
	case CLIENT_ST_LIVE: return STAGE_TRAFFIC;
	case CLIENT_ST_CLOSING:
	case CLIENT_ST_DEAD:
	case CLIENT_ST_N: break;
	}
	return STAGE_DISCONNECT;
}

static uint64_t deadline_ns(const struct client_conn *c)
{
	uint64_t stage_ns = c->ctx->cfg->stage_timeout_ns;

	return c->state == CLIENT_ST_CLOSING && c->fail.kind != FAIL_NONE ? MIN(stage_ns, CLOSE_FAILED_NS) : stage_ns;
}

void client_restart_deadline(struct client_conn *c)
{
	struct client_ctx *ctx = c->ctx;

	ev_timer_stop(ctx->loop, &c->deadline);
	if (c->state == CLIENT_ST_FREE || c->state == CLIENT_ST_LIVE || c->state == CLIENT_ST_DEAD)
		return;
	ev_timer_set(&c->deadline, (double)deadline_ns(c) / 1e9, 0.);
	ev_timer_start(ctx->loop, &c->deadline);
}

void client_set_state(struct client_conn *c, enum client_state to)
{
	assert(client_edge_is_legal(c->state, to));
	log_debug("conn %u: %s -> %s", c->index, client_state_names[c->state], client_state_names[to]);
	c->state = to;
	c->overdue = false;
	client_restart_deadline(c);
}

void client_queue(struct client_conn *c)
{
	if (c->queued) {
		tls_io_watch(&c->io, 0);
		return;
	}
	c->queued = true;
	TAILQ_INSERT_TAIL(&c->ctx->ready, c, ready);
	pump_rest_is_due(&c->ctx->pump);
}

static void unqueue(struct client_conn *c)
{
	if (c->queued)
		TAILQ_REMOVE(&c->ctx->ready, c, ready);
	c->queued = false;
}

void client_stage_done(struct client_conn *c, enum stage stage)
{
	uint64_t now = clock_now_ns();

	c->stage_ns[stage] += now - c->stage_start_ns;
	c->stage_start_ns = now;
}

static bool is_over(const struct client_conn *c)
{
	return c->state == CLIENT_ST_CLOSING || c->state == CLIENT_ST_DEAD || c->state == CLIENT_ST_FREE;
}

void client_enter(struct client_conn *c, enum stage stage)
{
	const struct client_ops *ops = c->ctx->ops;
	bool may = !ops->may_enter || ops->may_enter(c->ctx->arg, c, stage);

	/* may_enter may have closed the connection. */
	if (is_over(c))
		return;
	if (may) {
		c->ctx->begin[stage](c);
		return;
	}
	c->parked = stage;
	c->overdue = false;
	ev_timer_stop(c->ctx->loop, &c->deadline);
	if (!tls_io_is_open(&c->io))
		return;
	/* Flush: otherwise bytes of this stage would stay here until the next stage while the server waits for them. */
	if (c->io.tls && tls_io_flush(&c->io) == TLS_IO_FAILED)
		client_fail(c, c->io.failure.kind, c->io.failure.code);
	else
		tls_io_watch(&c->io, 0);
}

void client_go_on(struct client_conn *c)
{
	enum stage stage = c->parked;
	uint64_t now = clock_now_ns();

	if (stage == STAGE_TIMED || is_over(c))
		return;
	c->parked = STAGE_TIMED;
	c->parked_ns += now - c->stage_start_ns;
	c->stage_start_ns = now;
	ev_now_update(c->ctx->loop);
	c->ctx->begin[stage](c);
}

void client_set_live(struct client_conn *c)
{
	c->total_ns = clock_now_ns() - c->intended_ns - c->parked_ns;
	client_set_state(c, CLIENT_ST_LIVE);
	c->ctx->ops->on_live(c->ctx->arg, c);
}

void client_set_number(struct client_conn *c, uint32_t number)
{
	c->head.number = number;
}

void client_use_session(struct client_conn *c, struct tls_session **session)
{
	c->session = session;
}

void client_use_window(struct client_conn *c, const struct frame_window *window)
{
	c->window = *window;
}

void client_try_finish(struct client_conn *c)
{
	if (c->state != CLIENT_ST_CLOSING || !rc_is_drained(&c->link.rc) || c->cm_connected || c->awaits_close)
		return;
	/* A QP with a READ that was cut off is not reused: in rxe the READ stays half done even after RESET. Neither is
	 * a QP whose number the server's host may refuse as stale. */
	rc_release(&c->link.rc, clock_now_ns(), !c->ctx->cfg->region && !c->qpn_lingers);
	sock_close(&c->link.sock);
	auth_wipe(&c->keys);
	msg_tags_free(c->tags);
	c->tags = NULL;
	client_set_state(c, CLIENT_ST_DEAD);
	TAILQ_INSERT_HEAD(&c->ctx->dead, c, entry);
}

void client_end_demand(struct client_conn *c)
{
	if (c->wants_qp)
		c->ctx->demand--;
	c->wants_qp = false;
}

/* Without rdmacm only a GOODBYE tells the server that this end leaves. It cannot arrive after a failed request; behind
 * the proof it can, even if the server's proof did not come in time. */
static bool can_say_goodbye(const struct client_conn *c)
{
	bool heard = c->state == CLIENT_ST_LIVE ? c->fail.kind != FAIL_TIMEOUT : c->proved;

	return client_is_oob(c) && heard && c->fail.kind != FAIL_WC_STATUS && !c->ctx->gone;
}

/* Sends a GOODBYE. False if that is not possible. */
static bool say_goodbye(struct client_conn *c)
{
	uint8_t flags = c->tags ? MSG_FLAG_TAG : 0;
	const struct msg_header h = { .type = MSG_GOODBYE, .flags = flags,
				      .length = MSG_HEADER_BYTES + msg_trailer_bytes(flags) };
	uint32_t buf = ep_buf_get(c->ctx->ep);

	if (buf == EP_NO_BUF)
		return false;
	msg_encode(&h, ep_buf(c->ctx->ep, buf));
	if (c->tags && msg_tag_write(c->tags, ep_buf(c->ctx->ep, buf), h.length)) {
		ep_buf_put(c->ctx->ep, buf);
		return false;
	}
	return rc_send_awaited(&c->link.rc, buf, h.length) == 0;
}

static void begin_close(struct client_conn *c)
{
	struct sock *s = &c->link.sock;

	c->awaits_close = can_say_goodbye(c) ||
			  (c->state == CLIENT_ST_LIVE && c->fail.kind == FAIL_NONE && sock_is_open(s));
	client_end_demand(c);
	unqueue(c);
	client_set_state(c, CLIENT_ST_CLOSING);
	/* The server must close first, so that TIME_WAIT holds the server's port and not one of ours. */
	if (c->awaits_close && !(client_is_oob(c) ? say_goodbye(c) : sock_say_bye(s)))
		c->awaits_close = false;
	tls_io_close(&c->io);
	if (c->cm_connected && cm_disconnect(c->link.rc.id))
		c->cm_connected = false;
	if (!c->awaits_close)
		rc_drain(&c->link.rc);
	client_try_finish(c);
}

void client_end_wait(struct client_conn *c)
{
	c->awaits_close = false;
	rc_drain(&c->link.rc);
	client_try_finish(c);
}

void client_close(struct client_conn *c)
{
	c->again = false;
	if (!is_over(c))
		begin_close(c);
}

bool client_begin_again(struct client_conn *c)
{
	if (c->stale == STALE_MAX)
		return false;
	log_info("conn %u: a queue pair number is stale: connecting again with another", c->index);
	c->stale++;
	c->again = true;
	client_stage_done(c, STAGE_RDMA_CONNECT);
	begin_close(c);
	return true;
}

void client_fail(struct client_conn *c, enum fail_kind kind, int code)
{
	bool was_live = c->state == CLIENT_ST_LIVE;
	char text[96];

	if (is_over(c) && !c->again)
		return;
	/* A connection that breaks after the server's GOODBYE broke because the server drains. */
	if (c->draining && (kind == FAIL_WC_STATUS || kind == FAIL_CLOSED)) {
		kind = FAIL_CLOSED;
		code = REFUSE_DRAINING;
	}
	c->fail = (struct fail){ .stage = c->again ? STAGE_RDMA_CONNECT : stage_of(c->state), .kind = kind,
				 .code = code };
	log_debug("conn %u failed at %s: %s (%s)", c->index, stage_names[c->fail.stage],
		  fail_code_text(&c->fail, text, sizeof(text)), fail_advice(&c->fail));
	if (was_live && c->ctx->ops->on_lost)
		c->ctx->ops->on_lost(c->ctx->arg, c, &c->fail);
	client_close(c);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct client_conn *c = w->data;

	(void)loop;
	(void)revents;
	/* The answer may have arrived in time and wait in the socket. Read it first: client_boot_serve_next fails the
	 * connection if the step does not end the state. */
	if (c->queued) {
		c->overdue = true;
		return;
	}
	if (c->state != CLIENT_ST_CLOSING) {
		client_fail(c, FAIL_TIMEOUT, 0);
		return;
	}
	if (!c->cm_connected && !c->awaits_close)
		rc_abandon(&c->link.rc);
	c->awaits_close = false;
	rc_drain(&c->link.rc);
	/* The server did not answer the disconnect: stop waiting; our own requests are flushed without it. */
	c->cm_connected = false;
	client_try_finish(c);
	if (c->state == CLIENT_ST_CLOSING) {
		ev_timer_set(w, (double)c->ctx->cfg->stage_timeout_ns / 1e9, 0.);
		ev_timer_start(loop, w);
	}
}

static void on_broken(struct rc *rc)
{
	client_fail((struct client_conn *)((char *)rc - offsetof(struct client_conn, link.rc)), FAIL_WC_STATUS,
		    IBV_WC_LOC_QP_OP_ERR);
}

static void begin_attempt(struct client_conn *c)
{
	struct client_ctx *ctx = c->ctx;

	c->parked = STAGE_TIMED;
	c->wants_qp = true;
	ctx->demand++;
	c->link.transport = ctx->cfg->transport;
	c->link.ep = ctx->ep;
	rc_init(&c->link.rc, ctx->ep, ctx->qps, on_broken);
	sock_init(&c->link.sock, ctx->socks);
	ev_timer_init(&c->deadline, on_deadline, 0., 0.);
	c->deadline.data = c;
	/* The loop's time may be old: before its first turn, or in a callback that connects many clients. */
	ev_now_update(ctx->loop);
	client_set_state(c, CLIENT_ST_TCP_CONNECT);
	ctx->begin[STAGE_TCP_CONNECT](c);
}

void client_restart(struct client_conn *c)
{
	client_stage_done(c, STAGE_RDMA_CONNECT);
	c->again = c->qpn_lingers = c->resumed = c->draining = c->proved = false;
	c->rma_in_flight = 0;
	c->hellos = 0;
	c->server_qpn = 0;
	c->head.in_flight = 0;
	memset(&c->head.grant, 0, sizeof(c->head.grant));
	begin_attempt(c);
}

struct client_conn *client_connect_after(struct client_ctx *ctx, struct client_conn *before, uint64_t intended_ns,
					 void *user)
{
	struct client_conn *c = TAILQ_FIRST(&ctx->free);
	uint32_t index;

	/* Refuse now, so that no client takes a session from the server and then finds no queue pair for it. */
	if (!c || (ctx->qps && !ctx->gone && qp_pool_available(ctx->qps) <= ctx->demand))
		return NULL;
	TAILQ_REMOVE(&ctx->free, c, entry);
	ctx->n_free--;
	index = c->index;
	memset(c, 0, sizeof(*c));
	c->state = CLIENT_ST_FREE;
	c->index = index;
	c->ctx = ctx;
	c->head.user = user;
	c->head.arg = ctx->arg;
	c->intended_ns = intended_ns;
	c->stage_start_ns = clock_now_ns();
	c->before = before;
	begin_attempt(c);
	return c;
}

struct client_conn *client_connect(struct client_ctx *ctx, uint64_t intended_ns, void *user)
{
	return client_connect_after(ctx, NULL, intended_ns, user);
}

void client_keep_tls(struct client_conn *c)
{
	c->keeps_tls = true;
}

void client_end_tls(struct client_conn *c)
{
	if (!c->keeps_tls || !c->io.tls)
		return;
	tls_io_say_bye(&c->io);
	tls_io_close(&c->io);
}

bool client_is_live(const struct client_conn *c)
{
	return c->state == CLIENT_ST_LIVE;
}

bool client_is_closing(const struct client_conn *c)
{
	return is_over(c) && !c->again;
}

enum stage client_parked_before(const struct client_conn *c)
{
	return c->parked;
}

bool client_look(const struct client_conn *c, struct effective *out)
{
	return effective_look(out, c->state == CLIENT_ST_LIVE ? &c->link : NULL, c->head.grant.credits);
}

void client_get_info(const struct client_conn *c, struct client_info *out)
{
	*out = (struct client_info){
		.tls = c->tls_text,
		.words = c->refuse_text,
		.resumed = c->resumed,
		.stale = c->stale,
		.client_qpn = rc_qpn(&c->link.rc),
		.server_qpn = c->server_qpn,
		.client_psn = c->psn,
		.psn_redraws = c->psn_redraws,
		.cm_psn = c->cm_psn,
		.stage_ns = c->stage_ns,
		.psn_generate_ns = c->psn_generate_ns,
		.total_ns = c->total_ns,
	};
}
