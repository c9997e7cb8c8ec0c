/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of a shard whose places one address has taken, over real TCP: seven clients of another address
 * come and are to get their GRANTs promptly. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/host/res.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

#define HONEST 7
#define GREEDY "127.0.0.12"
/* Limit for the moved clock's time and processor time together. The server accepts the 4,000 connections a few at a
 * time, which takes about a second. */
#define PROMPT_NS (5 * NS_PER_S)

/* The first bytes of a ClientHello's record (RFC 8446, 5.1). */
static const uint8_t hello_begin[] = { 22, 3, 1, 1, 0, 1, 0 };

static int setup(void **state)
{
	int ret = server_rig_init(state);

	res_raise_nofile();
	srv.tcp_is_true = true;
	srv.cfg.max_handshakes = 512;
	srv.cfg.max_clients = 64;
	return ret;
}

/* `n` connections that send `bytes` of a ClientHello and nothing more. */
static int *crowd(int n, size_t bytes)
{
	int *fds = calloc((size_t)n, sizeof(*fds));
	struct addr server = srv.cfg.rails[0].addr, from;
	struct linger at_once = { .l_onoff = 1 };	/* thousands of ports are not to rest in TIME_WAIT */

	assert_non_null(fds);
	addr_set_port(&server, srv.server.tls_port);
	assert_int_equal(addr_parse(GREEDY, 0, &from), 0);
	for (int i = 0; i < n; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
		assert_int_equal(bind(fds[i], (struct sockaddr *)&from.ss, from.len), 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&server.ss, server.len), 0);
		if (bytes)
			assert_int_equal(send(fds[i], hello_begin, bytes, 0), bytes);
	}
	server_turn();
	return fds;
}

static void disperse(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		close(fds[i]);
	free(fds);
	server_until(srv.shard->tls_open == 0);
}

/* The longest that one of them waited. */
static uint64_t seven_get_in(void)
{
	struct peer p[HONEST];
	uint64_t longest_ns = 0;

	for (int i = 0; i < HONEST; i++) {
		uint64_t begun_ns = clock_now_ns() + clock_busy_ns();

		peer_ask_grant(&p[i], 0);
		longest_ns = MAX(longest_ns, clock_now_ns() + clock_busy_ns() - begun_ns);
		peer_close(&p[i]);
	}
	return longest_ns;
}

static void assert_prompt(const char *what, int n)
{
	uint64_t ns = seven_get_in();

	print_message("%d %s: %d clients get in, the slowest in %.0f ms\n", n, what, HONEST, (double)ns / 1e6);
	assert_true(ns < PROMPT_NS);
}

static void crowded_by(const char *what, int n, size_t bytes)
{
	int *fds;

	server_rig_start();
	fds = crowd(n, bytes);
	assert_prompt(what, n);
	disperse(fds, n);
}

TEST(crowd__1100_silent_connections__others_get_in)
{
	crowded_by("silent connections", 1100, 0);
}

TEST(crowd__4000_silent_connections__others_get_in)
{
	crowded_by("silent connections", 4000, 0);
}

TEST(crowd__1100_half_handshakes__others_get_in)
{
	crowded_by("half handshakes", 1100, sizeof(hello_begin));
}

/* All 64 places are granted to one address, which uses none of them. */
TEST(crowd__unused_sessions__others_get_in)
{
	struct peer p;
	struct conn *c;

	server_rig_start();
	srv.peers_from = GREEDY;
	for (int i = 0; i < 64; i++)
		peer_get_grant(&p, 0);
	srv.peers_from = NULL;
	/* A second ago. */
	TAILQ_FOREACH(c, &srv.shard->lists[CONN_ST_GRANTED], entry)
		c->admitted_ns -= NS_PER_S;
	assert_prompt("unused sessions", 64);
}

/* Connections that are never silent: each asks again and again for a PSN that is in use. More of the same address wait,
 * and have sent something. */
TEST(crowd__busy_with_a_psn_in_use__others_get_in)
{
	enum { BUSY = 8, WAITING = 3 };
	struct peer owner, busy[BUSY];
	int *fds;

	srv.cfg.max_handshakes = BUSY;
	server_rig_start();
	srv.peers_from = GREEDY;
	peer_get_grant(&owner, 0);
	server_until(srv.shard->tls_open == 0);
	for (int i = 0; i < BUSY; i++) {
		peer_shake_hands(&busy[i]);
		busy[i].psn = owner.psn;
		assert_int_equal(peer_say_hello(&busy[i], 0), FRAME_REFUSE);
	}
	fds = crowd(WAITING, sizeof(hello_begin));
	server_until(srv.shard->listen.n_waiting == WAITING);
	srv.peers_from = NULL;
	assert_prompt("that are busy", BUSY);
	assert_int_equal(server_refused(REFUSE_PSN_CONFLICT), BUSY);
	peers_abort(busy, BUSY);
	disperse(fds, WAITING);
}

TEST_EACH(setup, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
