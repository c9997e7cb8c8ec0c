/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/boot.c: what a client may say inside TLS, what it is answered, and how that ends. What it
 * gets: test_grant.c. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/wire/be.h"
#include "common/base/clock.h"
#include "common/wire/psn.h"
#include "common/rdma/region.h"
#include "common/tls/tls_internal.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static bool no_handover;	/* there is no memory for a control session on its way to the main thread */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	return no_handover && n == sizeof(struct handover) ? NULL : __real_malloc(n);
}

SERVED_TEST(hello__usual__grant_says_what_was_taken)
{
	struct peer p;
	struct conn *c;

	peer_ask_grant(&p, FRAME_FEATURE_REGION);
	c = server_only(CONN_ST_GRANTED);
	assert_int_equal(p.grant.psn, c->server_psn);
	assert_int_not_equal(p.grant.psn, p.psn);
	assert_int_equal(c->client_psn, p.psn);
	assert_int_equal(p.grant.message_bytes, 1024);
	assert_int_equal(p.grant.credits, 4);
	assert_int_equal(p.grant.features, FRAME_FEATURE_REGION);
	assert_true(addr_same_host(&p.grant.rdma, &srv.cfg.rails[0].addr));
	assert_int_equal(addr_port(&p.grant.rdma), 7472);
	assert_int_equal(p.grant.expires_ms, 30000);
	assert_int_equal(p.grant.region_bytes, 4096);
	assert_int_equal(p.grant.region_rkey, ibv_inc_rkey(fake_mw_last_rkey()));
	assert_memory_equal(p.grant.session, c->session, FRAME_SESSION_BYTES);
	assert_memory_equal(p.keys.client, c->keys.client, AUTH_KEY_BYTES);
	assert_memory_equal(p.keys.server, c->keys.server, AUTH_KEY_BYTES);
	assert_memory_not_equal(p.keys.client, p.keys.server, AUTH_KEY_BYTES);
	assert_int_equal(counter_get(&srv.shard->stats.granted), 1);
	/* The server says goodbye first and waits for the client's. */
	assert_int_equal(peer_answer(&p), 0);
	peer_close(&p);
	assert_null(c->io);
	conn_close(c, CLOSE_DRAINING);
}

TEST(hello__two_clients__nothing_in_common)
{
	struct peer a, b;

	server_start_granted(&a, FRAME_FEATURE_REGION);
	peer_get_grant(&b, FRAME_FEATURE_REGION);
	assert_memory_not_equal(a.grant.session, b.grant.session, FRAME_SESSION_BYTES);
	assert_memory_not_equal(a.keys.client, b.keys.client, AUTH_KEY_BYTES);
	assert_int_not_equal(a.grant.psn, b.grant.psn);
	assert_int_not_equal(a.grant.region_rkey, b.grant.region_rkey);
	assert_true(a.grant.region_addr != b.grant.region_addr);
	assert_int_equal(psn_in_use(srv.server.psns), 4);
}

TEST(hello__in_pieces__granted_all_the_same)
{
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;
	size_t n;

	server_start_hello(&p);
	n = peer_encode_hello(buf, 64, 4, 0, p.psn);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(server_n(CONN_ST_HELLO), 1);
		peer_send(&p, buf + i, 1);
	}
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	peer_close(&p);
}

TEST(hello__fewer_messages_wanted__fewer_credits)
{
	struct peer p;

	srv.peers_depth = 2;
	server_start_granted(&p, 0);
	assert_int_equal(p.grant.credits, 2);
	srv.peers_depth = 1000;
	peer_get_grant(&p, 0);
	assert_int_equal(p.grant.credits, 4);
	assert_int_equal(srv.shard->credits_granted, 6);
}

/* A peer whose PSN somebody else has. */
static struct conn *connect_in_conflict(struct peer *p)
{
	peer_shake_hands(p);
	assert_true(psn_reserve(srv.server.psns, p->psn));
	return server_only(CONN_ST_HELLO);
}

static void assert_conflict(struct peer *p)
{
	assert_int_equal(peer_say_hello(p, 0), FRAME_REFUSE);
	assert_int_equal(p->refuse.code, REFUSE_PSN_CONFLICT);
}

