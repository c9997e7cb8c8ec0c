/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources that a grant takes. See grant.h. */
#include "server/shard/grant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/rdma/qp_pool.h"
#include "common/rdma/region.h"
#include "common/wire/auth.h"
#include "common/wire/psn.h"
#include "server/shard/shard_data.h"
#include "server/tables/peers.h"
#include "server/tables/session.h"

#define PSN_DRAWS_MAX 64
#define GRANT_GRACE_NS (500 * NS_PER_MS)	/* time for the RDMA request before the session may be taken back */

/* Formats the text of a refusal that names numbers. The shard keeps it until the REFUSE frame is encoded. */
static const char *words(struct shard *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *words(struct shard *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->refusal, sizeof(s->refusal), fmt, ap);
	va_end(ap);
	return s->refusal;
}

/* Credits of a client: what it asks for, up to its equal share of the receive buffers left for this client and those
 * still to come. A client that needs all it asks for may exceed that share if half of an equal share of all buffers
 * remains for each client still to come; otherwise it gets none. */
static uint32_t credits_for(const struct shard *s, const struct frame_hello *h)
{
	uint32_t left = s->cfg->recv_depth - s->credits_granted;
	uint32_t served = s->credit_holders;
	uint32_t to_come = served < s->cfg->shard_clients ? s->cfg->shard_clients - served : 1;
	uint32_t asked = (uint32_t)MIN(h->queue_depth, s->cfg->credits);
	uint64_t keep = (uint64_t)(to_come - 1) * MAX(s->cfg->recv_depth / s->cfg->shard_clients / 2, 1);

	if (!(h->features & FRAME_FEATURE_ALL_CREDITS))
		return MIN(asked, left / to_come);
	return asked <= left / to_come || keep + asked <= left ? asked : 0;
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
	if (ret < 0) {
		psn_release(s->server->psns, client_psn);
		*why = "the server found no free packet sequence number";
		return ret == -EAGAIN ? REFUSE_BUSY : REFUSE_INTERNAL;
	}
	counter_add(&s->stats.psn_redraws, (uint64_t)ret);
	c->client_psn = client_psn;
	c->has_psns = true;
	hist_record(s->stats.stages[SS_PSN_GENERATE], clock_now_ns() - t0);
	return 0;
}

/* True if some address has more granted but unused sessions in this shard than `network` would have with one more. The
 * oldest of those sessions can then be taken back, now or soon. */
static bool has_fewer_grants(const struct shard *s, uint64_t network)
{
	return peers_count(s->peers, PEERS_CLIENTS, network) + 1 < peers_most(s->peers, PEERS_CLIENTS);
}

/* Takes back the oldest granted but unused session of the address that has the most. False: no address has at least
 * two more than `network`, or the client of that session still has time to use it. */
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

void grant_on_relieve(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;
	uint64_t network = atomic_exchange(&s->relieve_for, 0);

	(void)loop;
	(void)revents;
	if (network)
		(void)!take_grant_back(s, network);
}

/* Asks the rail's other shards to take a session back, because this shard has none. True if a shard was asked. */
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

/* Returns the code to refuse a client with when there is no room: REFUSE_BUSY if room is expected, because sessions can
 * be taken back (`soon`) or clients of any shard are closing; otherwise `code`, with the text `full`. */
static enum refuse_code no_room(const struct shard *s, bool soon, enum refuse_code code, const char *full,
				const char **why)
{
	bool leaving = soon || s->counts[CONN_ST_CLOSING] > 0;

	for (uint32_t i = 0; i < s->server->n_shards && !leaving; i++)
		leaving = counter_get(&s->server->shards[i]->stats.closing) > 0;
	*why = leaving ? "clients are still leaving: try again" : full;
	return leaving ? REFUSE_BUSY : code;
}

/* Counts the client in the rail's admission. False if the rail is full. */
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
static bool take_credits(struct conn *c, const struct frame_hello *h)
{
	struct shard *s = c->shard;

	c->credits = credits_for(s, h);
	s->credits_granted += c->credits;
	s->credit_holders += c->credits > 0;
	return c->credits > 0;
}

static enum refuse_code no_credits(struct shard *s, const struct frame_hello *h, bool soon, const char **why)
{
	if (!(h->features & FRAME_FEATURE_ALL_CREDITS))
		return no_room(s, soon, REFUSE_FULL, "this shard has no receive buffers left", why);
	return no_room(s, soon, REFUSE_NO_RESOURCES,
		       words(s, "%u receive buffers (--srq-depth, --cq-depth, --threads) for up to %u clients: this "
			     "client needs %u, which leaves too few for the others", s->cfg->recv_depth,
			     s->cfg->shard_clients, h->queue_depth), why);
}

/* Takes a place among the clients, and credits. Returns 0, or the code to refuse with. */
static enum refuse_code take_place(struct conn *c, const struct frame_hello *h, const char **why)
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
			       REFUSE_FULL, "as many clients as --max-clients allows are connected", why);
	if (!take_credits(c, h) && (!take_grant_back(s, network) || !take_credits(c, h)))
		return no_credits(s, h, has_fewer_grants(s, network), why);
	c->admitted_ns = clock_now_ns();
	return peers_take(s->peers, PEERS_CLIENTS, network, &c->grant_hold, UINT32_MAX) ? 0 : REFUSE_INTERNAL;
}

