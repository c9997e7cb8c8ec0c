/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/socket.c: connections whose messages go over TCP and TLS, against a scripted server. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls/tls.h"
#include "common/wire/msg.h"
#include "common/wire/record.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

#define PROOF_BYTES (RECORD_HEADER_BYTES + PDATA_PROOF_BYTES)

static int data_listener, data_fd;	/* of the scripted server, over TCP */

static int set_up(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	data_fd = -1;
	data_listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(data_listener, (struct sockaddr *)&a, sizeof(a)) || listen(data_listener, 4))
		return -1;
	return client_rig_init(state);
}

static int tear_down(void **state)
{
	close(data_listener);
	if (data_fd >= 0)
		close(data_fd);
	return client_rig_stop(state);
}

/* Up to the GRANT, which is sent. */
static struct client_conn *granted_at(const char *host, enum transport t)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	struct client_conn *c;

	cli.cfg.transport = t;
	cli.cfg.region = false;
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.psn, 0);
	assert_int_equal(cli.hello.features, t == TRANSPORT_TCP ? FRAME_FEATURE_TCP : FRAME_FEATURE_TLS);
	script_default_grant();
	cli.grant.psn = 0;
	assert_int_equal(getsockname(data_listener, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(addr_parse(host, ntohs(a.sin_port), &cli.grant.rdma), 0);
	script_grant();
	return c;
}

static struct client_conn *granted(enum transport t)
{
	return granted_at("127.0.0.1", t);
}

static void take(uint8_t *out, size_t n)
{
	size_t have = 0;

	for (int i = 0; i < 1000 && have < n; i++) {
		ssize_t got = recv(data_fd, out + have, n - have, MSG_DONTWAIT);

		have += got > 0 ? (size_t)got : 0;
		client_turn();
	}
	assert_int_equal(have, n);
}

static void give(const void *data, size_t n)
{
	assert_int_equal(send(data_fd, data, n, MSG_NOSIGNAL), n);
	client_turn();
	client_turn();
}

/* The client's connection and its proof, which is checked. */
static struct client_conn *proven(void)
{
	struct client_conn *c = granted(TRANSPORT_TCP);
	uint8_t bytes[PROOF_BYTES], expected[AUTH_HMAC_BYTES];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr peer;
	struct auth_binding b = { .session = cli.grant.session, .client = &peer, .server = &cli.grant.rdma };
	struct pdata_proof proof;
	struct record r;

	client_until(c->state == CLIENT_ST_SOCKET_CONNECT);
	data_fd = accept(data_listener, (struct sockaddr *)&ss, &len);
	assert_true(data_fd >= 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &peer), 0);
	take(bytes, sizeof(bytes));
	assert_int_equal(record_decode(bytes, 64, &r), 0);
	assert_int_equal(r.kind, RECORD_PROOF);
	assert_int_equal(pdata_decode_proof(PDATA_REQUEST, bytes + RECORD_HEADER_BYTES, PDATA_PROOF_BYTES, &proof), 0);
	assert_memory_equal(proof.session, cli.grant.session, sizeof(proof.session));
	assert_int_equal(auth_hmac(NULL, cli.keys.client, &b, expected), 0);
	assert_memory_equal(proof.hmac, expected, sizeof(expected));
	return c;
}

static void answer(uint8_t flip)
{
	uint8_t bytes[PROOF_BYTES];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr peer;
	struct auth_binding b = { .session = cli.grant.session, .client = &peer, .server = &cli.grant.rdma };
	struct pdata_proof proof;

	assert_int_equal(getpeername(data_fd, (struct sockaddr *)&ss, &len), 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &peer), 0);
	memcpy(proof.session, cli.grant.session, sizeof(proof.session));
	assert_int_equal(auth_hmac(NULL, cli.keys.server, &b, proof.hmac), 0);
	proof.hmac[7] ^= flip;
	record_encode(&(struct record){ .kind = RECORD_PROOF, .bytes = PDATA_PROOF_BYTES }, bytes);
	pdata_encode_proof(PDATA_REPLY, &proof, bytes + RECORD_HEADER_BYTES);
	give(bytes, sizeof(bytes));
}

