/* SPDX-License-Identifier: BSD-2-Clause */
/* Misbehaviour in the RDMA connection: private data, sessions, packet sequence numbers, messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/msg.h"
#include "common/wire/psn.h"
#include "common/tls/tls.h"
#include "tests/adversary/link.h"

enum spoil {
	SPOIL_NOTHING,
	SPOIL_SESSION,		/* an id that nobody was granted */
	SPOIL_HMAC,
	SPOIL_KEY,		/* a proof with the server's key, as if its own were reflected */
	SPOIL_QPN,		/* a proof for another QP */
	SPOIL_KIND,		/* private data of a REP in a REQ */
	SPOIL_VERSION,
	SPOIL_LENGTH,		/* a wrong length field */
	SPOIL_CUT,		/* cut off; the CM pads it with zeros */
	SPOIL_NO_DATA,
	SPOIL_GARBAGE,
};

#define PRIVATE_BYTES 56	/* the most that a REQ can carry */

/* Corrupts the message that is a request out of band. Returns its length. */
static uint8_t spoil_message(enum spoil how, uint8_t *out)
{
	struct msg_header h = { .type = how == SPOIL_KIND ? MSG_REPLY : MSG_PROOF,
				.flags = how == SPOIL_VERSION,
				.length = MSG_PROOF_BYTES - (how == SPOIL_LENGTH) };

	msg_encode(&h, out);
	out[MSG_PROOF_BYTES - 1] ^= how == SPOIL_HMAC;
	if (how == SPOIL_GARBAGE)
		memset(out, 0xa5, MSG_PROOF_BYTES);
	return how == SPOIL_NO_DATA ? 0 : MSG_PROOF_BYTES - (how == SPOIL_CUT);
}

/* Writes a request's private data with one fault. Returns its length. */
static uint8_t private_data(struct link *l, enum spoil how, uint8_t out[PRIVATE_BYTES])
{
	const uint8_t *key = how == SPOIL_KEY ? l->keys.server : l->keys.client;

	if (l->r->oob && how == SPOIL_SESSION)
		l->grant.session[0] ^= 0x55;
	link_proof(l, key, rc_qpn(&l->rc) + (how == SPOIL_QPN), out);
	if (l->r->oob)
		return spoil_message(how, out);
	switch (how) {
	case SPOIL_SESSION: out[4] ^= 0x55; break;
	case SPOIL_HMAC: out[PDATA_PROOF_BYTES - 1] ^= 1; break;
	case SPOIL_KIND: out[1] = PDATA_REPLY; break;
	case SPOIL_VERSION: out[0] = FRAME_VERSION + 1; break;
	case SPOIL_LENGTH: out[3] = PDATA_PROOF_BYTES - 1; break;
	case SPOIL_CUT: return 40;
	case SPOIL_NO_DATA: return 0;
	case SPOIL_GARBAGE:
		memset(out, 0xa5, PRIVATE_BYTES);
		return PRIVATE_BYTES;
	case SPOIL_NOTHING:
	case SPOIL_KEY:
	case SPOIL_QPN:
		break;
	}
	return PDATA_PROOF_BYTES;
}

/* Requests a connection with the session of `l`; the outcome is in l->event. */
static bool request(struct link *l, uint16_t port, enum spoil how)
{
	uint8_t data[PRIVATE_BYTES];

	return link_resolve(l, port) && link_request(l, data, private_data(l, how, data));
}

static bool is_rejected(const struct link *l, enum refuse_code with)
{
	uint16_t code;

	return l->has_event && l->event.type == CM_REJECTED &&
	       !pdata_decode_reject(l->event.private_data, l->event.private_bytes, &code) &&
	       code == with;
}

static bool has_event(const struct link *l)
{
	return l->has_event;
}

static bool replied(const struct link *l)
{
	return l->received > 0 || link_has_ended(l);
}

/* Makes a new link and runs the mode's work on it. */
static int with_link(struct rogue *r, int (*work)(struct link *l, const struct mode *m),
		     const struct mode *m)
{
	struct link l;
	int status;

	if (link_new(r, &l))
		return no_answer("no verbs resources");
	status = work(&l, m);
	link_free(&l);
	return status;
}

