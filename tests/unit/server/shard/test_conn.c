/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/conn.c: legal edges, whole lives, every way to an end. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/wire/psn.h"
#include "common/rdma/region.h"
#include "common/rdma/registrar.h"
#include "common/tls/tls.h"
#include "server/config/limits.h"
#include "server/tables/session.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

/* Row: from; column: to; in the order of the names. Written from docs and comments, not from the
 * code. */
static const struct { const char *from, *to[CONN_ST_N]; } legal[] = {
	{ "FREE", { "TLS_ACCEPT", "HELLO" } },
	{ "TLS_ACCEPT", { "HELLO", "CLOSING" } },
	{ "HELLO", { "REFUSE", "GRANT", "CLOSING" } },
	{ "REFUSE", { "HELLO", "CLOSING" } },
	{ "GRANT", { "GRANTED", "CLOSING" } },
	{ "GRANTED", { "ACCEPTING", "CLOSING" } },
	{ "ACCEPTING", { "LIVE", "CLOSING" } },
	{ "LIVE", { "CLOSING" } },
	{ "CLOSING", { "DEAD" } },
	{ "DEAD", { "FREE" } },
};

static bool expected_edge(const char *from, const char *to)
{
	for (size_t i = 0; i < N_ELEMENTS(legal); i++)
		for (size_t j = 0; j < CONN_ST_N && legal[i].to[j]; j++)
			if (strcmp(legal[i].from, from) == 0 && strcmp(legal[i].to[j], to) == 0)
				return true;
	return false;
}

TEST(edges__all_pairs__exactly_the_expected)
{
	unsigned n = 0;

	assert_int_equal(N_ELEMENTS(legal), CONN_ST_N);
	for (int from = 0; from < CONN_ST_N; from++) {
		for (int to = 0; to < CONN_ST_N; to++) {
			bool is = conn_edge_is_legal((enum conn_state)from, (enum conn_state)to);

			if (is != expected_edge(conn_state_names[from], conn_state_names[to]))
				fail_msg("%s -> %s", conn_state_names[from], conn_state_names[to]);
			n += is;
		}
	}
	assert_int_equal(n, 18);
}

SERVED_TEST(life__without_region__all_pools_back)
{
	struct peer p;
	struct conn *c;

	peer_connect(&p);
	assert_int_equal(server_only(CONN_ST_TLS_ACCEPT)->region, REGION_NONE);
	assert_true(peer_handshake(&p));
	server_only(CONN_ST_HELLO);
	peer_hello(&p, 0);
	c = server_only(CONN_ST_GRANTED);
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	assert_int_equal(p.grant.psn, c->server_psn);
	assert_int_equal(psn_in_use(srv.server.psns), 2);
	assert_int_equal(srv.server.admitted[0], 1);
	assert_int_equal(session_count(srv.shard->sessions), 1);
	peer_close(&p);
	assert_null(c->io);
	assert_int_equal(c->state, CONN_ST_GRANTED);
	server_expire(c);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0), 1);
	server_assert_all_back();

	peer_go_live(&p, 0);
	c = server_only(CONN_ST_LIVE);
	assert_int_equal(session_count(srv.shard->sessions), 0);
	peer_disconnect(&p);
	assert_int_equal(c->state, CONN_ST_FREE);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	/* The peer's disconnect request is answered. */
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	/* The PSNs rest with their QP. */
	assert_int_equal(psn_in_use(srv.server.psns), 2);
}

TEST(life__with_region__qp_not_used_again)
{
	struct peer p;
	uint32_t qpn;

	server_start_live(&p, FRAME_FEATURE_REGION);
	qpn = p.qp->qp_num;
	assert_int_equal(fake_mws(), 1);
	peer_disconnect(&p);
	assert_int_equal(fake_mws(), 0);
	assert_non_null(fake_qp_of(qpn));
	server_assert_all_back();
	assert_null(fake_qp_of(qpn));
}

SERVED_TEST(life__twenty_one_after_the_other__nothing_lost)
{
	for (int i = 0; i < 20; i++) {
		struct peer p;

		peer_go_live(&p, i % 2 ? FRAME_FEATURE_REGION : 0);
		assert_true(peer_message(&p, 100));
		server_turn();
		fake_complete_sends(p.qp, 8, IBV_WC_SUCCESS);
		peer_disconnect(&p);
	}
	assert_int_equal(counter_get(&srv.shard->stats.established), 20);
}