SERVED_TEST(hello__psn_in_use__conflict_then_granted_on_the_same_session)
{
	struct peer p;

	connect_in_conflict(&p);
	for (int i = 0; i < 3; i++) {
		assert_conflict(&p);
		server_only(CONN_ST_HELLO);
	}
	assert_int_equal(counter_get(&srv.shard->stats.psn_conflicts), 3);
	p.psn++;
	assert_int_equal(peer_say_hello(&p, 0), FRAME_GRANT);
	peer_close(&p);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	psn_release(srv.server.psns, p.psn - 1);
}

/* They have one --handshake-timeout together. */
SERVED_TEST(hello__conflicts_for_long__the_deadline_of_the_first_one_holds)
{
	struct peer p;
	struct conn *c = connect_in_conflict(&p);

	c->asked_ns -= srv.cfg.handshake_timeout_ns - 5 * NS_PER_S;
	assert_conflict(&p);
	assert_int_equal(c->state, CONN_ST_HELLO);
	assert_true(ev_timer_remaining(srv.shard->loop, &c->deadline) <= 5.);
	c->asked_ns -= 5 * NS_PER_S;
	assert_conflict(&p);
	server_until(server_n(CONN_ST_FREE) == srv.cfg.shard_conns);
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0), 1);
	peer_abort(&p);
	psn_release(srv.server.psns, p.psn);
}

SERVED_TEST(hello__conflict_without_end__closed_after_sixteen)
{
	struct peer p;
	int refusals = 0;

	connect_in_conflict(&p);
	for (; refusals < 30 && server_n(CONN_ST_HELLO); refusals++)
		assert_conflict(&p);
	assert_int_equal(refusals, 16);
	assert_int_equal(peer_answer(&p), 0);
	peer_close(&p);
	psn_release(srv.server.psns, p.psn);
}

SERVED_TEST(hello__psn_of_a_quarantined_connection__conflict)
{
	struct peer p, again;

	peer_go_live(&p, 0);
	peer_disconnect(&p);
	assert_int_equal(server_n(CONN_ST_LIVE), 0);
	peer_shake_hands(&again);
	again.psn = p.psn;
	assert_conflict(&again);
	again.psn = p.grant.psn;
	assert_conflict(&again);
	peer_close(&again);
}

/* Grants a connection that another HELLO shall follow. */
static void ask_for_more(struct peer *p)
{
	p->psn++;
	if (peer_say_hello(p, FRAME_FEATURE_MORE) != FRAME_GRANT)
		fail_msg("refused: %s", p->refuse.text);
	assert_int_equal(p->grant.features, FRAME_FEATURE_MORE);
}

SERVED_TEST(hello__another_follows__granted_on_the_same_tls_with_nothing_in_common)
{
	struct peer a, b;

	peer_shake_hands(&a);
	ask_for_more(&a);
	b = a;
	b.psn++;
	b.qpn++;
	assert_int_equal(peer_say_hello(&b, 0), FRAME_GRANT);
	assert_int_equal(server_n(CONN_ST_GRANTED), 2);
	assert_int_equal(counter_get(&srv.shard->stats.tls_shared), 1);
	assert_int_equal(counter_get(&srv.shard->stats.handshakes_full), 1);
	assert_int_equal(srv.shard->tls_open, 1);
	assert_memory_not_equal(a.grant.session, b.grant.session, FRAME_SESSION_BYTES);
	assert_memory_not_equal(a.keys.client, b.keys.client, AUTH_KEY_BYTES);
	assert_int_not_equal(a.grant.psn, b.grant.psn);
	assert_int_equal(peer_answer(&b), 0);
	peer_close(&b);
	peer_finish(&b);
	peer_finish(&a);
	assert_int_equal(server_n(CONN_ST_LIVE), 2);
	peer_disconnect(&a);
	peer_disconnect(&b);
}

SERVED_TEST(hello__another_was_announced_but_the_client_leaves__what_was_granted_stays)
{
	struct peer p;

	peer_shake_hands(&p);
	ask_for_more(&p);
	assert_int_equal(server_n(CONN_ST_HELLO), 1);
	peer_close(&p);
	server_until(server_n(CONN_ST_HELLO) == 0);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	assert_int_equal(server_closed(CLOSE_FAILED), 0);
	peer_finish(&p);
	server_only(CONN_ST_LIVE);
	peer_disconnect(&p);
}