/* Makes a second link that uses the session of the first. */
static bool share_session(const struct link *from, struct link *to)
{
	if (link_new(from->r, to))
		return false;
	to->hello = from->hello;
	to->grant = from->grant;
	to->keys = from->keys;
	to->sq_psn = from->sq_psn;
	return true;
}

bool link_check(struct rogue *r)
{
	struct link l;
	bool fine = link_new(r, &l) == 0;

	if (!fine)
		return false;
	fine = link_connect(&l, &l.hello) && link_works(&l);
	if (!fine)
		no_answer("afterwards the server does not serve");
	link_free(&l);
	return fine;
}

static int do_spoilt(struct link *l, const struct mode *m)
{
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	(void)!request(l, 0, (enum spoil)m->variant);
	return link_answer(l);
}

/* Sends a good proof after a bad one: by then the session must be gone. */
static int do_second_try(struct link *l, const struct mode *m)
{
	struct link again;
	bool rejected;
	int status;

	(void)m;
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	if (!request(l, 0, SPOIL_HMAC) || !is_rejected(l, REFUSE_BAD_HMAC))
		return no_answer("the first try was not rejected");
	if (!share_session(l, &again))
		return no_answer("no verbs resources");
	(void)!request(&again, 0, SPOIL_NOTHING);
	rejected = is_rejected(&again, REFUSE_BAD_SESSION);
	status = rejected ? answer("rejected: bad_hmac, rejected: bad_session") : link_answer(&again);
	link_free(&again);
	return status;
}

static int do_replay(struct link *l, const struct mode *m)
{
	struct link again;
	bool rejected;

	(void)m;
	if (!link_connect(l, &l->hello))
		return ROGUE_NO_ANSWER;
	if (!share_session(l, &again))
		return no_answer("no verbs resources");
	rejected = request(&again, 0, SPOIL_NOTHING) && is_rejected(&again, REFUSE_BAD_SESSION);
	if (!rejected)
		link_answer(&again);
	link_free(&again);
	if (!rejected)
		return ROGUE_NO_ANSWER;
	return answer("rejected: bad_session, the first connection %s", link_works(l) ? "works" : "is broken");
}

/* Sends two requests at once for one session. */
static int do_double(struct link *l, const struct mode *m)
{
	struct link twin;
	uint8_t a[PRIVATE_BYTES], b[PRIVATE_BYTES];
	struct cm_conn_param pa = { .private_data = a, .private_bytes = PDATA_PROOF_BYTES };
	struct cm_conn_param pb = { .private_data = b, .private_bytes = PDATA_PROOF_BYTES };
	int accepted, rejected;

	(void)m;
	if (!link_grant(l, NULL) || !share_session(l, &twin))
		return wire_answer(&l->reply);
	if (!link_resolve(l, 0) || !link_resolve(&twin, 0))
		return no_answer("the server's RDMA address does not resolve");
	private_data(l, SPOIL_NOTHING, a);
	private_data(&twin, SPOIL_NOTHING, b);
	pa.qpn = rc_qpn(&l->rc);
	pb.qpn = rc_qpn(&twin.rc);
	if (cm_connect(l->rc.id, &pa) || cm_connect(twin.rc.id, &pb))
		return no_answer("rdma_connect failed");
	link_wait(l, link_has_ended);
	link_wait(&twin, link_has_ended);
	accepted = (l->event.type == CM_CONNECT_RESPONSE) + (twin.event.type == CM_CONNECT_RESPONSE);
	rejected = is_rejected(l, REFUSE_BAD_SESSION) + is_rejected(&twin, REFUSE_BAD_SESSION);
	link_free(&twin);
	return answer("%d accepted, %d rejected: bad_session", accepted, rejected);
}

/* Waits until the server has dropped the session, which closes the socket, before it sends the request. */
static int do_expired(struct link *l, const struct mode *m)
{
	(void)m;
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	if (!wire_await_close(tls_fd(l->wire.tls), l->r->timeout_ns))
		return no_answer("the session did not expire");
	(void)!request(l, 0, SPOIL_NOTHING);
	return link_answer(l);
}