SERVED_TEST(life__four_at_once__states_and_gauges)
{
	struct peer p[4];

	peers_go_live(p, 4);
	server_turn();
	assert_int_equal(server_n(CONN_ST_LIVE), 4);
	assert_int_equal(counter_get(&srv.shard->stats.connected), 4);
	assert_int_equal(counter_get(&srv.shard->stats.connected_peak), 4);
	assert_int_equal(counter_get(&srv.shard->stats.qps_in_use), 4);
	for (int i = 0; i < 4; i++)
		peer_disconnect(&p[i]);
	assert_int_equal(counter_get(&srv.shard->stats.connected), 0);
	assert_int_equal(counter_get(&srv.shard->stats.connected_peak), 4);
}

SERVED_TEST(deadline__tls_handshake__fails_as_timeout)
{
	struct peer p;

	peer_connect(&p);
	server_expire(server_only(CONN_ST_TLS_ACCEPT));
	assert_int_equal(server_failed(STAGE_TLS_HANDSHAKE, FAIL_TIMEOUT, 0), 1);
	assert_false(peer_handshake(&p));
	peer_abort(&p);
}

TEST(deadline__silent_after_the_handshake__fails_as_timeout)
{
	struct peer p;

	server_expire(server_start_hello(&p));
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0), 1);
	peer_abort(&p);
	server_assert_all_back();
}

/* The socket takes no more: the GRANT stays unwritten. */
SERVED_TEST(deadline__grant_not_taken__session_never_usable)
{
	struct peer p;
	struct conn *c;

	c = peer_unwritten_grant(&p, FRAME_FEATURE_REGION);
	assert_int_equal(session_count(srv.shard->sessions), 0);
	assert_int_equal(srv.server.admitted[0], 1);
	server_expire(c);
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0), 1);
	peer_abort(&p);
}

/* The socket takes later whatever it does not take at once. */
SERVED_TEST(grant__socket_full_for_a_while__usable_afterwards)
{
	static char junk[4096];
	struct peer p;
	struct conn *c;

	c = peer_unwritten_grant(&p, 0);
	while (recv(tls_fd(p.tls), junk, sizeof(junk), 0) > 0)
		;
	server_turns(2);
	assert_int_equal(c->state, CONN_ST_GRANTED);
	assert_int_equal(session_count(srv.shard->sessions), 1);
	assert_true(recv(tls_fd(p.tls), junk, sizeof(junk), 0) > 0);
	conn_close(c, CLOSE_DRAINING);
	peer_abort(&p);
}

TEST(deadline__accepted_but_never_established__fails_and_disconnects)
{
	struct peer p;

	server_expire(server_start_accepting(&p, 0));
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	server_turn();
	server_expire(server_only(CONN_ST_CLOSING));
	server_assert_all_back();
}

/* A peer that does not answer the disconnect holds nothing up for ever. */
TEST(deadline__close_not_answered__freed_all_the_same)
{
	struct peer p;
	struct conn *c = server_start_live(&p, 0);

	conn_close(c, CLOSE_DRAINING);
	server_turns(5);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	assert_true(c->cm_connected);
	server_expire(c);
	server_turn();
	assert_int_equal(c->state, CONN_ST_FREE);
	server_assert_all_back();
}

TEST(deadline__close_without_flushes__waits_on)
{
	struct peer p;
	struct conn *c = server_start_live(&p, 0);

	/* The beacon's completion is not seen as long as no turn is taken. */
	conn_close(c, CLOSE_DRAINING);
	ev_timer_stop(srv.shard->loop, &c->deadline);
	ev_invoke(srv.shard->loop, &c->deadline, EV_TIMER);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	assert_true(ev_is_active(&c->deadline));
	server_turns(3);
	assert_int_equal(c->state, CONN_ST_FREE);
	server_assert_all_back();
}

/* The device does not flush: its queue pair is not waited for for ever, and not used again. */
TEST(deadline__flushes_never_come__freed_and_qp_destroyed)
{
	struct qp_pool_counts before, after;
	struct peer p;
	struct conn *c = server_start_live(&p, 0);
	uint32_t qpn;

	qpn = c->link.rc.qp->qp_num;
	fake_device.swallows_flushes = true;
	conn_close(c, CLOSE_DRAINING);
	server_turns(3);
	server_expire(c);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	assert_true(ev_is_active(&c->deadline));
	qp_pool_get_counts(srv.shard->qps, &before);
	server_expire(c);
	server_turn();
	assert_int_equal(c->state, CONN_ST_FREE);
	assert_int_equal(fake_qp_state(fake_qp_of(qpn)), IBV_QPS_RESET);
	server_assert_all_back();
	qp_pool_get_counts(srv.shard->qps, &after);
	assert_int_equal(after.recycled, before.recycled);
	assert_null(fake_qp_of(qpn));
}

