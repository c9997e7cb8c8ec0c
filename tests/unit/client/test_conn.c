/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/conn.c and client/ctx.c: legal edges, deadlines and closes in every
 * state. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

/* In the order a connection goes through them. */
static const enum client_state stations[] = {
	CLIENT_ST_TCP_CONNECT,  CLIENT_ST_TLS_HANDSHAKE, CLIENT_ST_PSN_EXCHANGE,
	CLIENT_ST_ADDR_RESOLVE, CLIENT_ST_ROUTE_RESOLVE, CLIENT_ST_RDMA_CONNECT,
	CLIENT_ST_FIRST_REPLY,  CLIENT_ST_LIVE,
};
static const enum stage stage_at[] = {
	STAGE_TCP_CONNECT,   STAGE_TLS_HANDSHAKE, STAGE_PSN_EXCHANGE, STAGE_ADDR_RESOLVE,
	STAGE_ROUTE_RESOLVE, STAGE_RDMA_CONNECT,  STAGE_FIRST_REPLY,  STAGE_TRAFFIC,
};

/* Each state's successor in a connection's life, and CLOSING from all that own something. */
TEST(edges__all_pairs__exactly_the_expected)
{
	for (int from = 0; from < CLIENT_ST_N; from++) {
		for (int to = 0; to < CLIENT_ST_N; to++) {
			/* Without a first message nothing is waited for after the connection. */
			bool next = to == from + 1 ||
				    (from == CLIENT_ST_RDMA_CONNECT && to == CLIENT_ST_LIVE) ||
				    (from == CLIENT_ST_DEAD && to == CLIENT_ST_FREE);
			bool close = to == CLIENT_ST_CLOSING && ((from >= CLIENT_ST_TCP_CONNECT &&
								  from <= CLIENT_ST_LIVE) ||
								 from == CLIENT_ST_SOCKET_CONNECT ||
								 from == CLIENT_ST_QP_EXCHANGE);

			/* On the TLS connection of another one. */
			if (from == CLIENT_ST_TCP_CONNECT && to == CLIENT_ST_PSN_EXCHANGE)
				next = true;
			/* Over TCP there is one state instead of those of RDMA, over TLS there is none. */
			if (from == CLIENT_ST_DEAD)
				next = to == CLIENT_ST_FREE;
			if (from == CLIENT_ST_PSN_EXCHANGE && (to == CLIENT_ST_SOCKET_CONNECT ||
							       to == CLIENT_ST_QP_EXCHANGE))
				next = true;
			/* Out of band as well. */
			if (from == CLIENT_ST_SOCKET_CONNECT || from == CLIENT_ST_QP_EXCHANGE)
				next = from == CLIENT_ST_QP_EXCHANGE && to == CLIENT_ST_LIVE;
			if ((from == CLIENT_ST_PSN_EXCHANGE || from == CLIENT_ST_SOCKET_CONNECT) &&
			    (to == CLIENT_ST_FIRST_REPLY || to == CLIENT_ST_LIVE))
				next = true;

			if (client_edge_is_legal((enum client_state)from, (enum client_state)to) !=
			    (next || close))
				fail_msg("%s -> %s", client_state_names[from],
					 client_state_names[to]);
		}
	}
	assert_string_equal(client_state_names[CLIENT_ST_TCP_CONNECT], "TCP_CONNECT");
	assert_string_equal(client_state_names[CLIENT_ST_DEAD], "DEAD");
}

#define CLIENT_TEST(f) TEST_WITH(f, client_rig_init, client_rig_stop)

CLIENT_TEST(life__to_live_and_closed__stages_timed_and_all_back)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	uint64_t sum = 0;

	assert_int_equal(cli.live, 1);
	for (int i = 0; i < STAGE_TIMED; i++) {
		assert_true((c->stage_ns[i] > 0) == stage_applies((enum stage)i, TRANSPORT_RDMA, CONNECT_CM));
		sum += c->stage_ns[i];
	}
	assert_true(c->total_ns >= sum);
	assert_true(c->total_ns < 60 * NS_PER_S);
	assert_false(ev_is_active(&c->deadline));
	assert_non_null(strstr(c->tls_text, "TLSv1.3"));
	client_close(c);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	assert_int_equal(cli.closed, 0);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	client_finish_disconnect(c);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	assert_ptr_equal(cli.closed_conn, c);
	client_assert_all_back();
}

CLIENT_TEST(life__without_region__qp_used_again)
{
	cli.cfg.region = false;
	client_rig_start();
	for (int i = 0; i < 3; i++) {
		struct client_conn *c = client_at(CLIENT_ST_LIVE);
		struct qp_pool_counts q;

		assert_int_equal(c->head.grant.features, 0);
		cli.closed = 0;
		client_close(c);
		client_finish_disconnect(c);
		client_assert_all_back();
		qp_pool_get_counts(cli.ctx->qps, &q);
		assert_true(q.free > 0);
		script_hang_up();
	}
}

