/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/socket.c and arrive.c: clients over TLS and TCP from their GRANT to their end, also when
 * the server stops, and TCP connections that show nothing, or something wrong. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/ep_internal.h"
#include "common/tls/tls.h"
#include "common/wire/msg.h"
#include "common/wire/record.h"
#include "server/shard/arrive.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

#define PROOF_BYTES (RECORD_HEADER_BYTES + PDATA_PROOF_BYTES)

static void start(void)
{
	srv.cfg.transport_mask = TRANSPORTS_ALL;
	srv.cfg.rdma_port = 0;
	server_rig_start();
}

static void assert_buffers_back(void)
{
	struct ep_counts c;

	ep_get_counts(srv.shard->sock_ep, &c);
	assert_int_equal(c.bufs_free, c.bufs_total);
}

static void get_grant(struct peer *p, uint16_t features)
{
	peer_shake_hands(p);
	p->psn = 0;
	assert_int_equal(peer_say_hello(p, features), FRAME_GRANT);
	assert_int_equal(p->grant.psn, 0);
	assert_int_equal(p->grant.features, features);
}

/* The same over TCP, and TLS has ended. */
static void get_tcp_grant(struct peer *p)
{
	get_grant(p, FRAME_FEATURE_TCP);
	peer_close(p);
}

static void start_granted(struct peer *p)
{
	start();
	get_tcp_grant(p);
}

static struct peer granted;

static int set_up_granted(void **state)
{
	int ret = server_rig_init(state);

	start_granted(&granted);
	return ret;
}

/* Begins with `granted`, which has a GRANT for TCP. */
#define GRANTED_TEST(f) TEST_WITH(f, set_up_granted, server_rig_stop)

static int dial_from(const struct peer *p, in_addr_t address)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	/* Two small writes in a row would wait for a delayed acknowledgement. */
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&p->grant.rdma.ss, p->grant.rdma.len), 0);
	server_turn();
	return fd;
}

static int dial(const struct peer *p)
{
	return dial_from(p, INADDR_LOOPBACK);
}

static int dial_from_another(const struct peer *p)
{
	return dial_from(p, INADDR_LOOPBACK + 11);
}

/* Computes the proof that one side makes with its key. */
static void hmac_of(const struct peer *p, int fd, const uint8_t *key, uint8_t hmac[AUTH_HMAC_BYTES])
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr local;
	struct auth_binding b = { .session = p->grant.session, .client = &local, .server = &p->grant.rdma };

	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &local), 0);
	assert_int_equal(auth_hmac(NULL, key, &b, hmac), 0);
}

static size_t proof_of(const struct peer *p, int fd, uint8_t out[PROOF_BYTES])
{
	struct pdata_proof proof;

	memcpy(proof.session, p->grant.session, sizeof(proof.session));
	hmac_of(p, fd, p->keys.client, proof.hmac);
	record_encode(&(struct record){ .kind = RECORD_PROOF, .bytes = PDATA_PROOF_BYTES }, out);
	pdata_encode_proof(PDATA_REQUEST, &proof, out + RECORD_HEADER_BYTES);
	return PROOF_BYTES;
}

static void give(int fd, const void *data, size_t n)
{
	assert_int_equal(send(fd, data, n, MSG_NOSIGNAL), n);
	server_turns(2);
}

static void give_proof(const struct peer *p, int fd)
{
	uint8_t bytes[PROOF_BYTES];

	give(fd, bytes, proof_of(p, fd, bytes));
}