TEST(device_event__queue_pair_failed__its_connection_fails)
{
	static const struct { enum ibv_event_type type; enum ibv_wc_status status; } cases[] = {
		{ IBV_EVENT_QP_FATAL, IBV_WC_FATAL_ERR },
		{ IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR },
		{ IBV_EVENT_QP_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR },
	};
	struct peer other;

	server_start_live(&other, 0);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;

		peer_go_live(&p, 0);
		fake_async_qp(p.qp, cases[i].type);
		server_until(server_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, cases[i].status) == 1);
		fake_cm_event(p.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
		server_until(server_n(CONN_ST_CLOSING) == 0);
		assert_int_equal(server_n(CONN_ST_LIVE), 1);
	}
	peer_leave(&other);
}

/* Where the device tells when a queue pair has returned what it had of the shared receive queue, that is waited for;
 * where it does not, as on Soft-RoCE, the flush is enough. */
SERVED_TEST(device_event__last_wqe__ends_the_drain_where_it_is_told)
{
	struct peer p;
	struct conn *c;

	srv.shard->dev.tells_last_wqe = true;
	for (int early = 0; early < 2; early++) {
		peer_go_live(&p, 0);
		c = server_only(CONN_ST_LIVE);
		if (early)
			fake_async_qp(p.qp, IBV_EVENT_QP_LAST_WQE_REACHED);
		server_turns(2);
		peer_disconnect(&p);
		assert_int_equal(c->state, early ? CONN_ST_FREE : CONN_ST_CLOSING);
		if (!early)
			fake_async_qp(p.qp, IBV_EVENT_QP_LAST_WQE_REACHED);
		server_turns(3);
		assert_int_equal(c->state, CONN_ST_FREE);
		server_assert_all_back();
	}
	/* It does not come after all. */
	peer_go_live(&p, 0);
	c = server_only(CONN_ST_LIVE);
	peer_disconnect(&p);
	server_expire(c);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	server_expire(c);
	server_turn();
	assert_int_equal(c->state, CONN_ST_FREE);
}

TEST(fail__twice__counted_once)
{
	struct peer p;
	struct conn *c = server_start_live(&p, 0);

	conn_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
	conn_fail(c, FAIL_PROTOCOL, PROTO_CREDITS);
	conn_close(c, CLOSE_PEER_LEFT);
	conn_fail(c, FAIL_TIMEOUT, 0);
	assert_int_equal(server_closed(CLOSE_FAILED), 1);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 0);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 1);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	peer_disconnect(&p);
	assert_int_equal(c->state, CONN_ST_FREE);
	conn_fail(c, FAIL_TIMEOUT, 0);
	conn_close(c, CLOSE_PEER_LEFT);
	assert_int_equal(c->state, CONN_ST_FREE);
	server_assert_all_back();
}

SERVED_TEST(close__dead_before_the_turn_ends__still_counted_once)
{
	struct peer p;
	struct conn *c;

	peer_connect(&p);
	c = server_only(CONN_ST_TLS_ACCEPT);
	conn_close(c, CLOSE_DRAINING);
	assert_int_equal(c->state, CONN_ST_DEAD);
	conn_close(c, CLOSE_DRAINING);
	conn_fail(c, FAIL_CLOSED, 0);
	conn_try_finish(c);
	assert_int_equal(c->state, CONN_ST_DEAD);
	assert_int_equal(server_closed(CLOSE_DRAINING), 1);
	server_turn();
	assert_int_equal(c->state, CONN_ST_FREE);
	peer_abort(&p);
}

TEST(close__disconnect_fails__not_waited_for)
{
	struct peer p;
	struct conn *c = server_start_live(&p, FRAME_FEATURE_REGION);

	fake_fail_next("rdma_disconnect", EINVAL);
	conn_close(c, CLOSE_DRAINING);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	server_turns(3);
	assert_int_equal(c->state, CONN_ST_FREE);
	server_assert_all_back();
}