static size_t message(uint8_t *out, enum msg_type type, uint32_t bytes, uint64_t sequence)
{
	const struct msg_header h = { .type = type, .credits = type == MSG_REPLY, .length = bytes,
				      .sequence = sequence };

	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = bytes }, out);
	memset(out + RECORD_HEADER_BYTES, 0, bytes);
	msg_encode(&h, out + RECORD_HEADER_BYTES);
	return RECORD_HEADER_BYTES + bytes;
}

static struct client_conn *live_over_tcp(void)
{
	struct client_conn *c = proven();
	uint8_t bytes[256];

	answer(0);
	client_until(c->state == CLIENT_ST_FIRST_REPLY);
	take(bytes, RECORD_HEADER_BYTES + MSG_HEADER_BYTES);
	give(bytes, message(bytes, MSG_REPLY, MSG_HEADER_BYTES, 0));
	client_until(cli.live == 1);
	return c;
}

TEST(tcp__to_live_and_closed__server_closes_first)
{
	struct client_conn *c = live_over_tcp();
	uint8_t bytes[256];
	struct record r;

	assert_true(c->stage_ns[STAGE_SOCKET_CONNECT] > 0);
	assert_int_equal(c->stage_ns[STAGE_RDMA_CONNECT], 0);
	client_rig_send(c, 100, 5);
	take(bytes, RECORD_HEADER_BYTES + 100);
	give(bytes, message(bytes, MSG_REPLY, 100, 5));
	client_until(cli.messages == 1);
	assert_int_equal(cli.sequence, 5);
	client_close(c);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	take(bytes, RECORD_HEADER_BYTES);
	assert_int_equal(record_decode(bytes, 64, &r), 0);
	assert_int_equal(r.kind, RECORD_BYE);
	/* Until the server closes; what still comes is dropped. */
	give(bytes, message(bytes, MSG_REPLY, 100, 6));
	assert_int_equal(cli.closed, 0);
	close(data_fd);
	data_fd = -1;
	client_until(cli.closed == 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	assert_int_equal(cli.messages, 1);
	client_assert_all_back();
}

TEST(tcp__server_does_not_close__closed_after_the_deadline)
{
	struct client_conn *c = live_over_tcp();

	client_close(c);
	client_expire(c);
	client_until(cli.closed == 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

TEST(tcp__server_closes_a_live_connection__closed_by_peer)
{
	live_over_tcp();
	close(data_fd);
	data_fd = -1;
	client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, 0);
	assert_int_equal(cli.lost, 1);
}

/* A server's PUSHED with `bytes` behind it. */
static size_t pushed(uint8_t *out, uint32_t bytes, uint64_t sequence)
{
	const struct msg_header h = { .type = MSG_PUSHED, .credits = 1, .length = MSG_HEADER_BYTES,
				      .sequence = sequence };

	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = MSG_HEADER_BYTES + bytes }, out);
	msg_encode(&h, out + RECORD_HEADER_BYTES);
	for (uint32_t i = 0; i < bytes; i++)
		out[RECORD_HEADER_BYTES + MSG_HEADER_BYTES + i] = msg_pushed_byte(sequence, i);
	return RECORD_HEADER_BYTES + MSG_HEADER_BYTES + bytes;
}

TEST(tcp__push__the_bytes_behind_the_answer)
{
	struct client_conn *c = live_over_tcp();
	uint8_t bytes[512];
	struct msg_push push;

	client_push(c, &(struct msg_push){ .bytes = 300 }, 77);
	assert_int_equal(client_in_flight(c), 1);
	take(bytes, RECORD_HEADER_BYTES + MSG_HEADER_BYTES + MSG_PUSH_BYTES);
	msg_get_push(bytes + RECORD_HEADER_BYTES, &push);
	assert_int_equal(push.bytes, 300);
	give(bytes, pushed(bytes, 300, 77));
	client_until(cli.pushed == 1);
	assert_int_equal(cli.sequence, 77);
	assert_int_equal(cli.pushed_bytes, 300);
	assert_int_equal(client_in_flight(c), 0);
	/* Nobody asked for this one. */
	give(bytes, pushed(bytes, 300, 78));
	client_until(cli.closed == 1);
	assert_int_equal(cli.pushed, 1);
}

TEST(tcp__goodbye__draining)
{
	uint8_t bytes[256];

	live_over_tcp();
	give(bytes, message(bytes, MSG_GOODBYE, MSG_HEADER_BYTES, REFUSE_DRAINING));
	client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, REFUSE_DRAINING);
	assert_int_equal(cli.draining, 1);
}

