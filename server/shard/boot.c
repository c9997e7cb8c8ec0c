/* The bootstrap of a client. See boot.h. */
#include "server/shard/boot.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/wire/psn.h"
#include "common/rdma/region.h"
#include "common/tls/tls.h"
#include "server/shard/handover.h"
#include "server/shard/session.h"
#include "server/shard/shard_data.h"

#define PSN_DRAWS_MAX 64
#define HELLOS_MAX 16
#define GRANT_GRACE_NS (500 * NS_PER_MS)	/* for the RDMA request to come, before the session may be taken back */

static void go_on(struct conn *c);

/* True if the caller has to wait for the socket or the connection is over; false to go on. */
static bool wait_or_end(struct conn *c, enum tls_io_status st)
{
	const struct fail *f = &c->io.failure;

	if (st != TLS_IO_FAILED)
		return st == TLS_IO_WAIT;
	if (f->kind != FAIL_CLOSED)
		log_debug("shard %u conn %u: TLS: %s", c->shard->index, c->index, tls_io_failure_text(&c->io));
	if (c->state == CONN_ST_REFUSE && f->kind == FAIL_CLOSED)
		conn_close(c, CLOSE_REFUSED);
	else
		conn_fail(c, f->kind, f->code);
	return true;
}

/* For what was not logged where it failed. */
static void log_failure(struct shard *s, const char *text)
{
	if (log_is_due(&s->failed_log_ns, NS_PER_S))
		log_warn("shard %u: cannot serve a client: %s", s->index, text);
}

void boot_refuse(struct conn *c, enum refuse_code code, const char *text)
{
	if (code < STATS_REFUSE_MAX)
		counter_add(&c->shard->stats.refused[code], 1);
	if (code == REFUSE_INTERNAL)
		log_failure(c->shard, text);
	else
		log_debug("shard %u conn %u: refused: %s (%s)", c->shard->index, c->index, refuse_code_name(code), text);
	tls_io_put(&c->io, frame_encode_refuse(code, text, tls_io_frame(&c->io)));
	c->retry_hello = code == REFUSE_PSN_CONFLICT && c->hellos < HELLOS_MAX;
	conn_set_state(c, CONN_ST_REFUSE);
	go_on(c);
}

/* Credits of a client: what it asks for, at most its equal share of the receive buffers that are left for it and the
 * clients that may still come. */
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
		*why = "the server found no free packet sequence number";
		return ret == -EAGAIN ? REFUSE_BUSY : REFUSE_INTERNAL;
	}
	c->client_psn = client_psn;
	c->has_psns = true;
	hist_record(s->stats.stages[SS_PSN_GENERATE], clock_now_ns() - t0);
	return 0;
}

/* True if some address has more sessions in this shard, granted and not used, than `network` would have with another one:
 * the oldest of them can be taken back, soon. */
static bool has_fewer_grants(const struct shard *s, uint64_t network)
{
	return peers_count(s->peers, PEERS_CLIENTS, network) + 1 < peers_most(s->peers, PEERS_CLIENTS);
}

/* Takes a session back that was granted and not used, the oldest one of the address that has most. False: there is none
 * for `network`, or it may still be used. */
static bool take_grant_back(const struct shard *s, uint64_t network)
{
	struct conn *oldest;

	if (!has_fewer_grants(s, network))
		return false;
	oldest = (struct conn *)((char *)peers_oldest(s->peers, PEERS_CLIENTS) - offsetof(struct conn, grant_hold));
	if (clock_now_ns() < oldest->admitted_ns + GRANT_GRACE_NS)
		return false;
	conn_close(oldest, CLOSE_CROWDED_OUT);
	return true;
}

void boot_on_relieve(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;
	uint64_t network = atomic_exchange(&s->relieve_for, 0);

	(void)loop;
	(void)revents;
	if (network)
		(void)!take_grant_back(s, network);
}

/* The rail's admission is full, and this shard has nothing to take back: others may. True if one was asked. */
static bool ask_other_shards(const struct shard *s, uint64_t network)
{
	uint32_t n = (uint32_t)s->cfg->threads, first = s->index - s->index % n;
	bool asked = false;

	for (uint32_t i = first; i < first + n; i++) {
		struct shard *other = s->server->shards[i];

		if (other == s || counter_get(&other->stats.sessions) < 2)
			continue;
		atomic_store(&other->relieve_for, network);
		ev_async_send(other->loop, &other->relieve);
		asked = true;
	}
	return asked;
}

/* The refusal for want of room: `busy` if there will be room `soon`, as clients are closing in any shard or sessions can be
 * taken back. */
static enum refuse_code no_room(const struct shard *s, bool soon, const char *full, const char **why)
{
	bool leaving = soon || s->counts[CONN_ST_CLOSING] > 0;

