/* SPDX-License-Identifier: BSD-2-Clause */
/* The bootstrap of a client. See boot.h. */
#include "server/shard/boot.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/tls/tls.h"
#include "server/shard/grant.h"
#include "server/shard/oob.h"
#include "server/tables/handover.h"
#include "server/shard/socket.h"
#include "server/tables/session.h"
#include "server/shard/shard_data.h"

#define HELLOS_MAX 16
static_assert(FRAME_QPS_MAX == 8, "on_hello names the number in words");

static void go_on(struct conn *c);

/* True if the caller has to wait for the socket or the connection is over; false to go on. */
static bool wait_or_end(struct conn *c, enum tls_io_status st)
{
	const struct fail *f = &c->io->failure;

	if (st != TLS_IO_FAILED)
		return st == TLS_IO_WAIT;
	if (f->kind != FAIL_CLOSED)
		log_event(LOG_LVL_DEBUG, &(struct log_fields){ .shard = &c->shard->index, .connection = &c->index,
							       .reason = tls_io_failure_text(c->io) },
			  "shard %u conn %u: TLS: %s", c->shard->index, c->index, tls_io_failure_text(c->io));
	if (c->state == CONN_ST_REFUSE && f->kind == FAIL_CLOSED)
		conn_close(c, CLOSE_REFUSED);
	else if (c->earlier && c->state == CONN_ST_HELLO && f->kind == FAIL_CLOSED)
		conn_close(c, CLOSE_PEER_LEFT);
	else
		conn_fail(c, f->kind, f->code);
	return true;
}

/* Logs a failure that was not logged where it happened. */
static void log_failure(struct shard *s, const char *text)
{
	if (log_is_due(&s->failed_log_ns, NS_PER_S))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .shard = &s->index, .reason = text },
			  "shard %u: cannot serve a client: %s", s->index, text);
}

/* Sends the REFUSE frame of `bytes` bytes that the caller has encoded in tls_io_frame. */
static void send_refusal(struct conn *c, enum refuse_code code, size_t bytes)
{
	tls_io_put(c->io, bytes);
	c->retry_hello = code == REFUSE_PSN_CONFLICT && c->hellos < HELLOS_MAX;
	conn_set_state(c, CONN_ST_REFUSE);
	go_on(c);
}

static void note_refusal(struct conn *c, enum refuse_code code, const char *text)
{
	char peer[ADDR_TEXT_MAX];

	if (code < STATS_REFUSE_MAX)
		counter_add(&c->shard->stats.refused[code], 1);
	if (code == REFUSE_INTERNAL)
		log_failure(c->shard, text);
	else
		log_event(LOG_LVL_DEBUG, &(struct log_fields){
				  .shard = &c->shard->index, .connection = &c->index,
				  .peer = addr_text(&c->peer, peer), .reason = refuse_code_name(code) },
			  "shard %u conn %u: refused: %s (%s)", c->shard->index, c->index, refuse_code_name(code),
			  text);
}

void boot_refuse(struct conn *c, enum refuse_code code, const char *text)
{
	note_refusal(c, code, text);
	send_refusal(c, code, frame_encode_refuse(code, text, tls_io_frame(c->io)));
}

static void refuse_version(struct conn *c, uint8_t theirs)
{
	note_refusal(c, REFUSE_BAD_VERSION, "another wire version");
	send_refusal(c, REFUSE_BAD_VERSION, frame_encode_bad_version(theirs, tls_io_frame(c->io)));
}

static int derive_keys(struct conn *c)
{
	int ret = auth_random(NULL, c->session, sizeof(c->session));

	if (!ret)
		ret = tls_export_key(c->io->tls, AUTH_LABEL_CLIENT, c->session, sizeof(c->session),
				     c->keys.client, AUTH_KEY_BYTES);
	if (!ret)
		ret = tls_export_key(c->io->tls, AUTH_LABEL_SERVER, c->session, sizeof(c->session),
				     c->keys.server, AUTH_KEY_BYTES);
	return ret;
}

static int make_tags(struct conn *c)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES];
	int ret = tls_export_key(c->io->tls, AUTH_LABEL_MESSAGES, c->session, sizeof(c->session), keys, sizeof(keys));

	return ret ? ret : msg_tags_new(keys, false, &c->tags);
}