/* Up to `n` bytes; fewer if the server closes. */
static size_t take(int fd, uint8_t *out, size_t n)
{
	size_t have = 0;

	for (int i = 0; i < 1000 && have < n; i++) {
		ssize_t got = recv(fd, out + have, n - have, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
		have += got > 0 ? (size_t)got : 0;
		server_turn();
	}
	return have;
}

static void assert_rejected(int fd, enum refuse_code code)
{
	uint8_t bytes[PROOF_BYTES];
	struct record r;
	uint16_t said;

	assert_int_equal(take(fd, bytes, sizeof(bytes)), RECORD_HEADER_BYTES + PDATA_REJECT_BYTES);
	assert_int_equal(record_decode(bytes, 64, &r), 0);
	assert_int_equal(r.kind, RECORD_REJECT);
	assert_int_equal(pdata_decode_reject(bytes + RECORD_HEADER_BYTES, PDATA_REJECT_BYTES, &said), 0);
	assert_int_equal(said, code);
	assert_int_equal(server_refused(code), 1);
	assert_int_equal(server_failed(STAGE_SOCKET_CONNECT, FAIL_REFUSED, (int)code), 1);
	close(fd);
	server_turns(2);
}

static int go_live(struct peer *p)
{
	uint8_t bytes[PROOF_BYTES], expected[AUTH_HMAC_BYTES];
	struct pdata_proof proof;
	int fd;

	get_tcp_grant(p);
	fd = dial(p);
	give_proof(p, fd);
	assert_int_equal(take(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(pdata_decode_proof(PDATA_REPLY, bytes + RECORD_HEADER_BYTES, PDATA_PROOF_BYTES, &proof), 0);
	hmac_of(p, fd, p->keys.server, expected);
	assert_memory_equal(proof.hmac, expected, sizeof(expected));
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	return fd;
}

/* A record that holds an ECHO of `bytes`. */
static size_t echo_record(uint8_t *out, uint32_t bytes, uint64_t sequence)
{
	const struct msg_header h = { .type = MSG_ECHO, .length = bytes, .sequence = sequence };

	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = bytes }, out);
	memset(out + RECORD_HEADER_BYTES, 0x5a, bytes);
	msg_encode(&h, out + RECORD_HEADER_BYTES);
	return RECORD_HEADER_BYTES + bytes;
}

/* Several of 64 bytes, numbered from 1. */
static size_t echo_records(uint8_t *out, uint64_t n)
{
	size_t bytes = 0;

	for (uint64_t i = 1; i <= n; i++)
		bytes += echo_record(out + bytes, 64, i);
	return bytes;
}

/* A record of `bytes`, whose first message is `message` long and has this header. */
static void assert_message(const uint8_t *record, uint32_t bytes, uint32_t message, enum msg_type type,
			   uint16_t credits, uint64_t sequence)
{
	struct msg_header h;
	struct record r;

	assert_int_equal(record_decode(record, 1024, &r), 0);
	assert_int_equal(r.kind, RECORD_MESSAGES);
	assert_int_equal(r.bytes, bytes);
	assert_int_equal(msg_decode(record + RECORD_HEADER_BYTES, message, &h), 0);
	assert_int_equal(h.type, type);
	assert_int_equal(h.credits, credits);
	assert_int_equal(h.sequence, sequence);
}

static void assert_reply(const uint8_t *record, uint32_t bytes, uint64_t sequence)
{
	assert_message(record, bytes, bytes, MSG_REPLY, 1, sequence);
}

static void assert_left(enum close_reason reason)
{
	server_until(server_n(CONN_ST_LIVE) == 0);
	server_turns(2);
	assert_int_equal(server_closed(reason), 1);
	assert_buffers_back();
	server_assert_all_back();
}

static size_t bye_record(uint8_t *out)
{
	record_encode(&(struct record){ .kind = RECORD_BYE }, out);
	return RECORD_HEADER_BYTES;
}

TEST(tcp__proof_and_echoes__live_until_bye)
{
	uint8_t out[4 * 128], in[4 * 128];
	struct peer p;
	size_t n;
	int fd;

	start();
	fd = go_live(&p);
	/* As many as it has credits, at once. */
	n = echo_records(out, 4);
	give(fd, out, n);
	assert_int_equal(take(fd, in, n), n);
	for (uint64_t i = 0; i < 4; i++)
		assert_reply(in + i * (RECORD_HEADER_BYTES + 64), 64, i + 1);
	give(fd, out, bye_record(out));
	assert_int_equal(take(fd, in, 1), 0); /* the server closes first */
	assert_left(CLOSE_PEER_LEFT);
	close(fd);
}

TEST(tcp__ends_without_bye__left)
{
	struct linger none = { .l_onoff = 1 };
	struct peer p;

	start();
	close(go_live(&p));
	assert_left(CLOSE_PEER_LEFT);
	server_rig_again(state);
	start();
	setsockopt(go_live(&p), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	/* The last descriptor that was opened is the peer's. */
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);

		if (!getpeername(fd, (struct sockaddr *)&a, &len) && a.sin_family == AF_INET &&
		    ntohs(a.sin_port) == srv.shard->tcp_port)
			close(fd);
	}
	assert_left(CLOSE_PEER_LEFT);
}