/* NULL if the server's options allow what the client needs; otherwise the option that does not, and what is needed. */
static const char *missing_option(struct shard *s, const struct frame_hello *h)
{
	const struct server_config *cfg = s->cfg;

	if (h->message_bytes > cfg->message_bytes)
		return words(s, "--message-size %" PRIu64 ": the client needs %u", cfg->message_bytes,
			     h->message_bytes);
	if ((h->features & FRAME_FEATURE_ALL_CREDITS) && h->queue_depth > cfg->credits)
		return words(s, "--credits %" PRIu64 ": the client needs %u", cfg->credits, h->queue_depth);
	if ((h->features & FRAME_FEATURE_REGION) && !s->regions)
		return words(s, "--region-size 0: the client needs a region of %u bytes", MAX(h->region_bytes, 1));
	if (h->region_bytes > cfg->region_bytes)
		return words(s, "--region-size %" PRIu64 ": the client needs %u", cfg->region_bytes, h->region_bytes);
	if ((h->features & FRAME_FEATURE_WINDOW) && !cfg->windows)
		return "--windows off: the client needs the server to write to its memory";
	return NULL;
}

/* Each client with rdmacm that was granted and has not connected yet will take one of the available queue pairs. */
static bool has_qp(const struct shard *s)
{
	return qp_pool_available(s->qps) > session_qps(s->sessions) + s->counts[CONN_ST_GRANT];
}

/* Returns 0, or the code to refuse with. Takes nothing for the client, but may take back another address's session. */
static enum refuse_code check_hello(const struct conn *c, const struct frame_hello *h, const char **why)
{
	struct shard *s = c->shard;
	enum transport transport = frame_transport(h->features);
	const char *option;

	if (s->drain_deadline_ns) {
		*why = "the server is stopping";
		return REFUSE_DRAINING;
	}
	if (!server_config_serves(s->cfg, transport)) {
		*why = words(s, "--transports of the server leaves %s out", transport_names[transport]);
		return REFUSE_UNSUPPORTED;
	}
	if (transport == TRANSPORT_RDMA &&
	    !server_config_connects(s->cfg, h->features & FRAME_FEATURE_OOB ? CONNECT_OOB : CONNECT_CM)) {
		*why = h->features & FRAME_FEATURE_OOB ? "--connect of the server leaves oob out" :
		       "--connect of the server leaves cm out";
		return REFUSE_UNSUPPORTED;
	}
	option = missing_option(s, h);
	if (option) {
		*why = option;
		return REFUSE_UNSUPPORTED;
	}
	if (transport == TRANSPORT_RDMA && !has_qp(s) &&
	    (!take_grant_back(s, addr_network(&c->peer)) || !has_qp(s))) {
		*why = "all queue pairs are in use or in quarantine: try again in a few seconds";
		return REFUSE_BUSY;
	}
	return 0;
}

bool grant_waits_for_region(struct conn *c, const struct frame_hello *h)
{
	struct shard *s = c->shard;

	if (!(h->features & FRAME_FEATURE_REGION) ||
	    !region_pool_begin(s->regions, s->regions_awaited + !c->awaits_region))
		return false;
	s->regions_awaited += !c->awaits_region;
	c->awaits_region = true;
	tls_io_watch(c->io, 0);
	return true;
}

enum refuse_code grant_take(struct conn *c, const struct frame_hello *h, const char **why)
{
	enum refuse_code code = check_hello(c, h, why);

	/* Take PSNs first: after a conflict the client may send another HELLO, so it must not hold anything else. */
	if (!code && frame_transport(h->features) == TRANSPORT_RDMA)
		code = take_psns(c, h->psn, why);
	return code ? code : take_place(c, h, why);
}

/* The address that the client shall connect to or, over TLS and out of band, has connected to. */
static struct addr address_for(const struct conn *c, enum transport t)
{
	const struct shard *s = c->shard;
	struct addr a;

	if (t == TRANSPORT_RDMA && !c->oob)
		return s->rdma_addr;
	/* Without RDMA the server may listen on all addresses of its machine: name the one the client reached. */
	if (addr_of_socket(tls_fd(c->io->tls), &a))
		a = s->rail->addr;
	addr_set_port(&a, t == TRANSPORT_TCP ? s->tcp_port : s->server->tls_port);
	return a;
}

enum refuse_code grant_fill(struct conn *c, const struct frame_hello *h, struct frame_grant *g, const char **why)
{
	struct shard *s = c->shard;
	struct region_grant region = { 0 };
	int ret;

	ret = h->features & FRAME_FEATURE_REGION ? region_get(s->regions, &c->region, &region) : 0;
	if (ret) {
		*why = ret == -EAGAIN ? "one-sided regions are being cleared: try again" :
			"no one-sided region is left";
		return ret == -EAGAIN ? REFUSE_BUSY : REFUSE_NO_RESOURCES;
	}
	*g = (struct frame_grant){
		.psn = c->has_psns ? c->server_psn : 0,
		.message_bytes = (uint32_t)s->cfg->message_bytes,
		.credits = (uint16_t)c->credits,
		.features = h->features & (uint16_t)(s->cfg->tls_resume ? FRAME_FEATURES_KNOWN :
						     FRAME_FEATURES_KNOWN & ~FRAME_FEATURE_TICKET),
		.rdma = address_for(c, frame_transport(h->features)),
		.expires_ms = (uint32_t)(s->cfg->session_timeout_ns / NS_PER_MS),
		.region_addr = region.addr,
		.region_bytes = region.bytes,
		.region_rkey = region.rkey,
		.qp = c->oob ? c->server_qp : (struct frame_qp){ .qpn = 0 },
	};
	return 0;
}

void grant_finish(struct conn *c)
{
	counter_add(&c->shard->stats.granted, 1);
	peers_note_progress(c->shard->peers, addr_network(&c->peer), clock_now_ns());
	conn_set_state(c, CONN_ST_GRANTED);
}
