/* SPDX-License-Identifier: BSD-2-Clause */
/* One host that takes all of something until it is killed: connections that send nothing, too little, or the same
 * request again and again, and sessions that it does not use. It reopens whatever the server closes. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "tests/adversary/wire.h"

#define GRANTS_NS (20 * NS_PER_S)	/* after this time all sessions count as taken */
#define TICK_NS (100 * NS_PER_MS)
#define REOPENED_A_TICK 64
#define CONFLICTS_MAX 15	/* conflicts of one connection; the server closes it at the next one */

enum crowd_how {
	CROWD_SILENT,	/* sends nothing */
	CROWD_HALF,	/* sends half a ClientHello */
	CROWD_DRIP,	/* sends a ClientHello, a byte each tick */
	CROWD_UNPROVEN,	/* sends nothing to the address that a GRANT names for clients over TCP */
};

struct crowd {
	struct rogue *r;
	enum crowd_how how;
	struct pollfd *fds;
	size_t *sent;		/* bytes of the hello that each has sent */
	int n, open;
	uint8_t hello[2048];
	size_t hello_bytes;
};

static void send_upto(struct crowd *c, int i, size_t upto)
{
	if (upto > c->sent[i] && send(c->fds[i].fd, c->hello + c->sent[i], upto - c->sent[i], MSG_NOSIGNAL) > 0)
		c->sent[i] = upto;
}

static void open_one(struct crowd *c, int i)
{
	c->fds[i] = (struct pollfd){ .fd = wire_tcp(c->r, NULL), .events = POLLIN };
	c->sent[i] = 0;
	if (c->fds[i].fd < 0)
		return;
	c->open++;
	if (c->how == CROWD_HALF)
		send_upto(c, i, c->hello_bytes / 2);
}

/* True if the server has closed the connection. */
static bool is_over(struct pollfd *p)
{
	uint8_t buf[256];

	return p->revents && recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT) <= 0;
}

static void tick(struct crowd *c)
{
	int reopened = 0;

	poll(c->fds, (nfds_t)c->n, 0);
	for (int i = 0; i < c->n; i++) {
		if (c->fds[i].fd >= 0 && is_over(&c->fds[i])) {
			close(c->fds[i].fd);
			c->fds[i].fd = -1;
			c->open--;
		}
		if (c->fds[i].fd < 0 && reopened++ < REOPENED_A_TICK)
			open_one(c, i);
		if (c->fds[i].fd >= 0 && c->how == CROWD_DRIP && c->sent[i] + 1 < c->hello_bytes)
			send_upto(c, i, c->sent[i] + 1);
	}
}

static void sleep_until(uint64_t at_ns)
{
	uint64_t now = clock_now_ns();

	if (at_ns > now)
		poll(NULL, 0, (int)((at_ns - now) / NS_PER_MS));
}

/* Gets the address from a GRANT; the session is not used. */
static bool ask_where(struct rogue *r, struct addr *out)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;

	wire_ask(r, &h, &reply);
	*out = reply.grant.rdma;
	return reply.kind == REPLY_GRANT;
}

/* Keeps ARG connections open. */
static int crowd(struct rogue *r, const struct mode *m)
{
	struct crowd c = { .r = r, .how = (enum crowd_how)m->variant, .n = r->arg ? atoi(r->arg) : 64 };
	bool says_hello = c.how == CROWD_HALF || c.how == CROWD_DRIP;
	ssize_t bytes = says_hello ? wire_client_hello(r, c.hello, sizeof(c.hello)) : 0;
	struct rogue granted = *r;

	if (c.how == CROWD_UNPROVEN) {
		if (!ask_where(r, &granted.server))
			return no_answer("no GRANT");
		c.r = &granted;
	}
	c.fds = calloc((size_t)(c.n > 0 ? c.n : 1), sizeof(*c.fds));
	c.sent = calloc((size_t)(c.n > 0 ? c.n : 1), sizeof(*c.sent));
	if (bytes < 0 || !c.fds || !c.sent)
		return no_answer("no ClientHello, or no memory");
	c.hello_bytes = (size_t)bytes;
	for (int i = 0; i < c.n; i++)
		open_one(&c, i);
	answer("%d of %d connections", c.open, c.n);
	for (uint64_t at = clock_now_ns();; at += TICK_NS) {
		tick(&c);
		sleep_until(at + TICK_NS);
	}
	return ROGUE_ANSWERED;
}

