/* The client's bootstrap: TCP, TLS handshake, HELLO, GRANT. docs/protocol.md. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/conn.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/wire/psn.h"
#include "common/tls/tls.h"

#define HELLOS_MAX 8

static void want(struct client_conn *c, int events)
{
	int fd = c->tls ? tls_fd(c->tls) : c->fd;

	if (ev_is_active(&c->tls_io) && c->tls_io.events == events)
		return;
	ev_io_stop(c->ctx->loop, &c->tls_io);
	ev_io_set(&c->tls_io, fd, events);
	ev_io_start(c->ctx->loop, &c->tls_io);
}

/* True if the caller has to wait for the socket or the connection is over; false to go on. */
static bool wait_or_end(struct client_conn *c, enum tls_status st)
{
	struct fail f;

	switch (st) {
	case TLS_DONE:
		return false;
	case TLS_WANT_READ:
		want(c, EV_READ);
		return true;
	case TLS_WANT_WRITE:
		want(c, EV_WRITE);
		return true;
	case TLS_EOF:
		client_fail(c, FAIL_CLOSED, 0);
		return true;
	case TLS_FAILED:
		break;
	}
	tls_failure(c->tls, &f);
	snprintf(c->refuse_text, sizeof(c->refuse_text), "%s", tls_failure_text(c->tls));
	client_fail(c, f.kind, f.code);
	return true;
}

/* Those that the connection is no use without. */
static uint16_t needed_features(const struct client_conn *c)
{
	return (uint16_t)((c->ctx->cfg->region ? FRAME_FEATURE_REGION : 0) |
			  (c->window.bytes ? FRAME_FEATURE_WINDOW : 0) |
			  (c->ctx->cfg->message_auth ? FRAME_FEATURE_TAGS : 0));
}

/* A PSN of our own; the server refuses one that is in use, and we draw again. */
static int prepare_hello(struct client_conn *c)
{
	struct frame_hello h = { .message_bytes = c->ctx->cfg->message_bytes,
				 .queue_depth = (uint16_t)c->ctx->cfg->depth,
				 .features = (uint16_t)(needed_features(c) |
							(c->ctx->cfg->resume ? FRAME_FEATURE_TICKET : 0)),
				 .window = c->window };
	uint8_t b[3];

	if (auth_random(NULL, b, sizeof(b)))
		return -EIO;
	c->psn = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
	h.psn = c->psn;
	c->out_n = (uint32_t)frame_encode_hello(&h, c->out);
	c->out_done = 0;
	c->in_n = 0;
	c->hellos++;
	return 0;
}

static bool write_hello(struct client_conn *c)
{
	while (c->out_done < c->out_n) {
		size_t put;

		if (wait_or_end(c, tls_write(c->tls, c->out + c->out_done, c->out_n - c->out_done, &put)))
			return false;
		c->ctx->bytes_sent += put;
		c->out_done += (uint32_t)put;
	}
	return true;
}

static bool read_upto(struct client_conn *c, uint32_t upto)
{
	while (c->in_n < upto) {
		size_t got;

		if (wait_or_end(c, tls_read(c->tls, c->in + c->in_n, upto - c->in_n, &got)))
			return false;
		c->ctx->bytes_received += got;
		c->in_n += (uint32_t)got;
	}
	return true;
}

/* A ticket, if one came, came before the GRANT. */
static void keep_session(struct client_conn *c)
{
	struct tls_session *s = tls_take_session(c->tls);

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
	int ret = tls_export_key(c->tls, AUTH_LABEL_MESSAGES, c->grant.session, FRAME_SESSION_BYTES, keys,
				 sizeof(keys));

	return ret ? ret : msg_tags_new(keys, true, &c->tags);
}