CLIENT_TEST(connect__first_connection__its_queue_pair_was_ready)
{
	struct qp_pool_counts q;

	client_at(CLIENT_ST_LIVE);
	qp_pool_get_counts(cli.ctx->qps, &q);
	assert_int_equal(q.hits, 1);
	assert_int_equal(q.misses, 0);
}

CLIENT_TEST(deadline__in_every_stage__timeout_of_that_stage)
{
	for (size_t i = 0; i + 1 < N_ELEMENTS(stations); i++) {
		struct client_conn *c = client_at(stations[i]);

		client_expire(c);
		client_finish_disconnect(c);
		client_assert_failed(stage_at[i], FAIL_TIMEOUT, 0);
		assert_int_equal(cli.live, 0);
		client_rig_again(state);
	}
}

/* Makes the deadline expire while the connection is queued for its next step. */
static void expire_queued(struct client_conn *c)
{
	client_queue(c);
	ev_timer_stop(cli.loop, &c->deadline);
	ev_feed_event(cli.loop, &c->deadline, EV_TIMER);
	client_turn();
}

CLIENT_TEST(deadline__while_the_answer_waits_to_be_read__the_answer_counts)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	script_default_grant();
	script_grant();
	expire_queued(c);
	client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
	assert_true(ev_is_active(&c->deadline));
	assert_int_equal(cli.closed, 0);
}

CLIENT_TEST(deadline__while_nothing_waits_to_be_read__timeout)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	expire_queued(c);
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0);
}

CLIENT_TEST(close__in_every_state__told_once_without_failure)
{
	for (size_t i = 0; i < N_ELEMENTS(stations); i++) {
		struct client_conn *c = client_at(stations[i]);

		client_close(c);
		client_close(c);
		client_fail(c, FAIL_TIMEOUT, 0);
		assert_int_equal(cli.closed, 0);
		assert_null(c->io.tls);
		assert_int_equal(c->io.fd, -1);
		assert_false(ev_is_active(&c->io.watcher));
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
		client_rig_again(state);
	}
}

CLIENT_TEST(fail__twice__the_first_counts)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
	client_fail(c, FAIL_TIMEOUT, 0);
	client_close(c);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
}

CLIENT_TEST(deadline__disconnect_not_answered__over_all_the_same)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	client_close(c);
	for (int i = 0; i < 5; i++)
		client_turn();
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	client_expire(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

/* The device does not flush: its queue pair is not waited for for ever, and not used again. */
CLIENT_TEST(deadline__flushes_never_come__over_and_qp_destroyed)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	uint32_t qpn;

	qpn = c->link.rc.qp->qp_num;
	fake_device.swallows_flushes = true;
	client_close(c);
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	client_until(!c->cm_connected);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	client_expire(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
	assert_null(fake_qp_of(qpn));
}

CLIENT_TEST(device_event__queue_pair_failed__connection_fails)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	fake_async_qp(c->link.rc.qp, IBV_EVENT_QP_FATAL);
	client_until(c->state == CLIENT_ST_CLOSING);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_FATAL_ERR);
}