GRANTED_TEST(tcp__proof_in_parts__live)
{
	uint8_t bytes[PROOF_BYTES];
	int fd;

	fd = dial(&granted);
	(void)proof_of(&granted, fd, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_int_equal(server_n(CONN_ST_LIVE), 0);
		give(fd, bytes + i, 1);
	}
	server_until(server_n(CONN_ST_LIVE) == 1);
	close(fd);
	assert_left(CLOSE_PEER_LEFT);
}

TEST(tcp__what_is_wrong_with_the_proof__rejected_with_a_code)
{
	static const struct { size_t flip; enum refuse_code code; bool session_stays; } cases[] = {
		{ RECORD_HEADER_BYTES + 4, REFUSE_BAD_SESSION, true },
		{ PROOF_BYTES - 1, REFUSE_BAD_HMAC, false },
		{ 4, REFUSE_BAD_REQUEST, true },			/* the record's kind */
		{ RECORD_HEADER_BYTES, REFUSE_BAD_REQUEST, true },	/* the version */
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t bytes[PROOF_BYTES];
		struct peer p;
		int fd;

		start_granted(&p);
		fd = dial(&p);
		(void)proof_of(&p, fd, bytes);
		bytes[cases[i].flip] ^= 0x40;
		give(fd, bytes, sizeof(bytes));
		assert_rejected(fd, cases[i].code);
		assert_int_equal(server_n(CONN_ST_GRANTED), cases[i].session_stays);
		if (cases[i].session_stays)
			server_expire(server_only(CONN_ST_GRANTED));
		server_assert_all_back();
		server_rig_again(state);
	}
}

TEST(tcp__session_used_twice__the_second_is_rejected)
{
	struct peer p;
	int fd, again;

	start();
	fd = go_live(&p);
	again = dial(&p);
	give_proof(&p, again);
	assert_rejected(again, REFUSE_BAD_SESSION);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	close(fd);
	assert_left(CLOSE_PEER_LEFT);
}

TEST(tcp__session_of_an_rdma_client__rejected)
{
	struct peer p, q;
	int fd;

	start();
	peer_get_grant(&p, 0);
	get_tcp_grant(&q);
	p.grant.rdma = q.grant.rdma;
	fd = dial(&p);
	give_proof(&p, fd);
	assert_rejected(fd, REFUSE_BAD_SESSION);
	server_expire(server_only(CONN_ST_GRANTED));
	server_assert_all_back();
}

GRANTED_TEST(rdma__session_of_a_tcp_client__rejected)
{
	peer_prove(&granted);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 0);
	assert_int_equal(peer_reject_code(), REFUSE_BAD_SESSION);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_REFUSED, REFUSE_BAD_SESSION), 1);
	assert_int_equal(server_closed(CLOSE_REFUSED), 1);
	assert_buffers_back();
	server_assert_all_back();
}

GRANTED_TEST(tcp__another_address_than_tls__rejected)
{
	int fd;

	fd = dial_from_another(&granted);
	give_proof(&granted, fd);
	assert_rejected(fd, REFUSE_BAD_ADDRESS);
	server_assert_all_back();
}

/* With something unread the server's end would be a reset, which may overtake the code. */
GRANTED_TEST(tcp__rejected_with_a_message_behind_the_proof__ends_in_order)
{
	uint8_t bytes[PROOF_BYTES + 4 * 1024] = { 0 }, in[RECORD_HEADER_BYTES + PDATA_REJECT_BYTES];
	int fd;

	fd = dial(&granted);
	proof_of(&granted, fd, bytes);
	bytes[PROOF_BYTES - 1] ^= 1;
	give(fd, bytes, sizeof(bytes));
	assert_int_equal(recv(fd, in, sizeof(in), MSG_DONTWAIT), sizeof(in));
	assert_int_equal(recv(fd, in, 1, MSG_DONTWAIT), 0);
	assert_int_equal(server_refused(REFUSE_BAD_HMAC), 1);
	close(fd);
	server_turns(2);
	server_assert_all_back();
}