static void on_grant(struct client_conn *c)
{
	const uint8_t *session = c->grant.session;
	const char *why = "";

	if (frame_decode_grant(c->in, c->in_n, &c->grant, &why) ||
	    c->grant.message_bytes < c->ctx->cfg->message_bytes ||
	    (c->grant.features & needed_features(c)) != needed_features(c)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	/* Receive buffers are sized for what was asked for, whatever more the server offers. */
	if (c->grant.credits > c->ctx->cfg->depth)
		c->grant.credits = (uint16_t)c->ctx->cfg->depth;
	if (tls_export_key(c->tls, AUTH_LABEL_CLIENT, session, FRAME_SESSION_BYTES, c->keys.client,
			   AUTH_KEY_BYTES) ||
	    tls_export_key(c->tls, AUTH_LABEL_SERVER, session, FRAME_SESSION_BYTES, c->keys.server,
			   AUTH_KEY_BYTES)) {
		client_fail(c, FAIL_ERRNO, EIO);
		return;
	}
	if (c->ctx->cfg->message_auth && make_tags(c)) {
		client_fail(c, FAIL_ERRNO, ENOMEM);
		return;
	}
	tls_describe(c->tls, c->tls_text, sizeof(c->tls_text));
	keep_session(c);
	tls_close_notify(c->tls);
	client_close_tls(c);
	client_stage_done(c, STAGE_PSN_EXCHANGE);
	client_enter(c, STAGE_ADDR_RESOLVE);
}

static void exchange(struct client_conn *c);

static void on_refuse(struct client_conn *c)
{
	struct frame_refuse r;
	const char *why = "";

	if (frame_decode_refuse(c->in, c->in_n, &r, &why)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	if (r.code == REFUSE_PSN_CONFLICT && c->hellos < HELLOS_MAX && !prepare_hello(c)) {
		exchange(c);
		return;
	}
	snprintf(c->refuse_text, sizeof(c->refuse_text), "%s", r.text);
	client_fail(c, FAIL_REFUSED, r.code);
}

static void exchange(struct client_conn *c)
{
	struct frame_header h;

	if (!write_hello(c) || !read_upto(c, FRAME_HEADER_BYTES))
		return;
	if (frame_decode_header(c->in, sizeof(c->in), &h) || h.version != FRAME_VERSION) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return;
	}
	if (!read_upto(c, h.length))
		return;
	if (h.type == FRAME_GRANT)
		on_grant(c);
	else if (h.type == FRAME_REFUSE)
		on_refuse(c);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
}

static void handshake(struct client_conn *c)
{
	if (wait_or_end(c, tls_handshake(c->tls)))
		return;
	c->resumed = tls_is_resumed(c->tls);
	client_stage_done(c, STAGE_TLS_HANDSHAKE);
	client_enter(c, STAGE_PSN_EXCHANGE);
}

void client_boot_exchange(struct client_conn *c)
{
	client_set_state(c, CLIENT_ST_PSN_EXCHANGE);
	if (prepare_hello(c))
		client_fail(c, FAIL_ERRNO, EIO);
	else
		exchange(c);
}

static void on_connected(struct client_conn *c)
{
	int e = 0;
	socklen_t len = sizeof(e);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len))
		e = errno;
	if (e) {
		client_fail(c, FAIL_ERRNO, e);
		return;
	}
	client_stage_done(c, STAGE_TCP_CONNECT);
	client_enter(c, STAGE_TLS_HANDSHAKE);
}

void client_boot_handshake(struct client_conn *c)
{
	client_set_state(c, CLIENT_ST_TLS_HANDSHAKE);
	if (tls_new(c->ctx->tls_ctx, c->fd, c->ctx->cfg->verify_name, &c->tls)) {
		client_fail(c, FAIL_ERRNO, ENOMEM);
		return;
	}
	c->fd = -1;
	if (c->session && *c->session)
		tls_offer_session(c->tls, *c->session);
	handshake(c);
}

static void on_tls_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct client_conn *c = w->data;

	(void)loop;
	(void)revents;
	if (c->state == CLIENT_ST_TCP_CONNECT)
		on_connected(c);
	else if (c->state == CLIENT_ST_TLS_HANDSHAKE)
		handshake(c);
	else if (c->state == CLIENT_ST_PSN_EXCHANGE)
		exchange(c);
}

void client_boot_start(struct client_conn *c)
{
	const struct addr *server = &c->ctx->cfg->server;
	/* From the device's address, so that TLS and RDMA come from the same one. */
	struct addr local = c->ctx->dev.addr;
	int one = 1;

	ev_io_init(&c->tls_io, on_tls_io, -1, EV_WRITE);
	c->tls_io.data = c;
	c->fd = socket(server->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0) {
		client_fail(c, FAIL_ERRNO, errno);
		return;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* The port is chosen at connect, from the whole range for each destination (ip(7)). */
	setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (bind(c->fd, (struct sockaddr *)&local.ss, local.len) ||
	    (connect(c->fd, (const struct sockaddr *)&server->ss, server->len) && errno != EINPROGRESS)) {
		client_fail(c, FAIL_ERRNO, errno);
		return;
	}
	want(c, EV_WRITE);
}