/* ARG lists the server's RDMA ports. Tries the first port that was not granted, then the granted one. */
static int do_wrong_port(struct link *l, const struct mode *m)
{
	char ports[256], *rest = ports, *port;
	struct link other;
	uint16_t wrong = 0;

	(void)m;
	snprintf(ports, sizeof(ports), "%s", l->r->arg ? l->r->arg : "");
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	while (!wrong && (port = strsep(&rest, ",")))
		if (atoi(port) != addr_port(&l->grant.rdma))
			wrong = (uint16_t)atoi(port);
	if (!wrong || !share_session(l, &other))
		return no_answer("the server has no other port");
	if (!request(&other, wrong, SPOIL_NOTHING) || !is_rejected(&other, REFUSE_BAD_SESSION))
		return link_answer(&other);
	link_free(&other);
	if (!request(l, 0, SPOIL_NOTHING) || l->event.type != CM_CONNECT_RESPONSE)
		return no_answer("the right port does not work any more");
	return answer("rejected: bad_session, then accepted at the right port");
}

/* Uses different source addresses for TLS and for RDMA. */
static int do_other_address(struct link *l, const struct mode *m)
{
	(void)m;
	if (!link_grant(l, "127.0.0.2"))
		return wire_answer(&l->reply);
	(void)!request(l, 0, SPOIL_NOTHING);
	return link_answer(l);
}

/* Is accepted but never completes the connection. */
static int do_never_establish(struct link *l, const struct mode *m)
{
	(void)m;
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	if (!request(l, 0, SPOIL_NOTHING) || l->event.type != CM_CONNECT_RESPONSE)
		return link_answer(l);
	l->has_event = false;
	link_wait(l, link_has_ended);
	return l->has_event ? answer("given up") : no_answer("the server still waits");
}

/* Claims another connection's QP number, as its owner would after a crash: the kernel ends that connection. Out of band
 * the server's packets then go to the owner, which drops them for their PSN. */
static int do_stolen_qpn(struct link *l, const struct mode *m)
{
	struct link thief;
	int status;

	(void)m;
	if (!link_connect(l, &l->hello) || !link_works(l))
		return ROGUE_NO_ANSWER;
	if (link_new(l->r, &thief))
		return no_answer("no verbs resources");
	thief.claimed_qpn = rc_qpn(&l->rc);
	if (!link_grant(&thief, NULL) || !link_resolve(&thief, 0)) {
		status = no_answer("the second connection was not granted");
	} else {
		uint8_t data[PDATA_PROOF_BYTES];
		uint8_t bytes = link_proof(&thief, thief.keys.client, thief.claimed_qpn, data);

		(void)!link_request(&thief, data, bytes);
		status = l->r->oob ? answer("the thief %s, the owner's connection %s",
					    thief.oob_connected ? "is connected" : "gets nothing",
					    link_works(l) ? "works" : "is broken") : link_answer(&thief);
	}
	link_free(&thief);
	return status;
}

/* Programs a PSN above the agreed one, as if packets had been lost, so no message arrives. (A PSN below it would look
 * like a repetition, which is acknowledged and dropped.) */
static int do_wrong_psn(struct link *l, const struct mode *m)
{
	(void)m;
	if (!link_grant(l, NULL))
		return wire_answer(&l->reply);
	l->sq_psn = (l->sq_psn + 0x10000) & PSN_MASK;
	/* Out of band the request itself is a message. */
	if (!request(l, 0, SPOIL_NOTHING) ||
	    (l->wc_status == IBV_WC_SUCCESS && (!link_establish(l) || !link_echo(l, 64))))
		return no_answer("not connected");
	link_wait(l, replied);
	if (l->received)
		return answer("a reply");
	return l->wc_status == IBV_WC_SUCCESS ? link_answer(l) : answer("wc: %s", link_wc_name(l->wc_status));
}

/* Asks for the PSN of a connection that has just ended, which must still be in quarantine. */
static int do_resting_psn(struct link *l, const struct mode *m)
{
	struct frame_hello h = l->hello;

	(void)m;
	if (!link_connect(l, &h) || !link_works(l) || !link_disconnect(l))
		return no_answer("not connected and disconnected");
	if (wire_open(l->r, NULL, &l->wire, &l->reply))
		wire_hello(&l->wire, &h, &l->reply);
	return wire_answer(&l->reply);
}

enum message { M_TYPE_0, M_REPLY, M_FLAGS, M_LONGER, M_SHORTER, M_CUT, M_EMPTY, M_BEYOND_GRANT, M_HUGE,
	       M_JOINED_LONGER, M_JOINED_CUT, M_JOINED_ECHO, M_JOINED_ASKING, M_JOINED_MANY };