CLIENT_TEST(close__disconnect_fails__over_without_it)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	fake_fail_next("rdma_disconnect", EINVAL);
	client_close(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

CLIENT_TEST(close__inside_on_live__over)
{
	struct client_conn *c;

	cli.on_live = client_close;
	c = client_at(CLIENT_ST_FIRST_REPLY);
	assert_true(script_reply(c, 16, 0));
	assert_int_equal(cli.live, 1);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

CLIENT_TEST(close__inside_on_message__later_messages_not_told)
{
	struct client_conn *c;

	cli.on_message = client_close;
	c = client_at(CLIENT_ST_LIVE);
	for (uint64_t i = 1; i <= 3; i++)
		client_rig_send(c, 64, i);
	fake_complete_sends(c->link.rc.qp, 3, IBV_WC_SUCCESS);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(script_reply(c, 64, i));
	assert_int_equal(cli.messages, 1);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

CLIENT_TEST(close__inside_on_one_sided__over)
{
	struct client_conn *c;
	uint32_t buf;

	cli.on_one_sided = client_close;
	c = client_at(CLIENT_ST_LIVE);
	buf = ep_buf_get(cli.ctx->ep);
	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_READ, buf, 8, 0), 0);
	fake_complete_sends(c->link.rc.qp, 4, IBV_WC_SUCCESS);
	client_turn();
	assert_int_equal(cli.one_sided, 1);
	ep_buf_put(cli.ctx->ep, buf);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

/* on_closed has the failure all the same. */
CLIENT_TEST(close__inside_on_lost__failed_once)
{
	struct client_conn *c;

	cli.on_lost = client_close;
	c = client_at(CLIENT_ST_LIVE);
	client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
	assert_int_equal(cli.lost, 1);
	assert_int_equal(cli.fail.code, PROTO_BAD_PAYLOAD);
	cli.fail.code = 0;
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
}

static struct client_conn *second;

static void connect_anew(struct client_conn *c)
{
	(void)c;
	if (!second)
		second = client_connect(cli.ctx, clock_now_ns(), NULL);
}

CLIENT_TEST(connect__inside_on_closed__a_new_connection)
{
	struct client_conn *c;

	second = NULL;
	cli.on_closed = connect_anew;
	c = client_at(CLIENT_ST_ADDR_RESOLVE);
	client_close(c);
	client_until(cli.closed == 1);
	assert_non_null(second);
	assert_ptr_not_equal(second, c);
	script_hang_up();
	script_accept();
	client_until(second->state == CLIENT_ST_TLS_HANDSHAKE);
	assert_int_equal(cli.closed, 1);
}

CLIENT_TEST(connect__all_objects_in_use__null)
{
	client_rig_start();
	assert_non_null(client_connect(cli.ctx, 0, NULL));
	assert_non_null(client_connect(cli.ctx, 0, NULL));
	assert_null(client_connect(cli.ctx, 0, NULL));
}

CLIENT_TEST(ctx_free__connection_in_every_state__everything_released)
{
	for (size_t i = 0; i < N_ELEMENTS(stations); i++) {
		client_at(stations[i]);
		client_rig_again(state);	/* frees the context; the fakes check */
	}
}

static struct ep_counts bufs;	/* of the context that try_ctx made last */

static int try_ctx(char err[400])
{
	static const struct client_ops none;
	struct client_ctx *ctx = NULL;
	int ret;

	err[0] = '\0';
	ret = client_ctx_new(&cli.cfg, &none, NULL, cli.loop, &ctx, err, 400);
	if (ret)
		assert_null(ctx);
	else
		ep_get_counts(client_ep(ctx), &bufs);
	client_ctx_free(ctx);
	return ret;
}

CLIENT_TEST(ctx_new__every_library_call_fails_in_turn__all_released_and_explained)
{
	char err[400];
	unsigned k;

	for (k = 1; k < 100; k++) {
		int ret;

		fake_fail_at(k, ENOMEM);
		ret = try_ctx(err);
		if (!fake_failed()) {
			assert_int_equal(ret, 0);
			break;
		}
		assert_int_equal(ret, -ENOMEM);
		assert_true(strlen(err) > 20);
		assert_int_equal(fake_objects(), 0);
	}
	assert_true(k > 12);
}

CLIENT_TEST(ctx_new__cannot_work__says_why)
{
	char err[400];

	cli.cfg.ca_file = "/nonexistent/ca.pem";
	assert_int_equal(try_ctx(err), -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/ca.pem"));
	cli.cfg.ca_file = cli.certs.ca;
	cli.cfg.device = "mlx5_0";
	assert_int_equal(try_ctx(err), -ENODEV);
	assert_non_null(strstr(err, "--device mlx5_0"));
	cli.cfg.device = "fake0";
	assert_int_equal(try_ctx(err), 0);
	fake_cm.no_device = true;
	assert_int_equal(try_ctx(err), -ENODEV);
	assert_non_null(strstr(err, "no RDMA device has address 127.0.0.1"));
	fake_cm.no_device = false;
	cli.cfg.max_conns = 100000;
	assert_int_equal(try_ctx(err), -ENOSPC);
	assert_non_null(strstr(err, "--threads"));
}

/* Buffers are numbered, the last number means none: receives and buffers to send from share the numbers. */
CLIENT_TEST(ctx_new__as_many_buffers_as_can_be_numbered__clamped_or_refused)
{
	static const struct {
		int max_srq_wr;
		uint32_t max_conns, depth, inline_bytes;
		int ret;
	} cases[] = {
		{ 1 << 22, 1023, 1024, 220, 0 },
		{ 1 << 22, 1023, 1024, 0, 0 },
		{ 1 << 22, 1024, 1024, 220, -ENOSPC },
		{ 1 << 22, 1024, 1024, 0, -ENOSPC },
		{ EP_BATCH - 1, 1, 1, 220, -ENOSPC },
		{ EP_BATCH + 1, 1, 1, 220, 0 },
	};
	char err[400];

	fake_device.attr.max_cqe = 1 << 22;
	cli.cfg.message_bytes = cli.cfg.buffer_bytes = 16;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		fake_device.attr.max_srq_wr = cases[i].max_srq_wr;
		cli.cfg.max_conns = cases[i].max_conns;
		cli.cfg.depth = cases[i].depth;
		cli.cfg.inline_bytes = cases[i].inline_bytes;
		bufs.bufs_total = 0;
		assert_int_equal(try_ctx(err), cases[i].ret);
		assert_true(bufs.bufs_total <= EP_NO_BUF);
		if (!cases[i].ret)
			assert_int_equal(bufs.bufs_posted, cases[i].max_conns * cases[i].depth + EP_BATCH);
		else
			assert_non_null(strstr(err, "--inflight"));
	}
}

/* Told goodbye, the server has the stage's time to answer; one whose connection failed may be gone. */
CLIENT_TEST(close__after_a_failure__server_has_three_seconds)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	client_close(c);
	assert_true(ev_timer_remaining(cli.loop, &c->deadline) > 20);
	client_finish_disconnect(c);
	client_rig_again(state);
	c = client_at(CLIENT_ST_LIVE);
	client_fail(c, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
	assert_true(ev_timer_remaining(cli.loop, &c->deadline) <= 3);
	client_expire(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
}

TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