TEST(tcp__shows_nothing_or_leaves__counted_and_closed)
{
	struct peer p;
	uint8_t byte = 0;
	int silent, left;

	srv.cfg.handshake_timeout_ns = 50 * NS_PER_MS;
	start_granted(&p);
	left = dial(&p);
	give(left, &byte, 1);
	close(left);
	server_until(server_failed(STAGE_SOCKET_CONNECT, FAIL_CLOSED, 0) == 1);
	silent = dial(&p);
	server_until(server_failed(STAGE_SOCKET_CONNECT, FAIL_TIMEOUT, 0) == 1);
	assert_int_equal(take(silent, &byte, 1), 0);
	close(silent);
	server_expire(server_only(CONN_ST_GRANTED));
	server_assert_all_back();
}

/* max_handshakes is 16: the seventeenth takes the place of the oldest, which was silent for longest. */
GRANTED_TEST(tcp__more_arrivals_than_room__the_oldest_goes)
{
	int fds[17];
	uint8_t byte;

	for (size_t i = 0; i < N_ELEMENTS(fds); i++) {
		fds[i] = dial(&granted);
		server_turns(2);
	}
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 1);
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1);
	give_proof(&granted, fds[16]);
	server_until(server_n(CONN_ST_LIVE) == 1);
	/* Clients that are left are closed with the shard. */
	arrive_close(srv.shard);
	assert_int_equal(take(fds[1], &byte, 1), 0);
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		close(fds[i]);
	assert_left(CLOSE_PEER_LEFT);
}

/* Two addresses have half of the room each: a newcomer takes the place of one of its own address, whichever came
 * first. */
GRANTED_TEST(tcp__two_addresses_with_as_many__a_newcomer_costs_only_its_own)
{
	uint8_t byte;
	int fds[16], others[2];

	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		fds[i] = i < 8 ? dial(&granted) : dial_from_another(&granted);
	others[0] = dial_from_another(&granted);
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 1);
	assert_int_equal(recv(fds[8], &byte, 1, MSG_DONTWAIT), 0);
	others[1] = dial(&granted);
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 2);
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
	for (size_t i = 1; i < N_ELEMENTS(fds); i++)
		if (i != 8)
			assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		close(fds[i]);
	close(others[0]);
	close(others[1]);
	server_expire(server_only(CONN_ST_GRANTED));
	server_assert_all_back();
}

static size_t push_record(uint8_t *out, uint64_t sequence, const struct msg_push *push)
{
	const struct msg_header h = { .type = MSG_PUSH, .length = MSG_HEADER_BYTES + MSG_PUSH_BYTES,
				      .sequence = sequence };

	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = h.length }, out);
	msg_encode(&h, out + RECORD_HEADER_BYTES);
	msg_put_push(push, out + RECORD_HEADER_BYTES);
	return RECORD_HEADER_BYTES + h.length;
}

/* The largest that fits a record, one byte, and several at once: each behind its PUSHED, and of its own sequence. */
TEST(tcp__push__so_many_bytes_behind_the_answer)
{
	uint8_t out[128], in[8192];
	uint32_t most;
	struct peer p;
	int fd;

	start();
	most = (uint32_t)srv.cfg.message_bytes - MSG_HEADER_BYTES;
	fd = go_live(&p);
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t sequence = 254 + i;
		uint32_t bytes = i % 2 ? 1 : most;

		give(fd, out, push_record(out, sequence, &(struct msg_push){ .bytes = bytes }));
		assert_int_equal(take(fd, in, RECORD_HEADER_BYTES + MSG_HEADER_BYTES + bytes),
				 RECORD_HEADER_BYTES + MSG_HEADER_BYTES + bytes);
		assert_message(in, MSG_HEADER_BYTES + bytes, MSG_HEADER_BYTES, MSG_PUSHED, 1, sequence);
		for (uint32_t k = 0; k < bytes; k++)
			assert_int_equal(in[RECORD_HEADER_BYTES + MSG_HEADER_BYTES + k], msg_pushed_byte(sequence, k));
	}
	close(fd);
	assert_left(CLOSE_PEER_LEFT);
}

TEST(tcp__push_beyond_a_record_or_of_memory__dropped)
{
	const uint32_t beyond = (uint32_t)srv.cfg.message_bytes - MSG_HEADER_BYTES + 1;
	const struct msg_push wrong[] = { { .bytes = beyond }, { .bytes = UINT32_MAX }, { .bytes = 0 },
					  { .bytes = 1, .region_offset = 1 }, { .bytes = 1, .window_offset = 1 } };
	uint8_t out[128];
	struct peer p;
	int fd;

	start();
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
		fd = go_live(&p);
		give(fd, out, push_record(out, 1, &wrong[i]));
		server_until(server_n(CONN_ST_LIVE) == 0);
		assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE), i + 1);
		close(fd);
	}
	assert_buffers_back();
}