/* Asks for `n` sessions over one TLS connection, until it does not get one. Returns how many it got. */
static int ask(struct rogue *r, int n)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;
	struct wire w;
	int granted = 0;

	if (r->oob) {
		h.features |= FRAME_FEATURE_OOB;
		h.qp = (struct frame_qp){ .qpn = 0x1234, .mtu = IBV_MTU_1024 };
		addr_to_bytes(r->source.len ? &r->source : &r->dev.addr, h.qp.gid);
	}
	h.features |= n > 1 ? FRAME_FEATURE_MORE : 0;
	wire_open_hello(r, &h, &w, &reply);
	while (reply.kind == REPLY_GRANT && ++granted < n) {
		h.psn = wire_good_hello().psn;
		if (granted == n - 1)
			h.features &= (uint16_t)~FRAME_FEATURE_MORE;
		wire_hello(&w, &h, &reply);
	}
	wire_close(&w);
	return granted;
}

/* Takes as many sessions as it can get, uses none, and keeps asking for more. Out of band each holds a queue pair.
 * variant: sessions for each TLS connection. */
static int crowd_grants(struct rogue *r, const struct mode *m)
{
	uint64_t begun = clock_now_ns();
	int granted = 0, got;

	/* On a slow machine sessions may expire as fast as they are granted, so stop after GRANTS_NS. */
	do {
		got = ask(r, m->variant);
		granted += got;
	} while (got == m->variant && clock_now_ns() - begun < GRANTS_NS);
	answer("%d granted", granted);
	for (uint64_t at = clock_now_ns();; at += TICK_NS) {
		ask(r, m->variant);
		sleep_until(at + TICK_NS);
	}
	return ROGUE_ANSWERED;
}

/* Connections that all ask for the same PSN. */
struct busy {
	struct rogue *r;
	struct frame_hello hello;
	_Atomic int conflicts;
};

static void *keep_busy(void *arg)
{
	struct busy *b = arg;
	struct reply reply;
	struct wire w;

	for (;;) {
		wire_open_hello(b->r, &b->hello, &w, &reply);
		for (int i = 0; i < CONFLICTS_MAX && reply.kind == REPLY_REFUSE; i++) {
			atomic_fetch_add(&b->conflicts, 1);
			poll(NULL, 0, 2 * TICK_NS / NS_PER_MS);
			wire_hello(&w, &b->hello, &reply);
		}
		wire_close(&w);
		poll(NULL, 0, TICK_NS / NS_PER_MS);
	}
	return NULL;
}

/* Keeps as many of ARG connections open as the server admits; each asks for a PSN that is in use. */
static int crowd_busy(struct rogue *r, const struct mode *m)
{
	struct busy b = { .r = r, .hello = wire_good_hello() };
	int n = r->arg ? atoi(r->arg) : 16;
	pthread_t thread;

	(void)m;
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, keep_busy, &b))
			return no_answer("no thread");
	while (atomic_load(&b.conflicts) < n)
		poll(NULL, 0, TICK_NS / NS_PER_MS);
	answer("%d connections, %d times psn_conflict", n, atomic_load(&b.conflicts));
	for (;;)
		pause();
	return ROGUE_ANSWERED;
}

const struct mode crowd_modes[] = {
	{ "crowd-silent", .run = crowd, .variant = CROWD_SILENT },
	{ "crowd-half", .run = crowd, .variant = CROWD_HALF },
	{ "crowd-drip", .run = crowd, .variant = CROWD_DRIP },
	{ "proof-crowd", .run = crowd, .variant = CROWD_UNPROVEN },
	{ "crowd-grants", .run = crowd_grants, .variant = 1 },
	{ "crowd-chains", .run = crowd_grants, .variant = FRAME_QPS_MAX },
	{ "crowd-busy", .run = crowd_busy },
	{ NULL },
};