	for (uint32_t i = 0; i < s->server->n_shards && !leaving; i++)
		leaving = counter_get(&s->server->shards[i]->stats.closing) > 0;
	*why = leaving ? "clients are still leaving: try again" : full;
	return leaving ? REFUSE_BUSY : REFUSE_FULL;
}

/* Counts the client in the rail's admission. False if that is full. */
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

/* Takes credits, which are receive buffers of this shard. */
static bool take_credits(struct conn *c, uint32_t asked)
{
	struct shard *s = c->shard;

	c->credits = credits_for(s, asked);
	s->credits_granted += c->credits;
	s->credit_holders += c->credits > 0;
	return c->credits > 0;
}

/* Takes a place among the clients, and credits. 0, or the code to refuse with. */
static enum refuse_code take_place(struct conn *c, uint32_t depth, const char **why)
{
	struct shard *s = c->shard;
	uint64_t network = addr_network(&c->peer);

	if (s->server->peers && !peers_take(s->server->peers, PEERS_CLIENTS, network, &c->client_share,
					    server_config_per_address(s->cfg))) {
		*why = "this address has as many clients as --max-per-address allows";
		return REFUSE_FULL;
	}
	if (!admit(c) && (!take_grant_back(s, network) || !admit(c)))
		return no_room(s, has_fewer_grants(s, network) || ask_other_shards(s, network),
			       "the server's --max-clients are connected", why);
	if (!take_credits(c, depth) && (!take_grant_back(s, network) || !take_credits(c, depth)))
		return no_room(s, has_fewer_grants(s, network), "this shard has no receive buffers left", why);
	c->admitted_ns = clock_now_ns();
	return peers_take(s->peers, PEERS_CLIENTS, network, &c->grant_hold, UINT32_MAX) ? 0 : REFUSE_INTERNAL;
}

/* 0, or the code to refuse with. Takes nothing. */
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
	/* Each session that was granted and has not connected yet will take one of the available queue pairs. */
	if (qp_pool_available(s->qps) <= session_count(s->sessions) + s->counts[CONN_ST_GRANT]) {
		*why = "all queue pairs are in use or rest after use: try again in a few seconds";
		return REFUSE_BUSY;
	}
	return 0;
}

/* True if the HELLO has to wait until another thread has registered a region, which takes long; boot_go_on then
 * handles it again. The socket is not watched meanwhile, and the state's deadline runs. */
static bool waits_for_region(struct conn *c, const struct frame_hello *h)
{
	struct shard *s = c->shard;

	if (!(h->features & FRAME_FEATURE_REGION) ||
	    !region_pool_begin(s->regions, s->regions_awaited + !c->awaits_region))
		return false;
	s->regions_awaited += !c->awaits_region;
	c->awaits_region = true;
	tls_io_watch(&c->io, 0);
	return true;
}

/* Takes all that a grant needs but a region. 0, or the code to refuse with. The connection's end releases what was taken.
 * A PSN conflict, after which the client may try again, takes nothing. */
static enum refuse_code take_grant(struct conn *c, const struct frame_hello *h, const char **why)
{
	enum refuse_code code = check_hello(c, h, why);

	/* PSNs first: after a conflict the client may send another HELLO, so nothing else may have been taken. */
	if (!code)
		code = take_psns(c, h->psn, why);
	return code ? code : take_place(c, h->queue_depth, why);
}

/* Takes the region, too, if one is asked for, and says what was taken. 0, or the code to refuse with. */
static enum refuse_code fill_grant(struct conn *c, const struct frame_hello *h, struct frame_grant *g, const char **why)
{
	struct shard *s = c->shard;
	struct region_grant region = { 0 };
	int ret;

	ret = h->features & FRAME_FEATURE_REGION ? region_get(s->regions, &c->region, &region) : 0;
	if (ret) {
		*why = ret == -EAGAIN ? "one-sided regions are being cleared: try again" : "no one-sided region is left";
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
		ret = tls_export_key(c->io.tls, AUTH_LABEL_CLIENT, c->session, sizeof(c->session),
				     c->keys.client, AUTH_KEY_BYTES);
	if (!ret)
		ret = tls_export_key(c->io.tls, AUTH_LABEL_SERVER, c->session, sizeof(c->session),
				     c->keys.server, AUTH_KEY_BYTES);
	return ret;
}

static int make_tags(struct conn *c)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES];
	int ret = tls_export_key(c->io.tls, AUTH_LABEL_MESSAGES, c->session, sizeof(c->session), keys, sizeof(keys));

	return ret ? ret : msg_tags_new(keys, false, &c->tags);
}