TEST(tcp__more_than_its_credits__dropped)
{
	uint8_t out[5 * 128];
	struct peer p;
	int fd;

	start();
	fd = go_live(&p);
	give(fd, out, echo_records(out, 5));
	server_until(server_n(CONN_ST_LIVE) == 0);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_CREDITS), 1);
	assert_left(CLOSE_FAILED);
	close(fd);
}

TEST(tcp__records_that_are_not_allowed__dropped)
{
	static const struct { struct record r; int code; } cases[] = {
		{ { RECORD_MESSAGES, 1025, 0 }, PROTO_BAD_FRAME }, { { RECORD_PROOF, 0, 0 }, PROTO_BAD_FRAME },
		{ { RECORD_REJECT, 0, 0 }, PROTO_BAD_FRAME }, { { RECORD_MESSAGES, 0, 0 }, PROTO_BAD_MESSAGE },
		{ { RECORD_MESSAGES, 1, 0 }, PROTO_BAD_MESSAGE },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t out[RECORD_HEADER_BYTES + 1] = { 0 };
		struct peer p;
		int fd;

		start();
		fd = go_live(&p);
		record_encode(&cases[i].r, out);
		give(fd, out, RECORD_HEADER_BYTES + (cases[i].r.bytes == 1));
		server_until(server_n(CONN_ST_LIVE) == 0);
		assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, cases[i].code), 1);
		assert_left(CLOSE_FAILED);
		close(fd);
		server_rig_again(state);
	}
}

/* The server has no turn. */
static void say_over_tls(struct peer *p, const uint8_t *data, size_t n)
{
	size_t put;

	assert_int_equal(tls_write(p->tls, data, n, &put), TLS_DONE);
	assert_int_equal(put, n);
	assert_int_equal(tls_flush(p->tls), TLS_DONE);
}

static void give_over_tls(struct peer *p, const uint8_t *data, size_t n)
{
	say_over_tls(p, data, n);
	server_turns(3);
}

static size_t take_over_tls(struct peer *p, uint8_t *out, size_t n)
{
	size_t have = 0, got;

	for (int i = 0; i < 1000 && have < n; i++) {
		enum tls_status st = tls_read(p->tls, out + have, n - have, &got);

		if (st == TLS_EOF || st == TLS_FAILED)
			break;
		have += st == TLS_DONE ? got : 0;
		server_turn();
	}
	return have;
}

TEST(tls__goes_on_after_the_grant__echoes_until_bye)
{
	uint8_t out[128], in[128];
	struct peer p;
	size_t n;

	start();
	get_grant(&p, FRAME_FEATURE_TLS);
	server_until(server_n(CONN_ST_LIVE) == 1);
	for (uint64_t i = 1; i <= 20; i++) {
		n = echo_record(out, 100, i);
		give_over_tls(&p, out, n);
		assert_int_equal(take_over_tls(&p, in, n), n);
		assert_reply(in, 100, i);
	}
	give_over_tls(&p, out, bye_record(out));
	assert_int_equal(take_over_tls(&p, in, 1), 0);
	peer_abort(&p);
	assert_left(CLOSE_PEER_LEFT);
}

/* The first record may come with the HELLO's last bytes, ahead of the GRANT. */
TEST(tls__records_before_the_grant_was_read__answered)
{
	uint8_t hello[FRAME_HELLO_BYTES], both[FRAME_HELLO_BYTES + 128], in[128];
	struct peer p;
	size_t n;

	start();
	peer_shake_hands(&p);
	memcpy(both, hello, peer_encode_hello(hello, 64, 4, FRAME_FEATURE_TLS, 0));
	n = echo_record(both + FRAME_HELLO_BYTES, 64, 9);
	peer_send(&p, both, FRAME_HELLO_BYTES + n);
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	assert_int_equal(take_over_tls(&p, in, n), n);
	assert_reply(in, 64, 9);
	peer_close(&p);
	assert_left(CLOSE_PEER_LEFT);
}

