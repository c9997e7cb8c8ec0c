/* SPDX-License-Identifier: BSD-2-Clause */
/* The stages up to the GRANT: TCP connect, TLS handshake, HELLO and its answer (docs/protocol.md). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/wire/psn.h"
#include "common/tls/tls.h"

#define HELLOS_MAX 8

/* True if the caller has to wait for the socket or the connection is over; false to go on. */
static bool wait_or_end(struct client_conn *c, enum tls_io_status st)
{
	if (st == TLS_IO_FAILED) {
		snprintf(c->refuse_text, sizeof(c->refuse_text), "%s", tls_io_failure_text(&c->io));
		client_fail(c, c->io.failure.kind, c->io.failure.code);
	}
	return st != TLS_IO_DONE;
}

/* Features without which this client refuses the grant. */
static uint16_t needed_features(const struct client_conn *c)
{
	return (uint16_t)((c->ctx->cfg->region ? FRAME_FEATURE_REGION : 0) |
			  (c->window.bytes ? FRAME_FEATURE_WINDOW : 0) |
			  (c->ctx->cfg->write_imm ? FRAME_FEATURE_WRITE_IMM : 0) |
			  (c->ctx->cfg->all_credits ? FRAME_FEATURE_ALL_CREDITS : 0) |
			  (c->ctx->cfg->message_auth ? FRAME_FEATURE_TAGS : 0) |
			  (c->ctx->cfg->transport == TRANSPORT_TCP ? FRAME_FEATURE_TCP : 0) |
			  (c->ctx->cfg->transport == TRANSPORT_TLS ? FRAME_FEATURE_TLS : 0) |
			  (client_is_oob(c) ? FRAME_FEATURE_OOB : 0) |
			  (c->keeps_tls ? FRAME_FEATURE_MORE : 0));
}

/* Draws a random PSN. If it is in use, the server refuses it and another one is drawn. */
static int draw_psn(struct client_conn *c)
{
	uint8_t b[3];

	if (auth_random(NULL, b, sizeof(b)))
		return -EIO;
	c->psn = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
	return 0;
}

static int prepare_hello(struct client_conn *c)
{
	struct frame_hello h = { .message_bytes = c->ctx->cfg->message_bytes,
				 .queue_depth = (uint16_t)c->ctx->cfg->depth,
				 .features = (uint16_t)(needed_features(c) |
							(c->ctx->cfg->resume && !c->follows ?
							 FRAME_FEATURE_TICKET : 0)),
				 .region_bytes = c->ctx->cfg->region ? c->ctx->cfg->region_bytes : 0,
				 .window = c->window, .qp = c->qp };
	uint64_t start_ns = clock_now_ns();

	if (link_is_rdma(&c->link) && draw_psn(c))
		return -EIO;
	h.psn = c->psn;
	tls_io_put(&c->io, frame_encode_hello(&h, tls_io_frame(&c->io)));
	c->hellos++;
	c->psn_generate_ns += clock_now_ns() - start_ns;
	return 0;
}

/* Keeps the ticket for later connections. The server sends it, if at all, before the GRANT: it has arrived. */
static void keep_session(struct client_conn *c)
{
	struct tls_session *s = tls_take_session(c->io.tls);

	if (!s || !c->session) {
		tls_session_free(s);
		return;
	}
	tls_session_free(*c->session);
	*c->session = s;
}

static int make_tags(struct client_conn *c)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES];
	int ret = tls_export_key(c->io.tls, AUTH_LABEL_MESSAGES, c->head.grant.session, FRAME_SESSION_BYTES, keys,
				 sizeof(keys));

	return ret ? ret : msg_tags_new(keys, true, &c->tags);
}

/* True if the grant fulfils the HELLO. A server that cannot do that has to refuse. */
static bool grant_serves(const struct client_conn *c, const struct frame_grant *g)
{
	const struct client_config *cfg = c->ctx->cfg;

	return g->message_bytes >= cfg->message_bytes && (!cfg->all_credits || g->credits >= cfg->depth) &&
	       (!cfg->region || g->region_bytes >= cfg->region_bytes) &&
	       (g->features & needed_features(c)) == needed_features(c);
}