/* The client may be making the connection of its GRANT meanwhile. */
SERVED_TEST(hello__another_was_announced__has_the_session_timeout)
{
	struct peer p;
	struct conn *c;

	srv.cfg.handshake_timeout_ns = 5 * NS_PER_S;
	peer_shake_hands(&p);
	ask_for_more(&p);
	c = server_only(CONN_ST_HELLO);
	assert_true(ev_timer_remaining(srv.shard->loop, &c->deadline) > 29.);
	server_expire(c);
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0), 1);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	peer_forget(&p);
}

SERVED_TEST(hello__another_was_announced_and_the_shard_drains__refused)
{
	struct peer p;

	peer_shake_hands(&p);
	ask_for_more(&p);
	shard_drain(srv.shard);
	server_turns(2);
	assert_int_equal(peer_answer(&p), FRAME_REFUSE);
	assert_int_equal(p.refuse.code, REFUSE_DRAINING);
	assert_int_equal(server_n(CONN_ST_GRANTED), 0);
	peer_abort(&p);
	server_until(server_n(CONN_ST_FREE) == srv.cfg.shard_conns);
}

TEST(hello__more_than_eight_announced__refused)
{
	struct peer p;

	srv.cfg.max_clients = 16;
	server_rig_start();
	peer_shake_hands(&p);
	for (unsigned i = 1; i < FRAME_QPS_MAX; i++)
		ask_for_more(&p);
	p.psn++;
	assert_int_equal(peer_say_hello(&p, FRAME_FEATURE_MORE), FRAME_REFUSE);
	assert_int_equal(p.refuse.code, REFUSE_BAD_REQUEST);
	assert_non_null(strstr(p.refuse.text, "bit 9"));
	assert_int_equal(server_n(CONN_ST_GRANTED), FRAME_QPS_MAX - 1);
	peer_close(&p);
}

/* TLS ends, and the client comes back for its next connection. */
SERVED_TEST(hello__another_was_announced_without_room__tls_ends_and_the_grant_stays)
{
	struct conn_list *free = &srv.shard->lists[CONN_ST_FREE];
	struct conn_list kept = TAILQ_HEAD_INITIALIZER(kept);
	struct conn *c;
	struct peer p;

	peer_shake_hands(&p);
	TAILQ_CONCAT(&kept, free, entry);
	srv.shard->conns_used = srv.cfg.shard_conns;
	ask_for_more(&p);
	assert_int_equal(peer_answer(&p), 0);
	c = server_only(CONN_ST_GRANTED);
	assert_int_equal(srv.shard->tls_open, 0);
	TAILQ_CONCAT(free, &kept, entry);
	conn_close(c, CLOSE_DRAINING);
	peer_forget(&p);
}

SERVED_TEST(hello__every_bad_field__bad_request_that_names_it)
{
	peer_refused_hello(15, 4, 0, 1, REFUSE_BAD_REQUEST, "message size");
	peer_refused_hello((1 << 20) + 1, 4, 0, 1, REFUSE_BAD_REQUEST, "message size");
	peer_refused_hello(64, 0, 0, 1, REFUSE_BAD_REQUEST, "queue depth");
	peer_refused_hello(64, 1025, 0, 1, REFUSE_BAD_REQUEST, "queue depth");
	peer_refused_hello(64, 4, 16, 1, REFUSE_BAD_REQUEST, "features");
	peer_refused_hello(64, 4, FRAME_FEATURE_REGION | FRAME_FEATURE_WINDOW, 1, REFUSE_BAD_REQUEST, "window");
	peer_refused_hello(64, 4, 0, 1 << 24, REFUSE_BAD_REQUEST, "psn");
	assert_int_equal(server_closed(CLOSE_REFUSED), 7);
}