TEST(close__granted__session_is_void)
{
	struct peer p;

	conn_close(server_start_granted(&p, FRAME_FEATURE_REGION), CLOSE_DRAINING);
	assert_int_equal(session_count(srv.shard->sessions), 0);
	peer_prove(&p);
	assert_int_equal(server_refused(REFUSE_BAD_SESSION), 1);
	server_assert_all_back();
}

SERVED_TEST(peer_gone__in_each_bootstrap_state__failed_as_closed)
{
	for (int st = 0; st < 2; st++) {
		struct peer p;

		peer_connect(&p);
		if (st == 1)
			assert_true(peer_handshake(&p));
		peer_abort(&p);
		assert_int_equal(server_failed(st == 1 ? STAGE_PSN_EXCHANGE : STAGE_TLS_HANDSHAKE, FAIL_CLOSED, 0), 1);
	}
	assert_int_equal(server_closed(CLOSE_FAILED), 2);
}

SERVED_TEST(drain__connections_in_every_state__all_closed)
{
	struct peer handshake, hello, granted, live;

	peer_connect(&handshake);
	peer_shake_hands(&hello);
	peer_get_grant(&granted, 0);
	peer_go_live(&live, FRAME_FEATURE_REGION);
	shard_drain(srv.shard);
	server_turns(2);
	assert_int_equal(server_closed(CLOSE_DRAINING), 2);
	server_until(server_only(CONN_ST_LIVE)->told);
	/* A peer that finished the handshake and waits for an answer is told. */
	assert_int_equal(peer_answer(&hello), FRAME_REFUSE);
	assert_int_equal(hello.refuse.code, REFUSE_DRAINING);
	peer_disconnect(&live);
	assert_int_equal(server_closed(CLOSE_DRAINING), 3);
	peer_abort(&handshake);
	peer_abort(&hello);
	assert_int_equal(server_n(CONN_ST_FREE), srv.cfg.shard_conns);
}

TEST(accept__too_many_handshakes__waits_until_one_ends)
{
	struct peer p[5];

	srv.cfg.max_handshakes = 3;
	server_rig_start();
	peers_connect(p, 5);
	server_until(srv.shard->listen.n_waiting == 2);
	assert_int_equal(server_n(CONN_ST_TLS_ACCEPT), 3);
	peer_abort(&p[0]);
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 3);
	server_until(srv.shard->listen.n_waiting == 1);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), 4);
	/* A grant does not make room yet, the end of its TLS connection does: it holds a
	 * descriptor. */
	assert_true(peer_handshake(&p[1]));
	assert_int_equal(peer_say_hello(&p[1], 0), FRAME_GRANT);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), 4);
	peer_close(&p[1]);
	server_until(counter_get(&srv.shard->stats.tcp_accepted) == 5);
	assert_int_equal(server_n(CONN_ST_TLS_ACCEPT), 3);
	peers_abort(p + 2, 3);
}

TEST(shard_free__connections_open__everything_released)
{
	struct peer live, handshake;

	server_start_live(&live, FRAME_FEATURE_REGION);
	peer_connect(&handshake);
	server_rig_stop(state);
	peer_forget(&handshake);
}

TEST(shard_new__every_library_call_fails_in_turn__all_released_and_explained)
{
	struct registrar *registrar;
	unsigned k;

	assert_int_equal(registrar_new(&registrar), 0);
	for (k = 1; k < 100; k++) {
		struct dev dev;
		char err[400] = "";
		int ret;

		server_rig_init(state);
		fake_dev(&dev);
		assert_int_equal(limits_derive(&srv.cfg, &dev, err, sizeof(err)), 0);
		memset(&srv.server, 0, sizeof(srv.server));
		srv.server.cfg = &srv.cfg;
		srv.server.registrar = registrar;
		fake_fail_at(k, ENOMEM);
		ret = shard_new(&srv.server, 0, &srv.shard, err, sizeof(err));
		if (!fake_failed())
			break;
		/* A device that cannot give even the reserve is said to be used up. */
		assert_int_equal(ret, strcmp(fake_failed(), "ibv_create_qp") &&
				 strcmp(fake_failed(), "ibv_modify_qp") ? -ENOMEM : -ENOSPC);
		assert_true(strlen(err) > 20);
		srv.shard = NULL;
		fake_check();
	}
	assert_true(k > 15);
	shard_free(srv.shard);
	registrar_free(registrar);
	srv.shard = NULL;
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