static void on_hello(struct conn *c, uint32_t bytes)
{
	struct frame_hello h;
	struct frame_grant g = { 0 };
	const char *why = "";
	enum refuse_code code = 0;

	c->hellos += !c->awaits_region;
	if (frame_decode_hello(c->io.frame, bytes, &h, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	/* A region is pinned memory: it is registered only for a client that gets all the rest. */
	if (!c->awaits_region)
		code = take_grant(c, &h, &why);
	if (!code && waits_for_region(c, &h))
		return;
	if (!code)
		code = fill_grant(c, &h, &g, &why);
	if (!code && (derive_keys(c) || ((h.features & FRAME_FEATURE_TAGS) && make_tags(c)))) {
		why = "the server could not derive keys";
		code = REFUSE_INTERNAL;
	}
	if (code) {
		boot_refuse(c, code, why);
		return;
	}
	c->window = h.window;
	/* If this fails, the client's next handshake is a full one. */
	if ((g.features & FRAME_FEATURE_TICKET) && tls_send_ticket(c->io.tls) == 0)
		counter_add(&c->shard->stats.tickets, 1);
	else
		g.features &= (uint16_t)~FRAME_FEATURE_TICKET;
	memcpy(g.session, c->session, sizeof(g.session));
	tls_io_put(&c->io, frame_encode_grant(&g, tls_io_frame(&c->io)));
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
	enum control_what what;
	const char *why = "";
	int ret;

	if (frame_decode_control(c->io.frame, bytes, &what, &why)) {
		boot_refuse(c, REFUSE_BAD_REQUEST, why);
		return;
	}
	ret = handover_put(&s->server->handovers, &c->io, &c->peer, what, server_config_per_address(s->cfg));
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
		boot_refuse(c, REFUSE_BAD_VERSION, "this server speaks wire version 1");
	else if (!tls_peer_is_allowed(c->io.tls))
		boot_refuse(c, REFUSE_NOT_ALLOWED, "this client's certificate has no name in the server's --allow-names");
	else if (h->type == FRAME_CONTROL)
		on_control(c, h->length);
	else if (h->type == FRAME_HELLO)
		on_hello(c, h->length);
	else
		boot_refuse(c, REFUSE_BAD_REQUEST, "unexpected frame: send HELLO or CONTROL");
}

static void read_frame(struct conn *c)
{
	struct frame_header h;
	enum tls_io_status st = tls_io_read_header(&c->io, FRAME_FROM_CLIENT_MAX, &h);

	if (st == TLS_IO_FAILED && c->io.failure.kind == FAIL_PROTOCOL) {
		boot_refuse(c, REFUSE_BAD_REQUEST, "frame length: must be 8 to 40, reserved 0");
		return;
	}
	if (st == TLS_IO_DONE)
		st = tls_io_read_frame(&c->io, &h);
	if (!wait_or_end(c, st))
		on_frame(c, &h);
}

static void await_peer_close(struct conn *c)
{
	if (!tls_io_is_bye_answered(&c->io))
		return;
	if (c->state == CONN_ST_REFUSE)
		conn_close(c, CLOSE_REFUSED);
	else
		conn_close_tls(c);
}

/* The GRANT is the last frame, so TLS's goodbye goes with it. True when the socket has taken both. */
static bool write_grant(struct conn *c)
{
	if (wait_or_end(c, tls_io_write(&c->io)))
		return false;
	tls_io_say_bye(&c->io);
	return !wait_or_end(c, tls_io_flush(&c->io));
}

static void finish_grant(struct conn *c)
{
	session_put(c->shard->sessions, c->session, c->index);
	counter_add(&c->shard->stats.granted, 1);
	peers_note_progress(c->shard->peers, addr_network(&c->peer), clock_now_ns());
	conn_set_state(c, CONN_ST_GRANTED);
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
	bool resumed = tls_is_resumed(c->io.tls);
	uint64_t now = clock_now_ns();

	hist_record(st->stages[resumed ? SS_TLS_ACCEPT_RESUMED : SS_TLS_ACCEPT], now - c->started_ns);
	counter_add(resumed ? &st->handshakes_resumed : &st->handshakes_full, 1);
	peers_note_progress(c->shard->peers, addr_network(&c->peer), now);
	c->asked_ns = now;
	conn_set_state(c, CONN_ST_HELLO);
	read_frame(c);
}

/* A handshake costs the most of all steps: none is begun for a client that has left, or waited for longer than it may. */
static void shake_hands(struct conn *c)
{
	enum fail_kind why = c->greeted ? FAIL_NONE :
			     tls_io_abandoned(&c->io, c->shard->cfg->handshake_timeout_ns);

	c->greeted = true;
	if (why)
		conn_fail(c, why, 0);
	else if (!wait_or_end(c, tls_io_handshake(&c->io)))
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
		if (c->io.said_bye)
			await_peer_close(c);
		else if (!wait_or_end(c, tls_io_write(&c->io)))
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
