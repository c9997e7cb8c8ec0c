/* The bootstrap of a client. See boot.h. */
#include "server/shard/boot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/wire/psn.h"
#include "common/rdma/region.h"
#include "common/tls/tls.h"
#include "server/shard/control.h"
#include "server/shard/gauges.h"
#include "server/shard/session.h"
#include "server/shard/shard_data.h"

#define PSN_DRAWS_MAX 64
#define HELLOS_MAX 16
/* Control requests served in one turn: a client reads an answer before it asks again. */
#define CONTROL_BURST 16

static void advance(struct conn *c);

static void want(struct conn *c, int events)
{
	if (ev_is_active(&c->tls_io) && c->tls_io.events == events)
		return;
	ev_io_stop(c->shard->loop, &c->tls_io);
	ev_io_set(&c->tls_io, tls_fd(c->tls), events);
	ev_io_start(c->shard->loop, &c->tls_io);
}

/* True if the caller has to wait for the socket or the connection is over; false to go on. */
static bool wait_or_end(struct conn *c, enum tls_status st)
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
		if (c->state == CONN_ST_CONTROL)
			conn_close(c, CLOSE_CONTROL_END);
		else if (c->state == CONN_ST_REFUSE)
			conn_close(c, CLOSE_REFUSED);
		else
			conn_fail(c, FAIL_CLOSED, 0);
		return true;
	case TLS_FAILED:
		break;
	}
	tls_failure(c->tls, &f);
	log_debug("shard %u conn %u: TLS: %s", c->shard->index, c->index, tls_failure_text(c->tls));
	conn_fail(c, f.kind, f.code);
	return true;
}

static void on_tls_io(struct ev_loop *loop, ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	advance(w->data);
}

void boot_start(struct conn *c)
{
	ev_io_init(&c->tls_io, on_tls_io, tls_fd(c->tls), EV_READ);
	c->tls_io.data = c;
	ev_io_start(c->shard->loop, &c->tls_io);
}

static void start_writing(struct conn *c)
{
	c->out_done = 0;
	/* The socket is nearly always writable: try at once. */
	advance(c);
}

void boot_refuse(struct conn *c, enum refuse_code code, const char *text)
{
	if (code < STATS_REFUSE_MAX)
		counter_add(&c->shard->stats.refused[code], 1);
	log_debug("shard %u conn %u: refused: %s (%s)", c->shard->index, c->index,
		  refuse_code_name(code), text);
	c->out_n = (uint32_t)frame_encode_refuse(code, text, c->out);
	c->retry_hello = code == REFUSE_PSN_CONFLICT && c->hellos < HELLOS_MAX;
	conn_set_state(c, CONN_ST_REFUSE);
	start_writing(c);
}

/* How many credits a client gets: what it asks for, but never so many that the shard's receive
 * buffers do not leave one for each client that may still come. */
static uint32_t credits_for(const struct shard *s, uint32_t asked)
{
	uint32_t left = s->cfg->recv_depth - s->credits_granted;
	uint32_t served = s->credit_holders;
	uint32_t to_come = served < s->cfg->shard_clients ? s->cfg->shard_clients - served : 1;
	uint32_t fair = left / to_come;

	if (asked > s->cfg->credits)
		asked = (uint32_t)s->cfg->credits;
	return asked < fair ? asked : fair;
}

static enum refuse_code take_psns(struct conn *c, uint32_t client_psn, const char **why)
{
	struct shard *s = c->shard;
	uint64_t t0 = clock_now_ns();
	int ret;

	if (!psn_reserve(s->server->psns, client_psn)) {
		counter_add(&s->stats.psn_conflicts, 1);
		*why = "this PSN is in use: draw another";
		return REFUSE_PSN_CONFLICT;
	}
	ret = psn_draw(s->server->psns, auth_random, NULL, PSN_DRAWS_MAX, &c->server_psn);
	if (ret) {
		psn_release(s->server->psns, client_psn);
		*why = "no packet sequence number to be had";
		return ret == -EAGAIN ? REFUSE_BUSY : REFUSE_INTERNAL;
	}
	c->client_psn = client_psn;
	c->has_psns = true;
	hist_record(s->stats.stages[SS_PSN_GENERATE], clock_now_ns() - t0);
	return 0;
}

/* What a server with no room says: `busy` while clients are leaving, of this shard or another, for then there
 * will be some soon. */