SERVED_TEST(frame__bad_length_or_reserved__refused)
{
	static const struct { uint32_t length; uint16_t reserved; } cases[] = {
		{ 0, 0 }, { 7, 0 }, { 65, 0 }, { UINT32_MAX, 0 }, { 64, 1 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t buf[FRAME_HELLO_BYTES];
		struct peer p;

		peer_shake_hands(&p);
		peer_encode_hello(buf, 64, 4, 0, p.psn);
		be_put32(buf, cases[i].length);
		be_put16(buf + 6, cases[i].reserved);
		peer_assert_refused(&p, buf, FRAME_HEADER_BYTES, REFUSE_BAD_REQUEST, "frame length");
	}
}

SERVED_TEST(frame__shorter_hello_or_wrong_type__refused)
{
	static const uint8_t types[] = { 0, FRAME_GRANT, FRAME_REFUSE, FRAME_REPORT, 6, 255 };
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	peer_shake_hands(&p);
	peer_encode_hello(buf, 64, 4, 0, p.psn);
	be_put32(buf, 20);
	peer_assert_refused(&p, buf, 20, REFUSE_BAD_REQUEST, "HELLO length");
	for (size_t i = 0; i < N_ELEMENTS(types); i++) {
		peer_shake_hands(&p);
		peer_encode_hello(buf, 64, 4, 0, p.psn);
		buf[5] = types[i];
		peer_assert_refused(&p, buf, sizeof(buf), REFUSE_BAD_REQUEST, "unexpected frame");
	}
}

SERVED_TEST(frame__other_wire_version__bad_version)
{
	static const uint8_t versions[] = { 0, 1, 2, 4, 255 };
	uint8_t buf[FRAME_HELLO_BYTES];
	char words[80];

	for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
		struct peer p;

		peer_shake_hands(&p);
		peer_encode_hello(buf, 64, 4, 0, p.psn);
		buf[4] = p.version = versions[i];
		snprintf(words, sizeof(words), "the server speaks wire version 3, the client %u:", versions[i]);
		peer_assert_refused(&p, buf, sizeof(buf), REFUSE_BAD_VERSION, words);
	}
}

/* All of its way: it knows no other ALPN name, and reads no frame of another version. Its HELLO is shorter. */
SERVED_TEST(client_of_the_version_before__hello__refused_in_its_version)
{
	static const unsigned char alpn[] = FRAME_ALPN_BEFORE;
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	peer_connect_pair(&p);
	assert_int_equal(SSL_set_alpn_protos(p.tls->ssl, alpn, sizeof(alpn) - 1), 0);
	/* Our own client gives up here, with the handshake done: what follows is as the older one does it. */
	assert_false(peer_handshake(&p));
	assert_int_equal(tls_flush(p.tls), TLS_DONE);
	server_turns(2);
	assert_int_equal(server_n(CONN_ST_HELLO), 1);
	peer_encode_hello(buf, 64, 4, 0, p.psn);
	be_put32(buf, 40);
	buf[4] = p.version = 2;
	peer_assert_refused(&p, buf, 40, REFUSE_BAD_VERSION,
			    "the server speaks wire version 3, the client 2: both need programs of the same version");
}

/* The client's advice is to see the server's log, so there is a line in it. */
SERVED_TEST(control__no_memory__no_resources_and_a_line_a_second)
{
	uint8_t buf[FRAME_FROM_CLIENT_MAX];
	size_t n = frame_encode_control(CONTROL_STATS, buf);

	server_log_keep();
	no_handover = true;
	for (int i = 0; i < 5; i++) {
		struct peer p;

		peer_shake_hands(&p);
		peer_assert_refused(&p, buf, n, REFUSE_NO_RESOURCES, "memory");
	}
	no_handover = false;
	server_log_assert_a_line_a_second();
}

/* A peer that was refused and is still there. */
static void be_refused(struct peer *p)
{
	uint8_t buf[FRAME_HELLO_BYTES];

	peer_shake_hands(p);
	peer_send(p, buf, peer_encode_hello(buf, 1025, 4, 0, p->psn));
	assert_int_equal(peer_answer(p), FRAME_REFUSE);
}

SERVED_TEST(refusal__peer_does_not_close__closed_at_its_deadline)
{
	struct peer p;

	be_refused(&p);
	server_expire(server_only(CONN_ST_REFUSE));
	assert_int_equal(server_closed(CLOSE_REFUSED), 1);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 0);
	peer_abort(&p);
}

SERVED_TEST(refusal__peer_talks_on__not_heard)
{
	struct peer p;

	be_refused(&p);
	peer_hello(&p, 0);
	server_until(server_n(CONN_ST_FREE) == srv.cfg.shard_conns);
	assert_int_equal(counter_get(&srv.shard->stats.granted), 0);
	peer_abort(&p);
}