/* The server may choose the port of the next connection but not its host: otherwise it could aim its clients'
 * connections, and the proofs they send, at any host. Over TLS there is no next connection. */
static bool grant_stays_at_server(const struct client_conn *c, const struct frame_grant *g)
{
	if (c->ctx->cfg->allow_redirect || c->link.transport == TRANSPORT_TLS)
		return true;
	return client_is_oob(c) ? client_oob_stays_at_server(c, g) : addr_same_host(&g->rdma, &c->ctx->cfg->server);
}

static void refuse_redirect(struct client_conn *c)
{
	char granted[ADDR_TEXT_MAX], server[ADDR_TEXT_MAX];
	struct addr a = c->head.grant.rdma;

	if (client_is_oob(c))
		addr_from_bytes(c->head.grant.qp.gid, 0, &a);
	snprintf(c->refuse_text, sizeof(c->refuse_text), "the server at %s granted a connection to %s",
		 addr_text(&c->ctx->cfg->server, server), addr_text(&a, granted));
	client_fail(c, FAIL_PROTOCOL, PROTO_REDIRECTED);
}

static void on_grant(struct client_conn *c, size_t n)
{
	const uint8_t *session = c->head.grant.session;
	const char *why = "";

	if (frame_decode_grant(c->io.frame, n, &c->head.grant, &why) || !grant_serves(c, &c->head.grant)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	if (!grant_stays_at_server(c, &c->head.grant)) {
		refuse_redirect(c);
		return;
	}
	/* There are receive buffers only for as many credits as HELLO asked for. */
	if (c->head.grant.credits > c->ctx->cfg->depth)
		c->head.grant.credits = (uint16_t)c->ctx->cfg->depth;
	if (tls_export_key(c->io.tls, AUTH_LABEL_CLIENT, session, FRAME_SESSION_BYTES, c->keys.client,
			   AUTH_KEY_BYTES) ||
	    tls_export_key(c->io.tls, AUTH_LABEL_SERVER, session, FRAME_SESSION_BYTES, c->keys.server,
			   AUTH_KEY_BYTES)) {
		client_fail(c, FAIL_ERRNO, EIO);
		return;
	}
	if (c->ctx->cfg->message_auth && make_tags(c)) {
		client_fail(c, FAIL_ERRNO, ENOMEM);
		return;
	}
	tls_describe(c->io.tls, c->tls_text, sizeof(c->tls_text));
	keep_session(c);
	client_stage_done(c, STAGE_PSN_EXCHANGE);
	if (c->link.transport == TRANSPORT_TLS) {
		client_socket_go_over_tls(c);
		return;
	}
	if (c->keeps_tls) {
		tls_io_watch(&c->io, 0);
	} else {
		tls_io_say_bye(&c->io);
		tls_io_close(&c->io);
	}
	client_enter(c, client_is_oob(c) ? STAGE_QP_SETUP :
		     link_is_rdma(&c->link) ? STAGE_ADDR_RESOLVE : STAGE_SOCKET_CONNECT);
}

static void exchange(struct client_conn *c);

static void on_refuse(struct client_conn *c, size_t n)
{
	struct frame_refuse r;
	const char *why = "";

	if (frame_decode_refuse(c->io.frame, n, &r, &why)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	if (r.code == REFUSE_PSN_CONFLICT && c->hellos < HELLOS_MAX && !prepare_hello(c)) {
		c->psn_redraws++;
		exchange(c);
		return;
	}
	snprintf(c->refuse_text, sizeof(c->refuse_text), "%s", r.text);
	client_fail(c, FAIL_REFUSED, r.code);
}

static void exchange(struct client_conn *c)
{
	struct frame_header h = { 0 };

	if (wait_or_end(c, tls_io_write(&c->io)) ||
	    wait_or_end(c, tls_io_read_header(&c->io, TLS_IO_FRAME_BYTES, &h)))
		return;
	if (h.version != FRAME_VERSION) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	if (wait_or_end(c, tls_io_read_frame(&c->io, &h)))
		return;
	if (h.type == FRAME_GRANT)
		on_grant(c, h.length);
	else if (h.type == FRAME_REFUSE)
		on_refuse(c, h.length);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
}

static void handshake(struct client_conn *c)
{
	if (wait_or_end(c, tls_io_handshake(&c->io)))
		return;
	c->resumed = tls_is_resumed(c->io.tls);
	client_stage_done(c, STAGE_TLS_HANDSHAKE);
	client_enter(c, STAGE_PSN_EXCHANGE);
}

void client_boot_exchange(struct client_conn *c)
{
	int ret = 0;

	client_set_state(c, CLIENT_ST_PSN_EXCHANGE);
	if (client_is_oob(c))
		ret = client_oob_take_qp(c);
	if (!ret)
		ret = prepare_hello(c);
	if (ret)
		client_fail(c, FAIL_ERRNO, -ret);
	else
		exchange(c);
}

static void on_connected(struct client_conn *c)
{
	int ret = tls_io_connected(&c->io);

	if (ret) {
		client_fail(c, FAIL_ERRNO, -ret);
		return;
	}
	client_stage_done(c, STAGE_TCP_CONNECT);
	client_enter(c, STAGE_TLS_HANDSHAKE);
}

void client_boot_handshake(struct client_conn *c)
{
	client_set_state(c, CLIENT_ST_TLS_HANDSHAKE);
	if (tls_io_start(&c->io, c->ctx->tls_ctx, c->ctx->cfg->verify_name)) {
		client_fail(c, FAIL_ERRNO, ENOMEM);
		return;
	}
	if (c->session && *c->session)
		tls_offer_session(c->io.tls, *c->session);
	handshake(c);
}

static void on_tls_ready(void *owner)
{
	client_queue(owner);
}

static void take_step(struct client_conn *c)
{
	if (c->state == CLIENT_ST_TCP_CONNECT && c->follows)
		client_enter(c, STAGE_PSN_EXCHANGE);
	else if (c->state == CLIENT_ST_TCP_CONNECT)
		on_connected(c);
	else if (c->state == CLIENT_ST_TLS_HANDSHAKE)
		handshake(c);
	else if (c->state == CLIENT_ST_PSN_EXCHANGE)
		exchange(c);
}

bool client_boot_serve_next(void *arg)
{
	struct client_ctx *ctx = arg;
	struct client_conn *c = TAILQ_FIRST(&ctx->ready);

	if (!c)
		return false;
	TAILQ_REMOVE(&ctx->ready, c, ready);
	c->queued = false;
	take_step(c);
	if (c->overdue)
		client_fail(c, FAIL_TIMEOUT, 0);
	return !TAILQ_EMPTY(&ctx->ready);
}

/* Takes over the TLS connection that `before` has kept. False if there is none. */
static bool take_tls(struct client_conn *c, struct client_conn *before)
{
	if (!before || before->state != CLIENT_ST_LIVE || !before->io.tls || c->ctx->gone)
		return false;
	tls_io_adopt(&c->io, tls_io_release(&before->io));
	c->resumed = before->resumed;
	return true;
}

void client_boot_start(struct client_conn *c)
{
	struct client_conn *before = c->before;
	int ret;

	c->before = NULL;
	tls_io_init(&c->io, c->ctx->loop, on_tls_ready, c, &c->ctx->tls_bytes_in, &c->ctx->tls_bytes_out);
	c->follows = take_tls(c, before);
	if (c->follows) {
		/* Not at once, so that the user can say more about the connection first. */
		client_queue(c);
		return;
	}
	/* Connect from the device's address: the server demands that TLS and RDMA come from the same one. */
	ret = c->ctx->gone ? -ENODEV : tls_io_connect(&c->io, &c->ctx->cfg->server,
						      link_is_rdma(&c->link) ? &c->ctx->dev.addr : NULL);
	if (ret)
		client_fail(c, FAIL_ERRNO, -ret);
}