static enum refuse_code no_room(const struct shard *s, const char *full, const char **why)
{
	bool leaving = s->counts[CONN_ST_CLOSING] > 0;

	for (uint32_t i = 0; i < s->server->n_shards && !leaving; i++)
		leaving = counter_get(&s->server->shards[i]->stats.closing) > 0;
	*why = leaving ? "clients are still leaving: try again" : full;
	return leaving ? REFUSE_BUSY : REFUSE_FULL;
}

static bool admit(struct conn *c)
{
	const struct server_config *cfg = c->shard->cfg;
	_Atomic uint32_t *admitted = c->shard->admitted;

	if (atomic_fetch_add_explicit(admitted, 1, memory_order_relaxed) >= cfg->max_clients) {
		atomic_fetch_sub_explicit(admitted, 1, memory_order_relaxed);
		return false;
	}
	c->admitted = true;
	return true;
}

/* 0, or the code to refuse with before anything is taken. */
static enum refuse_code check_hello(const struct conn *c, const struct frame_hello *h, const char **why)
{
	const struct shard *s = c->shard;

	if (s->drain_deadline_ns) {
		*why = "the server is stopping";
		return REFUSE_DRAINING;
	}
	if (h->message_bytes > s->cfg->message_bytes) {
		*why = "the message size is above this server's --message-size";
		return REFUSE_UNSUPPORTED;
	}
	if ((h->features & FRAME_FEATURE_REGION) && !s->regions) {
		*why = "this server offers no one-sided regions (--region-size 0)";
		return REFUSE_UNSUPPORTED;
	}
	if ((h->features & FRAME_FEATURE_WINDOW) && !s->cfg->windows) {
		*why = "this server does not write to clients' windows (--windows off)";
		return REFUSE_UNSUPPORTED;
	}
	/* A grant is a promise of a queue pair: those in quarantine, and those promised, are not to be had. */
	if (qp_pool_available(s->qps) <= session_count(s->sessions) + s->counts[CONN_ST_GRANT]) {
		*why = "all queue pairs are in use or rest after use: try again in a few seconds";
		return REFUSE_BUSY;
	}
	return 0;
}

/* Registering memory takes long and is done by another thread: the HELLO waits for it, and boot_go_on looks at it again.
 * The client has nothing to say meanwhile; the state's deadline is running. */
static bool waits_for_region(struct conn *c, const struct frame_hello *h)
{
	struct shard *s = c->shard;

	if (!(h->features & FRAME_FEATURE_REGION) ||
	    !region_pool_begin(s->regions, s->regions_awaited + !c->awaits_region))
		return false;
	s->regions_awaited += !c->awaits_region;
	c->awaits_region = true;
	ev_io_stop(s->loop, &c->tls_io);
	return true;
}

/* Takes all that a grant needs. 0, or the code to refuse with. What was taken is given back when the
 * connection closes; a PSN conflict, after which the client may try again, takes nothing. */
static enum refuse_code take_grant(struct conn *c, const struct frame_hello *h,
				   struct frame_grant *g, const char **why)
{
	struct shard *s = c->shard;
	struct region_grant region = { 0 };
	enum refuse_code code;
	int ret;

	/* PSNs first: a conflict is the one refusal the client may answer with another HELLO. */
	code = take_psns(c, h->psn, why);
	if (code)
		return code;
	if (!admit(c))
		return no_room(s, "the server's --max-clients are connected", why);
	c->credits = credits_for(s, h->queue_depth);
	if (c->credits == 0)
		return no_room(s, "this shard has no receive buffers left", why);
	s->credits_granted += c->credits;
	s->credit_holders++;
	ret = h->features & FRAME_FEATURE_REGION ? region_get(s->regions, &c->region, &region) : 0;
	if (ret) {
		*why = ret == -EAGAIN ? "one-sided regions are being cleared: try again" : "no one-sided region to be had";
		return ret == -EAGAIN ? REFUSE_BUSY : REFUSE_NO_RESOURCES;
	}
	*g = (struct frame_grant){
		.psn = c->server_psn,
		.message_bytes = (uint32_t)s->cfg->message_bytes,
		.credits = (uint16_t)c->credits,
		.features = h->features & (uint16_t)(s->cfg->tls_resume ? FRAME_FEATURES_KNOWN :
						     FRAME_FEATURES_KNOWN & ~FRAME_FEATURE_TICKET),
		.rdma = s->rdma_addr,
		.expires_ms = (uint32_t)(s->cfg->session_timeout_ns / NS_PER_MS),
		.region_addr = region.addr,
		.region_bytes = region.bytes,
		.region_rkey = region.rkey,
	};
	return 0;
}