/* Writes several one-way messages for one SEND, with a fault. Returns their size. */
static uint32_t bad_joined(enum message which, uint8_t *data)
{
	uint32_t n = which == M_JOINED_MANY ? MSG_JOINED_MAX + 1 : 3;

	for (uint32_t i = 0; i < n; i++) {
		struct msg_header h = { .type = MSG_DATA, .length = MSG_HEADER_BYTES, .sequence = i,
					.flags = i + 1 == n ? MSG_FLAG_ACK : 0 };

		if (which == M_JOINED_LONGER && i + 1 == n)
			h.length = UINT32_MAX - MSG_HEADER_BYTES;
		if (which == M_JOINED_ECHO && i == 1)
			h.type = MSG_ECHO;
		if (which == M_JOINED_ASKING && i == 1)
			h.flags = MSG_FLAG_ACK;
		msg_encode(&h, data + i * MSG_HEADER_BYTES);
	}
	return n * MSG_HEADER_BYTES - (which == M_JOINED_CUT);
}

static uint32_t bad_message(const struct link *l, enum message which, uint8_t *data)
{
	struct msg_header h = { .type = MSG_ECHO, .length = 64, .sequence = 7 };
	uint32_t bytes = 64;

	if (which >= M_JOINED_LONGER)
		return bad_joined(which, data);
	if (which == M_REPLY)
		h.type = MSG_REPLY;
	if (which == M_LONGER)
		h.length = 65;
	if (which == M_SHORTER)
		h.length = 63;
	if (which == M_BEYOND_GRANT)
		h.length = bytes = l->grant.message_bytes + 1;
	if (which == M_HUGE)
		h.length = bytes = LINK_BUF_BYTES;
	if (which == M_CUT)
		bytes = MSG_HEADER_BYTES - 1;
	if (which == M_EMPTY)
		bytes = 0;
	msg_encode(&h, data);
	if (which == M_TYPE_0)
		data[0] = 0;
	if (which == M_FLAGS)
		data[1] = 1;
	return bytes;
}

static int do_message(struct link *l, const struct mode *m)
{
	static uint8_t data[LINK_BUF_BYTES];
	uint32_t bytes;

	if (!link_connect(l, &l->hello) || !link_works(l))
		return ROGUE_NO_ANSWER;
	l->received = 0;
	bytes = bad_message(l, (enum message)m->variant, data);
	if (!link_send(l, data, bytes))
		return no_answer("the message could not be posted");
	link_wait(l, replied);
	if (l->received)
		return answer("a reply");
	/* The device sends the negative acknowledgement; the server itself must end the connection as well. */
	if (l->wc_status != IBV_WC_SUCCESS && l->wc_status != IBV_WC_RETRY_EXC_ERR && link_wait(l, has_event))
		return answer("wc: %s, disconnected", link_wc_name(l->wc_status));
	return link_answer(l);
}

/* Sends ARG messages at once although it has a single credit. */
static int do_credits(struct link *l, const struct mode *m)
{
	unsigned n = l->r->arg ? (unsigned)atoi(l->r->arg) : LINK_MESSAGES_MAX;

	(void)m;
	if (!link_connect(l, &l->hello) || !link_works(l))
		return ROGUE_NO_ANSWER;
	if (l->grant.credits != 1)
		return no_answer("%u credits were granted", l->grant.credits);
	for (unsigned i = 0; i < n; i++)
		if (!link_echo(l, 64))
			return no_answer("message %u could not be posted", i);
	link_wait(l, link_has_ended);
	return link_answer(l);
}

static bool send_with_immediate(struct link *l, uint32_t bytes)
{
	uint32_t buf = ep_buf_get(l->ep);

	return buf != EP_NO_BUF && rc_send_imm(&l->rc, buf, bytes, 7) == 0;
}

/* Sends messages with immediate data. variant 1: one message longer than the grant allows; 0: as many at once as can be
 * posted, with a single credit. */
