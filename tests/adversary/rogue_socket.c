/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients over TCP and TLS (--transport) that break the rules of records, proofs or messages, or stop midway. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "common/wire/auth.h"
#include "common/wire/msg.h"
#include "common/wire/record.h"
#include "tests/adversary/rogue.h"
#include "tests/adversary/wire.h"

#define MESSAGE_BYTES 64u
#define PROOF_BYTES (RECORD_HEADER_BYTES + PDATA_PROOF_BYTES)
#define CROWD_CREDITS 16
#define QUIET_NS (300 * NS_PER_MS)	/* after this time without a byte, the server has nothing to say */
#define SIP_BYTES 80u
#define SIP_MS 100	/* 800 bytes/s: below the required 1,024, but the server's kernel sees progress */

/* A client with its GRANT, and its connection if it has one. */
struct end {
	struct rogue *r;
	struct wire wire;	/* also the connection, over TLS */
	struct reply reply;
	struct auth_keys keys;
	int fd;			/* the connection over TCP; -1: none */
};

static bool is_tls(const struct end *e)
{
	return e->r->transport == TRANSPORT_TLS;
}

static void end_close(struct end *e)
{
	wire_close(&e->wire);
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

static bool end_grant(struct rogue *r, struct end *e, uint16_t depth)
{
	struct frame_hello h = wire_good_hello();
	const uint8_t *id = e->reply.grant.session;

	h.queue_depth = depth;
	*e = (struct end){ .r = r, .fd = -1 };
	wire_open_hello(r, &h, &e->wire, &e->reply);
	if (e->reply.kind != REPLY_GRANT) {
		wire_answer(&e->reply);
		return false;
	}
	if (is_tls(e))
		return true;
	if (tls_export_key(e->wire.tls, AUTH_LABEL_CLIENT, id, FRAME_SESSION_BYTES, e->keys.client, AUTH_KEY_BYTES)) {
		no_answer("no keys");
		return false;
	}
	wire_close(&e->wire);
	return true;
}

/* Connects over TCP; prints a line and returns false if nobody listens. */
static bool end_dial(struct end *e)
{
	struct rogue to = *e->r;

	to.server = e->reply.grant.rdma;
	e->fd = wire_tcp(&to, NULL);
	if (e->fd >= 0)
		return true;
	no_answer("TCP: %s", strerror(-e->fd));
	return false;
}

static bool end_write(struct end *e, const void *data, size_t n)
{
	if (is_tls(e))
		return wire_write(&e->wire, data, n);
	for (size_t done = 0; done < n;) {
		struct pollfd p = { .fd = e->fd, .events = POLLOUT };
		ssize_t put = send(e->fd, (const uint8_t *)data + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (put < 0 && (errno != EAGAIN || poll(&p, 1, (int)(e->r->timeout_ns / NS_PER_MS)) != 1))
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* Reads up to `n` bytes for at most `ns`; *closed: the server closed. Returns how many bytes it read. */
static size_t end_read(struct end *e, uint8_t *out, size_t n, uint64_t ns, bool *closed)
{
	uint64_t deadline_ns = clock_now_ns() + ns, now;
	size_t have = 0;

	*closed = false;
	while (have < n && !*closed && (now = clock_now_ns()) < deadline_ns) {
		struct pollfd p = { .fd = is_tls(e) ? tls_fd(e->wire.tls) : e->fd, .events = POLLIN };
		size_t got = 0;

		if (is_tls(e)) {
			enum tls_status st = tls_read(e->wire.tls, out + have, n - have, &got);

			*closed = st == TLS_EOF || st == TLS_FAILED;
			if (st == TLS_WANT_READ)
				poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1);
		} else if (poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1) == 1) {
			ssize_t ret = recv(e->fd, out + have, n - have, MSG_DONTWAIT);

			*closed = ret == 0 || (ret < 0 && errno != EAGAIN);
			got = ret > 0 ? (size_t)ret : 0;
		}
		have += got;
	}
	return have;
}

static size_t put_record(uint8_t *out, enum record_kind kind, uint32_t bytes)
{
	record_encode(&(struct record){ .kind = kind, .bytes = bytes }, out);
	return RECORD_HEADER_BYTES;
}

static size_t put_echo(uint8_t *out)
{
	const struct msg_header h = { .type = MSG_ECHO, .length = MESSAGE_BYTES, .sequence = 1 };

	memset(out, 0, RECORD_HEADER_BYTES + MESSAGE_BYTES);
	msg_encode(&h, out + put_record(out, RECORD_MESSAGES, MESSAGE_BYTES));
	return RECORD_HEADER_BYTES + MESSAGE_BYTES;
}

static size_t put_push(const struct msg_push *push, uint8_t *out)
{
	const struct msg_header h = { .type = MSG_PUSH, .length = MSG_HEADER_BYTES + MSG_PUSH_BYTES };
	size_t n = put_record(out, RECORD_MESSAGES, h.length);

	msg_encode(&h, out + n);
	msg_put_push(push, out + n);
	return n + h.length;
}

static void put_proof(struct end *e, uint8_t out[PROOF_BYTES])
{
	struct addr local = { 0 };
	struct auth_binding b = { .session = e->reply.grant.session, .client = &local, .server = &e->reply.grant.rdma };
	struct pdata_proof proof = { 0 };

	memcpy(proof.session, b.session, sizeof(proof.session));
	if (!addr_of_socket(e->fd, &local))
		(void)!auth_hmac(NULL, e->keys.client, &b, proof.hmac);
	pdata_encode_proof(PDATA_REQUEST, &proof, out + put_record(out, RECORD_PROOF, PDATA_PROOF_BYTES));
}

/* Prints "closed", "nothing", "answered", or "rejected: CODE". */
static int say_what_comes(struct end *e)
{
	uint8_t in[RECORD_HEADER_BYTES + MESSAGE_BYTES];
	struct record r;
	uint16_t code;
	bool closed;
	size_t n = end_read(e, in, RECORD_HEADER_BYTES, e->r->timeout_ns, &closed);

	if (closed || n < RECORD_HEADER_BYTES)
		return answer(closed ? "closed" : "nothing");
	if (record_decode(in, MESSAGE_BYTES, &r))
		return no_answer("a record that does not decode");
	if (end_read(e, in, r.bytes, e->r->timeout_ns, &closed) < r.bytes)
		return no_answer("a record that is cut");
	if (r.kind == RECORD_REJECT && !pdata_decode_reject(in, r.bytes, &code))
		return answer("rejected: %s", refuse_code_name(code));
	return answer(r.kind == RECORD_PROOF ? "proven" : r.kind == RECORD_MESSAGES ? "answered" : "another record");
}

/* Connects correctly, with up to `depth` credits. */
static bool end_live_deep(struct rogue *r, struct end *e, uint16_t depth)
{
	uint8_t proof[PROOF_BYTES];
	bool closed;

	if (!end_grant(r, e, depth))
		return false;
	if (is_tls(e))
		return true;
	if (!end_dial(e))
		return false;
	put_proof(e, proof);
	if (end_write(e, proof, sizeof(proof)) &&
	    end_read(e, proof, sizeof(proof), r->timeout_ns, &closed) == sizeof(proof))
		return true;
	no_answer("the server shows no proof");
	return false;
}

static bool end_live(struct rogue *r, struct end *e)
{
	return end_live_deep(r, e, 1);
}

bool socket_check(struct rogue *r)
{
	uint8_t out[RECORD_HEADER_BYTES + MESSAGE_BYTES], in[sizeof(out)];
	struct end e;
	bool closed, works;

	if (!end_live(r, &e)) {
		end_close(&e);
		return false;
	}
	works = end_write(&e, out, put_echo(out)) &&
		end_read(&e, in, sizeof(in), r->timeout_ns, &closed) == sizeof(in) &&
		end_write(&e, out, put_record(out, RECORD_BYE, 0)) &&
		end_read(&e, in, 1, r->timeout_ns, &closed) == 0 && closed;
	end_close(&e);
	if (!works)
		no_answer("a client that keeps to the protocol is not served");
	return works;
}

enum spoilt { LONG, KIND, RESERVED, IMM, PROOF_AGAIN, TYPE, LENGTH, EMPTY, PUSH_REGION, PUSH_HUGE, FLOOD,
	       BYE_AND_MORE };

/* Writes what is sent on a live connection. Returns its size. */
static size_t spoil(enum spoilt how, const struct frame_grant *g, uint8_t *out, size_t size)
{
	struct msg_push push = { .bytes = how == PUSH_HUGE ? g->message_bytes : 1,
				 .region_offset = how == PUSH_REGION };
	size_t n = put_echo(out);

	switch (how) {
	case LONG:
		memset(out, 0xff, 4);
		break;
	case KIND:
		out[4] = 9;
		break;
	case RESERVED:
		out[6] = 1;
		break;
	case IMM:
		out[11] = 1;
		break;
	case PROOF_AGAIN:
		out[4] = RECORD_PROOF;
		break;
	case TYPE:
		out[RECORD_HEADER_BYTES] = MSG_REPLY;
		break;
	case LENGTH:
		out[RECORD_HEADER_BYTES + 7]++;
		break;
	case EMPTY:
		return put_record(out, RECORD_MESSAGES, 0);
	case PUSH_REGION:
	case PUSH_HUGE:
		return put_push(&push, out);
	case FLOOD:
		/* Send them in one piece, so that the server finds all of them at once. */
		for (uint32_t i = 0; i < 4u * g->credits && n + RECORD_HEADER_BYTES + MESSAGE_BYTES <= size; i++)
			n += put_echo(out + n);
		break;
	case BYE_AND_MORE:
		n = put_record(out, RECORD_BYE, 0);
		return n + put_echo(out + n);
	}
	return n;
}

static int break_a_rule(struct rogue *r, const struct mode *m)
{
	static uint8_t out[64 << 10];
	struct end e;
	int status = ROGUE_NO_ANSWER;
	size_t n;

	if (end_live(r, &e)) {
		n = spoil((enum spoilt)m->variant, &e.reply.grant, out, sizeof(out));
		if (end_write(&e, out, n)) {
			uint8_t in[4096];
			bool closed = false;

			/* Ignore answers to earlier messages. */
			while (end_read(&e, in, sizeof(in), r->timeout_ns, &closed) == sizeof(in))
				;
			status = answer(closed ? "closed" : "still connected");
		}
	}
	end_close(&e);
	return status;
}

/* Sends a message one byte at a time. */
static int drip(struct rogue *r, const struct mode *m)
{
	uint8_t out[RECORD_HEADER_BYTES + MESSAGE_BYTES];
	size_t n = put_echo(out);
	struct end e;
	int status = ROGUE_NO_ANSWER;
	bool fine = end_live(r, &e);

	(void)m;
	for (size_t i = 0; i < n && fine; i++)
		fine = end_write(&e, out + i, 1);
	if (fine)
		status = say_what_comes(&e);
	end_close(&e);
	return status;
}

enum leaving { HALF_A_RECORD, RESET, END_OF_STREAM };

/* Sends half a record and then stops, resets or ends the stream. The server must not answer. */
static int stop_in_the_middle(struct rogue *r, const struct mode *m)
{
	const struct linger none = { .l_onoff = 1 };
	uint8_t out[RECORD_HEADER_BYTES + MESSAGE_BYTES], in[1];
	struct end e;
	int status = ROGUE_NO_ANSWER, fd;
	bool closed;

	if (end_live(r, &e) && end_write(&e, out, put_echo(out) - 10)) {
		fd = is_tls(&e) ? tls_fd(e.wire.tls) : e.fd;
		if (m->variant == RESET)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		else if (m->variant == END_OF_STREAM)
			shutdown(fd, SHUT_WR);
		end_read(&e, in, 1, m->variant == END_OF_STREAM ? r->timeout_ns : QUIET_NS, &closed);
		status = answer(closed ? "closed" : "nothing");
	}
	end_close(&e);
	return status;
}

/* Returns the number of received bytes that nobody has read; -1: the server closed. */
static int unread(const struct end *e)
{
	int fd = is_tls(e) ? tls_fd(e->wire.tls) : e->fd, n = 0;
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 || ioctl(fd, FIONREAD, &n) ? -1 : n;
}

/* Waits up to `ns` until unread() differs from `n`, and returns its value. */
static int await_more(const struct end *e, int n, uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns;
	int now = n;

	while (now == n && clock_now_ns() < until_ns) {
		poll(NULL, 0, 1);
		now = unread(e);
	}
	return now;
}

/* Reads SIP_BYTES every SIP_MS until the server resets the connection or --timeout has passed. poll reports no other
 * end here. */
static int sip(struct rogue *r, struct end *e)
{
	uint64_t until_ns = clock_now_ns() + r->timeout_ns;
	struct pollfd p = { .fd = is_tls(e) ? tls_fd(e->wire.tls) : e->fd };
	uint8_t bytes[SIP_BYTES];

	while (clock_now_ns() < until_ns) {
		if (poll(&p, 1, SIP_MS))
			return answer("closed");
		(void)!recv(p.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	}
	return answer("still connected");
}

/* Asks for the longest answers, one at a time so that no credit is exceeded, and reads none. When its receive buffer is
 * full, it stays silent for --timeout, or reads slowly (variant 1, see sip). A client that reads nothing cannot see
 * that the server drops it; only the server's statistics show that. */
static int never_read(struct rogue *r, const struct mode *m)
{
	const int small = 1;	/* the kernel uses its minimum instead (socket(7)) */
	uint8_t out[RECORD_HEADER_BYTES + MSG_HEADER_BYTES + MSG_PUSH_BYTES];
	int had, has = 0, status = ROGUE_NO_ANSWER;
	struct end e;

	/* Narrow the buffer before connecting: later is too late for what the server has already sent. */
	r->narrow = m->variant;
	if (end_live(r, &e)) {
		struct msg_push push = { .bytes = e.reply.grant.message_bytes - MSG_HEADER_BYTES };
		size_t n = put_push(&push, out);

		setsockopt(is_tls(&e) ? tls_fd(e.wire.tls) : e.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		do {
			had = has;
			has = end_write(&e, out, n) ? await_more(&e, had, QUIET_NS) : -1;
		} while (has > had);
		if (has != had || had <= 0) {
			status = no_answer("closed with room left");
		} else if (m->variant) {
			status = sip(r, &e);
		} else {
			await_more(&e, had, r->timeout_ns);
			status = answer("full");
		}
	}
	r->narrow = false;
	end_close(&e);
	return status;
}

/* Connects ARG clients, each of which asks for the longest echo once per credit and reads none. They stay until they
 * are killed. */
static int deaf_crowd(struct rogue *r, const struct mode *m)
{
	const int small = 1;
	int n = r->arg ? atoi(r->arg) : 1;
	struct end e;

	(void)m;
	for (int i = 0; i < n; i++) {
		struct msg_header h = { .type = MSG_ECHO, .sequence = 1 };
		uint8_t *out;
		size_t bytes;

		if (!end_live_deep(r, &e, CROWD_CREDITS))
			return ROGUE_NO_ANSWER;
		setsockopt(is_tls(&e) ? tls_fd(e.wire.tls) : e.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		h.length = e.reply.grant.message_bytes;
		bytes = RECORD_HEADER_BYTES + (size_t)h.length;
		out = calloc(1, bytes);
		if (!out)
			return no_answer("no memory");
		msg_encode(&h, out + put_record(out, RECORD_MESSAGES, h.length));
		for (uint32_t j = 0; j < e.reply.grant.credits; j++)
			if (!end_write(&e, out, bytes))
				return no_answer("client %d was closed", i);
		free(out);
	}
	answer("%d clients that do not read", n);
	pause();
	return ROGUE_ANSWERED;
}

enum proof { PROOF_RIGHT, PROOF_HMAC, PROOF_SESSION, PROOF_KIND, PROOF_LENGTH, PROOF_GARBAGE, PROOF_NONE, PROOF_PART };

/* Over TCP: sends something wrong instead of the proof. */
static int show(struct rogue *r, const struct mode *m)
{
	uint8_t proof[PROOF_BYTES];
	struct end e;
	int status = ROGUE_NO_ANSWER;

	if (end_grant(r, &e, 1) && end_dial(&e)) {
		put_proof(&e, proof);
		if (m->variant == PROOF_HMAC)
			proof[PROOF_BYTES - 1] ^= 1;
		else if (m->variant == PROOF_SESSION)
			proof[RECORD_HEADER_BYTES + 12] ^= 1;
		else if (m->variant == PROOF_KIND)
			proof[4] = RECORD_MESSAGES;
		else if (m->variant == PROOF_LENGTH)
			proof[3]--;
		else if (m->variant == PROOF_GARBAGE)
			memset(proof, 0xa5, sizeof(proof));
		if (m->variant == PROOF_NONE || end_write(&e, proof, sizeof(proof) - (m->variant == PROOF_PART)))
			status = say_what_comes(&e);
	}
	end_close(&e);
	return status;
}

/* Sends a message right behind the proof. After a wrong proof (variant 1) the refusal must still arrive. */
static int show_early(struct rogue *r, const struct mode *m)
{
	uint8_t out[PROOF_BYTES + RECORD_HEADER_BYTES + MESSAGE_BYTES], in[PROOF_BYTES];
	struct end e;
	int status = ROGUE_NO_ANSWER;
	bool closed;

	if (end_grant(r, &e, 1) && end_dial(&e)) {
		put_proof(&e, out);
		put_echo(out + PROOF_BYTES);
		out[PROOF_BYTES - 1] ^= (uint8_t)m->variant;
		if (end_write(&e, out, sizeof(out)) &&
		    (m->variant || end_read(&e, in, sizeof(in), r->timeout_ns, &closed) == sizeof(in)))
			status = say_what_comes(&e);
	}
	end_close(&e);
	return status;
}

/* Opens a second connection with the session of a live one. */
static int session_twice(struct rogue *r, const struct mode *m)
{
	uint8_t proof[PROOF_BYTES];
	struct end first, second;
	int status = ROGUE_NO_ANSWER;

	(void)m;
	if (end_live(r, &first)) {
		second = first;
		second.fd = -1;
		if (end_dial(&second)) {
			put_proof(&second, proof);
			if (end_write(&second, proof, sizeof(proof)))
				status = say_what_comes(&second);
			close(second.fd);
		}
	}
	end_close(&first);
	return status;
}

/* TLS comes from one address (--source), TCP from another (the mode's argument, since --source is for both). */
static int other_address(struct rogue *r, const struct mode *m)
{
	uint8_t proof[PROOF_BYTES];
	struct rogue from = *r;
	struct end e;
	int status = ROGUE_NO_ANSWER;

	(void)m;
	if (end_grant(r, &e, 1)) {
		if (r->arg && !addr_parse(r->arg, 0, &from.source)) {
			e.r = &from;
			if (end_dial(&e)) {
				put_proof(&e, proof);
				if (end_write(&e, proof, sizeof(proof)))
					status = say_what_comes(&e);
			}
		}
	}
	end_close(&e);
	return status;
}

const struct mode socket_modes[] = {
	{ "record-long", .run = break_a_rule, .variant = LONG },
	{ "record-kind", .run = break_a_rule, .variant = KIND },
	{ "record-reserved", .run = break_a_rule, .variant = RESERVED },
	{ "record-imm", .run = break_a_rule, .variant = IMM },
	{ "record-proof-again", .run = break_a_rule, .variant = PROOF_AGAIN },
	{ "record-empty", .run = break_a_rule, .variant = EMPTY },
	{ "record-message-type", .run = break_a_rule, .variant = TYPE },
	{ "record-message-length", .run = break_a_rule, .variant = LENGTH },
	{ "record-push-region", .run = break_a_rule, .variant = PUSH_REGION },
	{ "record-push-huge", .run = break_a_rule, .variant = PUSH_HUGE },
	{ "record-flood", .run = break_a_rule, .variant = FLOOD },
	{ "record-bye-and-more", .run = break_a_rule, .variant = BYE_AND_MORE },
	{ "record-drip", .run = drip },
	{ "record-half", .run = stop_in_the_middle, .variant = HALF_A_RECORD },
	{ "record-reset", .run = stop_in_the_middle, .variant = RESET },
	{ "record-deaf", .run = never_read },
	{ "record-deaf-crowd", .run = deaf_crowd },
	{ "record-sips", .run = never_read, .variant = 1 },
	{ "record-end", .run = stop_in_the_middle, .variant = END_OF_STREAM },
	{ "proof-right", .run = show, .variant = PROOF_RIGHT },
	{ "proof-hmac", .run = show, .variant = PROOF_HMAC },
	{ "proof-session", .run = show, .variant = PROOF_SESSION },
	{ "proof-kind", .run = show, .variant = PROOF_KIND },
	{ "proof-length", .run = show, .variant = PROOF_LENGTH },
	{ "proof-garbage", .run = show, .variant = PROOF_GARBAGE },
	{ "proof-none", .run = show, .variant = PROOF_NONE },
	{ "proof-part", .run = show, .variant = PROOF_PART },
	{ "proof-early", .run = show_early },
	{ "proof-early-wrong", .run = show_early, .variant = 1 },
	{ "proof-twice", .run = session_twice },
	{ "proof-other-address", .run = other_address },
	{ NULL },
};