static int derive_keys(struct conn *c)
{
	int ret = auth_random(NULL, c->session, sizeof(c->session));

	if (!ret)
		ret = tls_export_key(c->tls, AUTH_LABEL_CLIENT, c->session, sizeof(c->session),
				     c->keys.client, AUTH_KEY_BYTES);
	if (!ret)
		ret = tls_export_key(c->tls, AUTH_LABEL_SERVER, c->session, sizeof(c->session),
				     c->keys.server, AUTH_KEY_BYTES);
	return ret;
}

static int make_tags(struct conn *c)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES];
	int ret = tls_export_key(c->tls, AUTH_LABEL_MESSAGES, c->session, sizeof(c->session), keys, sizeof(keys));

	return ret ? ret : msg_tags_new(keys, false, &c->tags);
}

static void on_hello(struct conn *c)
{
	struct frame_hello h;
	struct frame_grant g = { 0 };
	const char *why = "";
	enum refuse_code code;

	c->hellos += !c->awaits_region;
	if (frame_decode_hello(c->in, c->in_n, &h, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	code = check_hello(c, &h, &why);
	if (!code && waits_for_region(c, &h))
		return;
	if (!code)
		code = take_grant(c, &h, &g, &why);
	if (!code && (derive_keys(c) || ((h.features & FRAME_FEATURE_TAGS) && make_tags(c)))) {
		why = "the server could not derive keys";
		code = REFUSE_INTERNAL;
	}
	if (code) {
		boot_refuse(c, code, why);
		return;
	}
	c->window = h.window;
	/* Not having one costs the client a full handshake the next time, no more. */
	if ((g.features & FRAME_FEATURE_TICKET) && tls_send_ticket(c->tls) == 0)
		counter_add(&c->shard->stats.tickets, 1);
	else
		g.features &= (uint16_t)~FRAME_FEATURE_TICKET;
	memcpy(g.session, c->session, sizeof(g.session));
	c->out_n = (uint32_t)frame_encode_grant(&g, c->out);
	conn_set_state(c, CONN_ST_GRANT);
	start_writing(c);
}

void boot_go_on(struct conn *c)
{
	on_hello(c);
}

static void on_control(struct conn *c)
{
	bool first = c->state == CONN_ST_HELLO;
	enum control_what what;
	const char *why = "";

	if (frame_decode_control(c->in, c->in_n, &what, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	if (first &&
	    c->shard->counts[CONN_ST_CONTROL] >= SHARD_CONTROLS_MAX) {
		boot_refuse(c, REFUSE_BUSY, "too many control sessions");
		return;
	}
	c->in_n = 0;
	if (first)
		conn_set_state(c, CONN_ST_CONTROL);
	/* The report shows this moment, not the end of the last turn, when this session was a handshake. */
	gauges_publish(c->shard);
	if (control_answer(c, what))
		boot_refuse(c, REFUSE_INTERNAL, "out of memory");
	else if (first)
		start_writing(c);
	else
		conn_restart_deadline(c);
}

static void on_frame(struct conn *c, const struct frame_header *h)
{
	if (h->version != FRAME_VERSION)
		boot_refuse(c, REFUSE_BAD_VERSION, "this server speaks wire version 1");
	else if (h->type == FRAME_CONTROL)
		on_control(c);
	else if (h->type == FRAME_HELLO && c->state == CONN_ST_HELLO)
		on_hello(c);
	else
		boot_refuse(c, REFUSE_BAD_REQUEST, "unexpected frame: send HELLO or CONTROL");
}

/* Reads up to `upto` bytes of the frame. True when they are all there. */
static bool read_upto(struct conn *c, uint32_t upto)
{
	while (c->in_n < upto) {
		size_t got;

		if (wait_or_end(c, tls_read(c->tls, c->in + c->in_n, upto - c->in_n, &got)))
			return false;
		counter_add(&c->shard->stats.tls_bytes_in, got);
		c->in_n += (uint32_t)got;
	}
	return true;
}

static void read_frame(struct conn *c)
{
	struct frame_header h;

	if (!read_upto(c, FRAME_HEADER_BYTES))
		return;
	if (frame_decode_header(c->in, FRAME_FROM_CLIENT_MAX, &h)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, "frame length: must be 8 to 40, reserved 0");
		return;
	}
	if (read_upto(c, h.length))
		on_frame(c, &h);
}

/* Writes what is left of the answer. True when all is out. */
static bool write_out(struct conn *c)
{
	const uint8_t *out = c->report ? c->report : c->out;

	while (c->out_done < c->out_n) {
		size_t put;

		if (wait_or_end(c, tls_write(c->tls, out + c->out_done, c->out_n - c->out_done, &put)))
			return false;
		counter_add(&c->shard->stats.tls_bytes_out, put);
		c->out_done += (uint32_t)put;
	}
	free(c->report);
	c->report = NULL;
	c->out_n = c->out_done = 0;
	return true;
}

static void say_bye(struct conn *c)
{
	if (!c->tls_said_bye)
		tls_close_notify(c->tls);
	c->tls_said_bye = true;
}

/* Says goodbye and waits for the peer's: closing first would leave the port in TIME_WAIT here. */
static void await_peer_close(struct conn *c)
{
	enum tls_status st;
	uint8_t byte;
	size_t got;

	say_bye(c);
	/* A read may find something that has come already, and not get as far as the socket. */
	st = tls_flush(c->tls);
	if (st == TLS_DONE)
		st = tls_read(c->tls, &byte, 1, &got);
	switch (st) {
	case TLS_WANT_READ:
		want(c, EV_READ);
		return;
	case TLS_WANT_WRITE:
		want(c, EV_WRITE);
		return;
	case TLS_DONE:	/* nothing more is to be said: whoever does is not heard */
	case TLS_EOF:
	case TLS_FAILED:
		break;
	}
	if (c->state == CONN_ST_REFUSE)
		conn_close(c, CLOSE_REFUSED);
	else
		conn_close_tls(c);
}

/* A GRANT is the last that is said, so the goodbye goes along. True when the socket has taken them. */
static bool write_grant(struct conn *c)
{
	if (!write_out(c))
		return false;
	say_bye(c);
	return !wait_or_end(c, tls_flush(c->tls));
}

static void finish_grant(struct conn *c)
{
	session_put(c->shard->sessions, c->session, c->index);
	counter_add(&c->shard->stats.granted, 1);
	conn_set_state(c, CONN_ST_GRANTED);
	await_peer_close(c);
}

static void finish_refuse(struct conn *c)
{
	if (c->retry_hello) {
		c->retry_hello = false;
		c->in_n = 0;
		conn_set_state(c, CONN_ST_HELLO);
		advance(c);
		return;
	}
	await_peer_close(c);
}

static void on_handshake_done(struct conn *c)
{
	struct stats *st = &c->shard->stats;
	bool resumed = tls_is_resumed(c->tls);

	hist_record(st->stages[resumed ? SS_TLS_ACCEPT_RESUMED : SS_TLS_ACCEPT], clock_now_ns() - c->started_ns);
	counter_add(resumed ? &st->handshakes_resumed : &st->handshakes_full, 1);
	conn_set_state(c, CONN_ST_HELLO);
	read_frame(c);
}

/* Writes the pending answer and reads the next request, until the socket has no more. */
static void serve_control(struct conn *c)
{
	for (int i = 0; i < CONTROL_BURST; i++) {
		if (!write_out(c))
			return;
		read_frame(c);
		if (c->state != CONN_ST_CONTROL || !c->report)
			return;
	}
	conn_fail(c, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
}

static void advance(struct conn *c)
{
	switch (c->state) {
	case CONN_ST_TLS_ACCEPT:
		if (!wait_or_end(c, tls_handshake(c->tls)))
			on_handshake_done(c);
		break;
	case CONN_ST_HELLO:
		read_frame(c);
		break;
	case CONN_ST_CONTROL:
		serve_control(c);
		break;
	case CONN_ST_GRANT:
		if (write_grant(c))
			finish_grant(c);
		break;
	case CONN_ST_REFUSE:
		if (c->tls_said_bye)
			await_peer_close(c);
		else if (write_out(c))
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