static int do_immediates(struct link *l, const struct mode *m)
{
	uint32_t n = m->variant ? 1 : LINK_MESSAGES_MAX;

	if (!link_connect(l, &l->hello) || !link_works(l))
		return ROGUE_NO_ANSWER;
	l->received = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!send_with_immediate(l, m->variant ? l->grant.message_bytes + 1 : 64))
			return no_answer("message %u could not be posted", i);
	link_wait(l, m->variant ? replied : link_has_ended);
	if (l->wc_status != IBV_WC_SUCCESS && l->wc_status != IBV_WC_RETRY_EXC_ERR && link_wait(l, has_event))
		return answer("wc: %s, disconnected", link_wc_name(l->wc_status));
	return link_answer(l);
}

/* Connects, sends one message and stays until it is killed or disconnected. */
static int do_hold(struct link *l, const struct mode *m)
{
	(void)m;
	if (!link_connect(l, &l->hello) || !link_works(l))
		return ROGUE_NO_ANSWER;
	answer("connected: server_qpn=%u to=%u from=%u", l->server_qpn, l->sq_psn, l->grant.psn);
	while (!link_has_ended(l))
		link_wait(l, link_has_ended);
	return link_answer(l);
}

#define MODE(name, function) static int name(struct rogue *r, const struct mode *m) \
	{ return with_link(r, function, m); }
MODE(spoilt, do_spoilt)
MODE(second_try, do_second_try)
MODE(replay, do_replay)
MODE(twice, do_double)
MODE(expired, do_expired)
MODE(wrong_port, do_wrong_port)
MODE(other_address, do_other_address)
MODE(never_establish, do_never_establish)
MODE(stolen_qpn, do_stolen_qpn)
MODE(wrong_psn, do_wrong_psn)
MODE(resting_psn, do_resting_psn)
MODE(message, do_message)
MODE(credits, do_credits)
MODE(immediates, do_immediates)
MODE(hold, do_hold)

const struct mode link_modes[] = {
	{ "request-right", .run = spoilt, .variant = SPOIL_NOTHING },
	{ "request-wrong-session", .run = spoilt, .variant = SPOIL_SESSION },
	{ "request-wrong-hmac", .run = spoilt, .variant = SPOIL_HMAC },
	{ "request-wrong-key", .run = spoilt, .variant = SPOIL_KEY },
	{ "request-wrong-qpn", .run = spoilt, .variant = SPOIL_QPN },
	{ "request-wrong-kind", .run = spoilt, .variant = SPOIL_KIND },
	{ "request-wrong-version", .run = spoilt, .variant = SPOIL_VERSION },
	{ "request-wrong-length", .run = spoilt, .variant = SPOIL_LENGTH },
	{ "request-cut", .run = spoilt, .variant = SPOIL_CUT },
	{ "request-no-data", .run = spoilt, .variant = SPOIL_NO_DATA },
	{ "request-garbage", .run = spoilt, .variant = SPOIL_GARBAGE },
	{ "second-try", .run = second_try },
	{ "replay", .run = replay },
	{ "same-session-twice", .run = twice },
	{ "expired", .run = expired },
	{ "wrong-port", .run = wrong_port },
	{ "other-address", .run = other_address },
	{ "never-establish", .run = never_establish },
	{ "stolen-qpn", .run = stolen_qpn },
	{ "wrong-psn", .run = wrong_psn },
	{ "resting-psn", .run = resting_psn },
	{ "message-type-0", .run = message, .variant = M_TYPE_0 },
	{ "message-reply", .run = message, .variant = M_REPLY },
	{ "message-flags", .run = message, .variant = M_FLAGS },
	{ "message-says-longer", .run = message, .variant = M_LONGER },
	{ "message-says-shorter", .run = message, .variant = M_SHORTER },
	{ "message-cut", .run = message, .variant = M_CUT },
	{ "message-empty", .run = message, .variant = M_EMPTY },
	{ "message-beyond-grant", .run = message, .variant = M_BEYOND_GRANT },
	{ "message-huge", .run = message, .variant = M_HUGE },
	{ "joined-says-longer", .run = message, .variant = M_JOINED_LONGER },
	{ "joined-cut", .run = message, .variant = M_JOINED_CUT },
	{ "joined-echo", .run = message, .variant = M_JOINED_ECHO },
	{ "joined-asking", .run = message, .variant = M_JOINED_ASKING },
	{ "joined-many", .run = message, .variant = M_JOINED_MANY },
	{ "credits", .run = credits },
	{ "immediate-credits", .run = immediates },
	{ "immediate-beyond-grant", .run = immediates, .variant = 1 },
	{ "hold", .run = hold },
	{ NULL },
};