TEST(tls__kept_open_beside_handshakes__counts_no_longer_as_one)
{
	struct peer p;

	start();
	get_grant(&p, FRAME_FEATURE_TLS);
	server_until(server_n(CONN_ST_LIVE) == 1);
	assert_int_equal(srv.shard->tls_open, 0);
	peer_abort(&p);
	assert_left(CLOSE_PEER_LEFT);
}

/* A live client over either. */
static struct client {
	struct peer peer;
	int fd;			/* -1: over TLS */
} client;

static const uint16_t by_tcp = FRAME_FEATURE_TCP, by_tls = FRAME_FEATURE_TLS;

/* *state: the feature bit. */
static int join(void **state)
{
	int ret = server_rig_init(state);

	start();
	client.fd = -1;
	if (*(const uint16_t *)*state == FRAME_FEATURE_TCP)
		client.fd = go_live(&client.peer);
	else
		get_grant(&client.peer, FRAME_FEATURE_TLS);
	server_until(server_n(CONN_ST_LIVE) == 1);
	return ret;
}

/* The server has no turn. */
static void say(const uint8_t *data, size_t n)
{
	if (client.fd >= 0)
		assert_int_equal(send(client.fd, data, n, MSG_NOSIGNAL), n);
	else
		say_over_tls(&client.peer, data, n);
}

static size_t hear(uint8_t *out, size_t n)
{
	return client.fd >= 0 ? take(client.fd, out, n) : take_over_tls(&client.peer, out, n);
}

static void leave(void)
{
	if (client.fd >= 0)
		close(client.fd);
	else
		peer_abort(&client.peer);
}

static void leave_and_assert(void)
{
	leave();
	assert_left(CLOSE_DRAINING);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 0);
}

/* The next record is a header alone. */
static void assert_header(enum msg_type type, uint16_t credits, uint64_t sequence)
{
	uint8_t bytes[RECORD_HEADER_BYTES + MSG_HEADER_BYTES];

	assert_int_equal(hear(bytes, sizeof(bytes)), sizeof(bytes));
	assert_message(bytes, MSG_HEADER_BYTES, MSG_HEADER_BYTES, type, credits, sequence);
}

static void assert_goodbye(void)
{
	assert_header(MSG_GOODBYE, 0, REFUSE_DRAINING);
}

/* As many as there are credits. */
static void ask_all(void)
{
	uint8_t out[4 * 128];

	say(out, echo_records(out, 4));
}

static void assert_all_answered(void)
{
	uint8_t in[RECORD_HEADER_BYTES + 64];

	for (uint64_t i = 1; i <= 4; i++) {
		assert_int_equal(hear(in, sizeof(in)), sizeof(in));
		assert_reply(in, 64, i);
	}
}

/* One way: it does not ask for its credit. */
static void say_data(uint64_t sequence)
{
	uint8_t out[128];
	size_t n = echo_record(out, 64, sequence);

	out[RECORD_HEADER_BYTES] = MSG_DATA;
	say(out, n);
}

#define OVER(where, feature, f) { where ": " #f, f, join, server_rig_stop, (void *)&(feature) }
#define OVER_BOTH(f) TEST_CASES(f, OVER("tcp", by_tcp, f), OVER("tls", by_tls, f))

OVER_BOTH(drain__idle_client__told_and_waited_for)
{
	uint8_t bye[RECORD_HEADER_BYTES], byte;

	server_drain();
	assert_goodbye();
	server_turns(4);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	assert_false(server_is_over());
	say(bye, bye_record(bye));
	assert_int_equal(hear(&byte, 1), 0); /* nothing more but the end */
	server_until(server_is_over());
	leave_and_assert();
}

OVER_BOTH(drain__requests_arrived__answered_before_the_goodbye)
{
	ask_all();
	server_drain();
	assert_all_answered();
	assert_goodbye();
	leave_and_assert();
}

OVER_BOTH(drain__requests_still_arriving__answered)
{
	server_drain();
	ask_all();
	assert_goodbye();
	assert_all_answered();
	assert_false(server_is_over());
	leave_and_assert();
}

/* The client would wait for them, and cannot ask for them any more. */
OVER_BOTH(drain__one_way_messages_owed__credits_come_back)
{
	say_data(7);
	say_data(8);
	server_drain();
	assert_header(MSG_CREDIT, 2, 8);
	assert_goodbye();
	say_data(9);
	assert_header(MSG_CREDIT, 1, 9);
	leave_and_assert();
}