static void on_hello(struct conn *c, uint32_t bytes)
{
	struct frame_hello h;
	struct frame_grant g = { 0 };
	const char *why = "";
	enum refuse_code code = 0;

	c->hellos += !c->awaits_region;
	if (frame_decode_hello(c->io->frame, bytes, &h, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	c->more = h.features & FRAME_FEATURE_MORE;
	if (c->more && c->earlier + 1 >= FRAME_QPS_MAX) {
		boot_refuse(c, REFUSE_BAD_REQUEST, "HELLO features: bit 9 is allowed in 7 HELLOs of a TLS connection");
		return;
	}
	/* A region is pinned memory: register one only for a client that gets everything else. */
	if (!c->awaits_region) {
		c->window = h.window;
		code = grant_take(c, &h, &why);
		if (!code && (h.features & FRAME_FEATURE_OOB))
			code = oob_take_qp(c, &h, &why);
	}
	if (!code && grant_waits_for_region(c, &h))
		return;
	if (!code)
		code = grant_fill(c, &h, &g, &why);
	if (!code && (derive_keys(c) || ((h.features & FRAME_FEATURE_TAGS) && make_tags(c)))) {
		why = "the server could not derive keys";
		code = REFUSE_INTERNAL;
	}
	if (code) {
		boot_refuse(c, code, why);
		return;
	}
	c->link.transport = frame_transport(h.features);
	if (!link_is_rdma(&c->link))
		c->link.ep = c->shard->sock_ep;
	c->write_imm = h.features & FRAME_FEATURE_WRITE_IMM;
	/* If no ticket can be sent, the client's next handshake is a full one. */
	if ((g.features & FRAME_FEATURE_TICKET) && tls_send_ticket(c->io->tls) == 0)
		counter_add(&c->shard->stats.tickets, 1);
	else
		g.features &= (uint16_t)~FRAME_FEATURE_TICKET;
	memcpy(g.session, c->session, sizeof(g.session));
	tls_io_put(c->io, frame_encode_grant(&g, tls_io_frame(c->io)));
	conn_set_state(c, CONN_ST_GRANT);
	go_on(c);
}

void boot_go_on(struct conn *c)
{
	on_hello(c, FRAME_HELLO_BYTES);
}

/* Hands the control session over to the main thread. */
static void on_control(struct conn *c, uint32_t bytes)
{
	struct shard *s = c->shard;
	struct frame_control request;
	const char *why = "";
	int ret;

	if (frame_decode_control(c->io->frame, bytes, &request, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	ret = handover_put(&s->server->handovers, c->io, &c->peer, &request, server_config_per_address(s->cfg));
	if (ret == -EBUSY) {
		boot_refuse(c, REFUSE_BUSY, "too many control sessions");
	} else if (ret) {
		log_failure(s, "this machine is out of memory");
		boot_refuse(c, REFUSE_NO_RESOURCES, "out of memory");
	} else {
		conn_uncount_tls(c);
		conn_close(c, CLOSE_HANDED_OVER);
		s->server->wake_main(s->server->arg);
	}
}

static void on_frame(struct conn *c, const struct frame_header *h)
{
	if (h->version != FRAME_VERSION)
		refuse_version(c, h->version);
	else if (!tls_peer_is_allowed(c->io->tls))
		boot_refuse(c, REFUSE_NOT_ALLOWED,
			    "this client's certificate has no name in the server's --allow-names");
	else if (h->type == FRAME_CONTROL && !c->earlier)
		on_control(c, h->length);
	else if (h->type == FRAME_HELLO)
		on_hello(c, h->length);
	else
		boot_refuse(c, REFUSE_BAD_REQUEST, c->earlier ? "unexpected frame: another HELLO was announced" :
			    "unexpected frame: send HELLO or CONTROL");
}

static void read_frame(struct conn *c)
{
	struct frame_header h;
	enum tls_io_status st = tls_io_read_header(c->io, FRAME_FROM_CLIENT_MAX, &h);

	if (st == TLS_IO_FAILED && c->io->failure.kind == FAIL_PROTOCOL) {
		boot_refuse(c, REFUSE_BAD_REQUEST, "frame length: must be 8 to 64, reserved 0");
		return;
	}
	if (st == TLS_IO_DONE)
		st = tls_io_read_frame(c->io, &h);
	if (!wait_or_end(c, st))
		on_frame(c, &h);
}

static void await_peer_close(struct conn *c)
{
	if (!tls_io_is_bye_answered(c->io))
		return;
	if (c->state == CONN_ST_REFUSE)
		conn_close(c, CLOSE_REFUSED);
	else
		conn_close_tls(c);
}

/* Sends the GRANT and, unless messages or another HELLO follow over TLS, close_notify. True when the socket has taken
 * everything. */
static bool write_grant(struct conn *c)
{
	enum tls_io_status st;

	if (wait_or_end(c, tls_io_write(c->io)))
		return false;
	if (c->link.transport != TRANSPORT_TLS && !c->more)
		tls_io_say_bye(c->io);
	st = tls_io_flush(c->io);
	c->grant_sent |= st != TLS_IO_FAILED;
	return !wait_or_end(c, st);
}

/* Reads the client's next HELLO for another connection. If there is no room for one, TLS is closed, and the client
 * bootstraps its next connection as it did the first. */
static void follow(struct conn *c)
{
	struct conn *next;

	if (conn_follow(c, boot_on_ready, &next) == 0)
		conn_queue(next);
}

static void finish_grant(struct conn *c)
{
	grant_finish(c);
	if (c->link.transport == TRANSPORT_TLS) {
		socket_go_over_tls(c);
		return;
	}
	session_put(c->shard->sessions, c->session, c->index, link_is_rdma(&c->link) && !c->oob);
	if (c->more)
		follow(c);
	else
		await_peer_close(c);
}

static void finish_refuse(struct conn *c)
{
	if (!c->retry_hello) {
		await_peer_close(c);
		return;
	}
	c->retry_hello = false;
	conn_set_state(c, CONN_ST_HELLO);
	read_frame(c);
}

static void on_handshake_done(struct conn *c)
{
	struct stats *st = &c->shard->stats;
	bool resumed = tls_is_resumed(c->io->tls);
	uint64_t now = clock_now_ns();

	hist_record(st->stages[resumed ? SS_TLS_ACCEPT_RESUMED : SS_TLS_ACCEPT], now - c->started_ns);
	counter_add(resumed ? &st->handshakes_resumed : &st->handshakes_full, 1);
	peers_note_progress(c->shard->peers, addr_network(&c->peer), now);
	c->asked_ns = now;
	conn_set_state(c, CONN_ST_HELLO);
	read_frame(c);
}

/* A handshake is the most expensive step: do not begin one for a client that has left or has waited too long. */
static void shake_hands(struct conn *c)
{
	enum fail_kind why = c->greeted ? FAIL_NONE :
			     tls_io_abandoned(c->io, c->shard->cfg->handshake_timeout_ns);

	c->greeted = true;
	if (why)
		conn_fail(c, why, 0);
	else if (!wait_or_end(c, tls_io_handshake(c->io)))
		on_handshake_done(c);
}

static void go_on(struct conn *c)
{
	switch (c->state) {
	case CONN_ST_TLS_ACCEPT:
		shake_hands(c);
		break;
	case CONN_ST_HELLO:
		read_frame(c);
		break;
	case CONN_ST_GRANT:
		if (write_grant(c))
			finish_grant(c);
		break;
	case CONN_ST_REFUSE:
		if (c->io->said_bye)
			await_peer_close(c);
		else if (!wait_or_end(c, tls_io_write(c->io)))
			finish_refuse(c);
		break;
	case CONN_ST_GRANTED:
	case CONN_ST_ACCEPTING:
	case CONN_ST_LIVE:
		await_peer_close(c);
		break;
	case CONN_ST_FREE:
	case CONN_ST_CLOSING:
	case CONN_ST_DEAD:
	case CONN_ST_N:
		break;
	}
}

void boot_on_ready(void *conn)
{
	conn_queue(conn);
}

bool boot_serve_next(void *shard)
{
	struct shard *s = shard;
	struct conn *c = TAILQ_FIRST(&s->ready[s->crowd_is_next]);

	if (!c)
		c = TAILQ_FIRST(&s->ready[!s->crowd_is_next]);
	if (!c)
		return false;
	s->crowd_is_next = !c->crowd;
	TAILQ_REMOVE(&s->ready[c->crowd], c, ready);
	c->queued = false;
	if (c->overdue)
		conn_end_overdue(c);
	else
		go_on(c);
	return !TAILQ_EMPTY(&s->ready[0]) || !TAILQ_EMPTY(&s->ready[1]);
}