/* The server ends the handshake. */
static void assert_handshake_fails(struct peer *p, enum fail_kind kind, int code)
{
	server_until(server_closed(CLOSE_FAILED) == 1);
	assert_int_equal(server_failed(STAGE_TLS_HANDSHAKE, kind, code), 1);
	peer_abort(p);
}

SERVED_TEST(handshake__not_tls__failed_as_tls)
{
	static const char junk[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
	struct peer p;

	peer_connect_pair(&p);
	assert_true(send(tls_fd(p.tls), junk, sizeof(junk), 0) > 0);
	assert_handshake_fails(&p, FAIL_TLS, 0);
}

TEST(handshake__client_certificate_required_but_missing__refused)
{
	struct peer p;

	srv.cfg.client_auth = CLIENT_AUTH_REQUIRE;
	server_rig_start();
	peer_connect(&p);
	/* The client's side may be done before the server says no (TLS 1.3). */
	peer_handshake(&p);
	server_until(server_closed(CLOSE_FAILED) == 1);
	assert_int_equal(counter_get(&srv.shard->stats.granted), 0);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 1);
	peer_abort(&p);
	server_assert_all_back();
}

/* A fast machine makes a dozen handshakes in a turn. */
#define STRANGERS 100

static int greeted(void)
{
	int n = 0;

	for (uint32_t i = 0; i < srv.cfg.shard_conns; i++)
		n += srv.shard->conns[i].state == CONN_ST_TLS_ACCEPT && srv.shard->conns[i].greeted;
	return n;
}

static void begin_handshake(struct peer *p)
{
	peer_connect(p);
	assert_int_equal(tls_handshake(p->tls), TLS_WANT_READ);
}

/* Handshakes for longer than a turn's budget are waiting: some are done in each turn, none is forgotten. */
TEST(handshake__many_at_once__some_in_each_turn)
{
	static struct peer p[STRANGERS];
	int turns = 0, before;

	srv.cfg.max_handshakes = STRANGERS + 2;
	server_rig_start();
	peers_connect(p, STRANGERS);
	for (int i = 0; i < STRANGERS; i++)
		assert_int_equal(tls_handshake(p[i].tls), TLS_WANT_READ);
	do {
		before = greeted();
		server_turn();
		turns++;
	} while (greeted() > before);
	assert_int_equal(greeted(), STRANGERS);
	assert_in_range(turns, 3, STRANGERS + 1);
	peers_abort(p, STRANGERS);
	server_until(server_closed(CLOSE_FAILED) == STRANGERS);
	server_assert_all_back();
}

/* The answer would be for nobody, and costs a signature. */
SERVED_TEST(handshake__client_has_left__not_begun)
{
	struct peer p;
	uint8_t byte;

	begin_handshake(&p);
	assert_int_equal(shutdown(tls_fd(p.tls), SHUT_WR), 0);
	server_until(server_closed(CLOSE_FAILED) == 1);
	/* Not even its first flight. */
	assert_true(recv(tls_fd(p.tls), &byte, 1, 0) <= 0 && errno != EAGAIN);
	assert_handshake_fails(&p, FAIL_CLOSED, 0);
}

SERVED_TEST(handshake__waited_longer_than_it_may__not_begun)
{
	struct peer p;

	begin_handshake(&p);
	/* In the backlog: the deadline counts from the accept. */
	srv.silent_ms = (uint32_t)(srv.cfg.handshake_timeout_ns / NS_PER_MS) + 1;
	assert_handshake_fails(&p, FAIL_TIMEOUT, 0);
}

/* Nobody needs so many: they are cut off before they have cost much. */
SERVED_TEST(handshake__in_too_many_records__cut_off_by_name)
{
	static const uint8_t header[] = { 22, 3, 1, 0, 1 };
	/* The first bytes of a ClientHello of 1,000. */
	uint8_t hello[200] = { 1, 0, 3, 232 }, tiny[6 * sizeof(hello)];
	struct peer p;

	peer_connect_pair(&p);
	for (size_t i = 0; i < sizeof(hello); i++) {
		memcpy(&tiny[6 * i], header, sizeof(header));
		tiny[6 * i + 5] = hello[i];
	}
	assert_int_equal(send(tls_fd(p.tls), tiny, sizeof(tiny), 0), sizeof(tiny));
	assert_handshake_fails(&p, FAIL_TLS, FAIL_TLS_RECORDS);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