OVER_BOTH(drain__no_buffer__told_when_there_is_one)
{
	struct ep_counts counts;
	uint32_t *bufs, n = 0;

	ep_get_counts(srv.shard->sock_ep, &counts);
	bufs = calloc(counts.bufs_total, sizeof(*bufs));
	while (n < counts.bufs_free)
		bufs[n++] = ep_buf_get(srv.shard->sock_ep);
	shard_drain(srv.shard);
	for (int i = 0; i < 5; i++)
		server_wait();
	assert_false(server_only(CONN_ST_LIVE)->told);
	while (n)
		ep_buf_put(srv.shard->sock_ep, bufs[--n]);
	free(bufs);
	server_until(server_only(CONN_ST_LIVE)->told);
	assert_goodbye();
	leave_and_assert();
}

OVER_BOTH(drain__client_stays__cut_off_at_the_deadline)
{
	uint64_t begun_ns;
	uint8_t byte;

	srv.cfg.drain_timeout_ns = 200 * NS_PER_MS;
	begun_ns = clock_now_ns();
	server_drain();
	assert_goodbye();
	while (!server_is_over()) {
		assert_true(clock_now_ns() - begun_ns < 5 * NS_PER_S);
		server_wait();
	}
	assert_true(clock_now_ns() - begun_ns >= 200 * NS_PER_MS);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	/* The last action of its thread. */
	shard_release(srv.shard);
	assert_int_equal(server_closed(CLOSE_DRAINING), 1);
	assert_int_equal(recv(client.fd >= 0 ? client.fd : tls_fd(client.peer.tls), &byte, 1, MSG_DONTWAIT), 0);
	if (client.fd >= 0)
		close(client.fd);
	peer_forget(&client.peer);
}

