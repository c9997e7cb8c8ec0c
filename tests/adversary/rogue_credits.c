/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that exceed their credits, in a crowd or over a long time, and one that receives nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "tests/adversary/link.h"

#define MESSAGE_BYTES 64u
#define SEND_EVERY_NS (200 * NS_PER_MS)

/* A crowd of clients, each of which has more messages in flight than its credits. */
struct crowd {
	unsigned clients;
	uint16_t depth;		/* credits that each client asks for */
	unsigned tenths;	/* messages in flight, in tenths of the credits */
	bool unsolicited;	/* one-way messages that wake nobody, sent once; else echoes, without end */
};

static const struct crowd crowds[] = {
	{ .clients = 40, .depth = 16, .tenths = 25, .unsolicited = true },
	{ .clients = 2, .depth = 128, .tenths = 80 },
};

static uint32_t in_flight_max(const struct crowd *crowd)
{
	return crowd->depth * crowd->tenths / 10;
}

static bool send_one_way(struct link *l)
{
	struct msg_header h = { .type = MSG_DATA, .length = MESSAGE_BYTES };
	uint32_t buf = ep_buf_get(l->ep);

	if (buf == EP_NO_BUF)
		return false;
	msg_encode(&h, ep_buf(l->ep, buf));
	return rc_send_unsolicited(&l->rc, buf, MESSAGE_BYTES) == 0;
}

/* Sends until the crowd's number of messages is in flight. `*sent` counts all that were ever sent. */
static void send_more(struct link *l, const struct crowd *crowd, uint32_t *sent)
{
	while (!link_has_ended(l) && *sent - l->received < in_flight_max(crowd)) {
		if (!(crowd->unsolicited ? send_one_way(l) : link_echo(l, MESSAGE_BYTES)))
			return;
		++*sent;
	}
}

static bool all_sent(const struct link *l)
{
	return link_has_ended(l) || l->rc.held_head == EP_NO_BUF;
}

static bool join_crowd(struct rogue *r, struct link *l, const struct crowd *crowd)
{
	struct frame_hello h = wire_good_hello();

	if (link_new_sized(r, l, in_flight_max(crowd), in_flight_max(crowd), MESSAGE_BYTES))
		return false;
	h.queue_depth = crowd->depth;
	l->rnr_retries = 7;
	if (!link_connect(l, &h))
		return false;
	if (l->grant.credits == crowd->depth)
		return true;
	no_answer("%u credits were granted", l->grant.credits);
	return false;
}

/* Sends from one client after another, after all have connected, because connecting wakes the server. Each client waits
 * until its messages are in the server's receive queue; false if there was no room within the time limit. */
static bool begin(struct link *links, unsigned n, const struct crowd *crowd, uint32_t *sent)
{
	for (unsigned i = 0; i < n; i++) {
		send_more(&links[i], crowd, &sent[i]);
		if (!link_wait(&links[i], all_sent))
			return false;
	}
	return true;
}

/* The same while the server's process is stopped, so that even a fast server finds all of the messages at once. */
static bool begin_unseen(struct link *links, unsigned n, const struct crowd *crowd, uint32_t *sent, pid_t server)
{
	bool all;

	if (kill(server, SIGSTOP))
		return false;
	all = begin(links, n, crowd, sent);
	return kill(server, SIGCONT) == 0 && all;
}

/* Goes on until the server has ended all of them, or the time is over. Returns how many it has ended. */
static unsigned go_on(struct link *links, unsigned n, const struct crowd *crowd, uint32_t *sent, uint64_t timeout_ns)
{
	struct rogue look = *links[0].r;
	uint64_t deadline_ns = clock_now_ns() + timeout_ns;
	unsigned ended;

	look.timeout_ns = NS_PER_MS;
	do {
		ended = 0;
		for (unsigned i = 0; i < n; i++) {
			links[i].r = &look;
			link_wait(&links[i], link_has_ended);
			ended += links[i].has_event && links[i].event.type == CM_DISCONNECTED;
			if (!crowd->unsolicited)
				send_more(&links[i], crowd, &sent[i]);
		}
	} while (ended < n && clock_now_ns() < deadline_ns);
	return ended;
}

/* ARG: process id of the server, if it must be stopped while the crowd sends. */
static int crowd_in(struct rogue *r, const struct mode *m)
{
	const struct crowd *crowd = &crowds[m->variant];
	unsigned n = crowd->clients, ended = 0, connected = 0;
	pid_t server = r->arg ? atoi(r->arg) : 0;
	bool begun;
	struct link *links = calloc(n, sizeof(*links));
	uint32_t *sent = calloc(n, sizeof(*sent));

	while (links && sent && connected < n && join_crowd(r, &links[connected], crowd))
		connected++;
	if (connected == n) {
		begun = server > 1 ? begin_unseen(links, n, crowd, sent, server) : begin(links, n, crowd, sent);
		answer("%u clients, %u messages each%s", n, in_flight_max(crowd),
		       begun ? "" : ", not all were received");
		ended = go_on(links, n, crowd, sent, r->timeout_ns);
	}
	for (unsigned i = 0; links && i <= connected && i < n; i++)
		link_free(&links[i]);
	free(links);
	free(sent);
	return connected == n ? answer("%u disconnected", ended) : no_answer("%u connected", connected);
}

/* Sends echoes one after the other: quickly while it has receives, then one every SEND_EVERY_NS. */
static int echo_slowly(struct link *l)
{
	uint64_t deadline_ns = clock_now_ns() + l->r->timeout_ns;
	struct rogue slow = *l->r;

	slow.timeout_ns = SEND_EVERY_NS;
	l->r = &slow;
	while (!link_has_ended(l) && clock_now_ns() < deadline_ns)
		(void)!link_works(l);
	return link_answer(l);
}

/* Takes replies until its receives are used up, reposts none, and goes on sending. It has so many credits that it takes
 * some time to exceed them. */
static int never_receives(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello();
	int status = ROGUE_NO_ANSWER;
	struct link l;

	(void)m;
	if (link_new(r, &l))
		return no_answer("no verbs resources");
	h.queue_depth = 128;
	l.rnr_retries = 7;
	l.hoards = true;
	if (link_connect(&l, &h) && link_works(&l))
		status = echo_slowly(&l);
	link_free(&l);
	return status;
}

const struct mode credit_modes[] = {
	{ "unsolicited-flood", .run = crowd_in, .variant = 0 },
	{ "echo-flood", .run = crowd_in, .variant = 1 },
	{ "never-receives", .run = never_receives },
	{ NULL },
};