TEST(tcp__wrong_proof__refused_by_the_client)
{
	proven();
	answer(1);
	client_assert_failed(STAGE_SOCKET_CONNECT, FAIL_PROTOCOL, PROTO_BAD_PROOF);
}

TEST(tcp__rejected__with_the_code)
{
	uint8_t bytes[RECORD_HEADER_BYTES + PDATA_REJECT_BYTES];

	proven();
	record_encode(&(struct record){ .kind = RECORD_REJECT, .bytes = PDATA_REJECT_BYTES }, bytes);
	pdata_encode_reject(REFUSE_BAD_SESSION, bytes + RECORD_HEADER_BYTES);
	give(bytes, sizeof(bytes));
	client_assert_failed(STAGE_SOCKET_CONNECT, FAIL_REFUSED, REFUSE_BAD_SESSION);
}

TEST(tcp__messages_in_the_place_of_a_proof__bad_proof)
{
	uint8_t bytes[256];

	proven();
	give(bytes, message(bytes, MSG_REPLY, 52, 0));
	client_assert_failed(STAGE_SOCKET_CONNECT, FAIL_PROTOCOL, PROTO_BAD_PROOF);
}

TEST(tcp__proof_or_bye_when_live__bad_frame)
{
	static const enum record_kind kinds[] = { RECORD_PROOF, RECORD_REJECT, RECORD_BYE };

	for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
		uint8_t bytes[RECORD_HEADER_BYTES];

		if (i) {
			close(data_fd);
			client_rig_again(state);
		}
		live_over_tcp();
		record_encode(&(struct record){ .kind = kinds[i] }, bytes);
		give(bytes, sizeof(bytes));
		client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_FRAME);
	}
}

TEST(tcp__nobody_listens__the_errno)
{
	struct client_conn *c;

	cli.cfg.transport = TRANSPORT_TCP;
	cli.cfg.region = false;
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	(void)c;
	script_default_grant();
	cli.grant.psn = 0;
	addr_set_port(&cli.grant.rdma, 1);
	script_grant();
	client_assert_failed(STAGE_SOCKET_CONNECT, FAIL_ERRNO, ECONNREFUSED);
}

TEST(tcp__no_answer__timeout)
{
	struct client_conn *c = proven();

	client_expire(c);
	client_assert_failed(STAGE_SOCKET_CONNECT, FAIL_TIMEOUT, 0);
}

static void take_over_tls(uint8_t *out, size_t n)
{
	size_t have = 0, got;

	for (int i = 0; i < 1000 && have < n; i++) {
		have += tls_read(cli.tls, out + have, n - have, &got) == TLS_DONE ? got : 0;
		client_turn();
	}
	assert_int_equal(have, n);
}

TEST(tls__to_live_and_closed__on_the_same_connection)
{
	struct client_conn *c = granted(TRANSPORT_TLS);
	uint8_t bytes[256];
	struct record r;

	client_until(c->state == CLIENT_ST_FIRST_REPLY);
	take_over_tls(bytes, RECORD_HEADER_BYTES + MSG_HEADER_BYTES);
	script_send(bytes, message(bytes, MSG_REPLY, MSG_HEADER_BYTES, 0));
	client_until(cli.live == 1);
	assert_int_equal(c->stage_ns[STAGE_SOCKET_CONNECT], 0);
	client_close(c);
	take_over_tls(bytes, RECORD_HEADER_BYTES);
	assert_int_equal(record_decode(bytes, 64, &r), 0);
	assert_int_equal(r.kind, RECORD_BYE);
	script_hang_up();
	client_until(cli.closed == 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

TEST(tls__no_first_message__live_with_the_grant)
{
	cli.cfg.no_first_message = true;
	granted(TRANSPORT_TLS);
	client_until(cli.live == 1);
	script_hang_up();
	client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, 0);
}

TEST(grant__names_another_host__no_connection_is_made_to_it)
{
	granted_at("127.0.0.2", TRANSPORT_TCP);
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_REDIRECTED);
	client_rig_again(state);
	/* Messages stay on the connection that TLS has proved. */
	cli.cfg.no_first_message = true;
	granted_at("127.0.0.2", TRANSPORT_TLS);
	client_until(cli.live == 1);
	script_hang_up();
	client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, 0);
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