/* Nobody of them has a connection yet that could be told anything. */
GRANTED_TEST(drain__strangers_and_granted_ones__closed_at_once)
{
	uint8_t byte;
	int silent, late = socket(AF_INET, SOCK_STREAM, 0);

	silent = dial(&granted);
	shard_drain(srv.shard);
	server_turns(2);
	assert_int_equal(recv(silent, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(connect(late, (const struct sockaddr *)&granted.grant.rdma.ss, granted.grant.rdma.len), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(server_closed(CLOSE_DRAINING), 1);
	server_until(server_is_over());
	server_assert_all_back();
	close(silent);
	close(late);
}

TEST(accept__no_descriptor_left__pauses_and_goes_on)
{
	uint8_t echo[128], in[128];
	uint64_t begun_ns, before, waits = 0, ms;
	struct peer p, q;
	int live, fd;
	size_t n;

	start();
	live = go_live(&p);
	get_tcp_grant(&q);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	server_log_keep();
	before = unit_limit_descriptors(0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&q.grant.rdma.ss, q.grant.rdma.len), 0);
	/* It tries again now and then, and sleeps meanwhile, but for the rig's tick. */
	begun_ns = clock_now_ns();
	do {
		server_wait();
		waits++;
		ms = (clock_now_ns() - begun_ns) / NS_PER_MS;
	} while (ms < 250);
	assert_in_range(waits, 1, 10 + ms / 5);
	n = echo_record(echo, 64, 1);
	give(live, echo, n);
	assert_int_equal(take(live, in, n), n);
	assert_reply(in, 64, 1);
	unit_limit_descriptors(before);
	server_log_assert_a_line_a_second();
	give_proof(&q, fd);
	server_until(server_n(CONN_ST_LIVE) == 2);
	close(live);
	close(fd);
	server_until(server_n(CONN_ST_LIVE) == 0);
	assert_buffers_back();
	server_assert_all_back();
}

TEST(transports__not_served__refused_with_the_option)
{
	srv.cfg.transport_mask = 1u << TRANSPORT_RDMA;
	server_rig_start();
	peer_refused_hello(64, 4, FRAME_FEATURE_TCP, 0, REFUSE_UNSUPPORTED,
			   "--transports of the server leaves tcp out");
	peer_refused_hello(64, 4, FRAME_FEATURE_TLS, 0, REFUSE_UNSUPPORTED,
			   "--transports of the server leaves tls out");
	assert_null(srv.shard->sock_ep);
	server_assert_all_back();
}

#define ANSWER_BYTES (128u << 10)
#define LEAST_BYTES (3u * 60 * 1024)	/* that a client takes in three intervals of 60 s */

/* As if the interval of the probe had passed, in which the client's kernel acknowledged so many bytes. */
static void probe_interval(uint64_t acked_bytes)
{
	srv.acked_bytes += acked_bytes;
	for (int i = 0; i < 64; i++) {
		ev_invoke(srv.shard->loop, &srv.shard->probe, EV_TIMER);
		ev_timer_stop(srv.shard->loop, &srv.shard->probe);
	}
	server_turns(2);
}

/* A client that asked for more than the kernel holds, and reads nothing. */
static int ask_and_do_not_read(void)
{
	static uint8_t out[RECORD_HEADER_BYTES + ANSWER_BYTES];
	struct peer p;
	int fd;

	srv.cfg.message_bytes = ANSWER_BYTES;
	srv.cfg.probe_interval_ns = 60 * NS_PER_S;
	srv.cfg.sock.tcp.send_buffer = 4096;
	start();
	ev_timer_stop(srv.shard->loop, &srv.shard->probe);
	fd = go_live(&p);
	for (uint64_t i = 0; i < 4; i++)
		give(fd, out, echo_record(out, ANSWER_BYTES, i + 1));
	server_until(server_only(CONN_ST_LIVE)->link.sock.blocked);
	return fd;
}

TEST(reader__takes_nothing_or_too_little__reset_after_three_intervals)
{
	static uint8_t in[ANSWER_BYTES];

	for (int takes = 0; takes < 2; takes++) {
		int fd = ask_and_do_not_read();

		probe_interval(1000000);
		for (int i = 0; i < 2; i++)
			probe_interval((uint64_t)takes);
		assert_int_equal(server_n(CONN_ST_LIVE), 1);
		probe_interval(takes ? LEAST_BYTES - 3 : 0);
		assert_int_equal(server_n(CONN_ST_LIVE), 0);
		assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_NOT_RECEIVING), takes);
		assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_TIMEOUT, 0), !takes);
		/* Data that the kernel had not sent yet are gone, too. */
		while (recv(fd, in, sizeof(in), MSG_DONTWAIT) > 0)
			;
		assert_int_equal(errno, ECONNRESET);
		close(fd);
		assert_buffers_back();
		server_rig_again(state);
	}
}

TEST(reader__takes_enough__left_alone)
{
	static uint8_t in[4 * (RECORD_HEADER_BYTES + ANSWER_BYTES)];
	int fd = ask_and_do_not_read();

	for (int i = 0; i < 10; i++) {
		probe_interval(i % 3 ? 0 : LEAST_BYTES);
		assert_int_equal(server_n(CONN_ST_LIVE), 1);
	}
	/* It has taken all: from now on it is not expected to take anything. */
	for (size_t have = 0, i = 0; have < sizeof(in) && i < 5000; i++) {
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);

		have += n > 0 ? (size_t)n : 0;
		server_wait();
	}
	server_until(!server_only(CONN_ST_LIVE)->link.sock.blocked);
	for (int i = 0; i < 5; i++)
		probe_interval(0);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	close(fd);
	assert_left(CLOSE_PEER_LEFT);
}

static size_t resident_bytes(void)
{
	const struct ep *ep = srv.shard->sock_ep;
	static unsigned char in_core[16384];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;

	assert_in_range(ep->slab_bytes / page, 1, sizeof(in_core) - 1);
	assert_int_equal(mincore(ep->slab, ep->slab_bytes, in_core), 0);
	for (size_t i = 0; i < sizeof(in_core); i++)
		n += in_core[i] & 1;
	return n * page;
}

TEST(buffers__their_client_has_left__memory_given_back)
{
	uint64_t since;

	close(ask_and_do_not_read());
	assert_true(resident_bytes() > EP_KEPT_BYTES);
	since = clock_now_ns();
	while (resident_bytes() > EP_KEPT_BYTES && clock_now_ns() - since < 5 * NS_PER_S)
		server_wait();
	assert_in_range(resident_bytes(), 0, EP_KEPT_BYTES);
	assert_left(CLOSE_PEER_LEFT);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
