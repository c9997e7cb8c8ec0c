/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of a client that meets a stale queue pair number: it begins again with another one, but not for ever. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/rdma/qp_pool.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

#define RETRIES 8

/* The server's kernel knows the client's number. */
static void reject_by_the_cm(struct client_conn *c)
{
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_REJECTED, FAIL_CM_STALE, 0, NULL, 0);
}

/* The client's kernel knows the server's number, and the server says so. */
static void reject_by_the_server(struct client_conn *c)
{
	uint8_t data[148] = { 0 };

	pdata_encode_reject(REFUSE_STALE, data);
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_REJECTED, CM_REJECT_CONSUMER, 0, data, sizeof(data));
}

static void (*const rejects[])(struct client_conn *c) = { reject_by_the_cm, reject_by_the_server };

static void begins_again(struct client_conn *c)
{
	/* TCP may be connected in the same turn. */
	client_until(c->state == CLIENT_ST_TCP_CONNECT || c->state == CLIENT_ST_TLS_HANDSHAKE);
	if (c->state == CLIENT_ST_TLS_HANDSHAKE)
		client_trigger(c, CLIENT_ST_TCP_CONNECT);
	assert_int_equal(cli.closed, 0);
	assert_int_equal(fake_cm_ids(), 0);
}

TEST(stale__rejected__live_with_another_queue_pair)
{
	for (size_t i = 0; i < N_ELEMENTS(rejects); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
		uint32_t qpn = rc_qpn(&c->link.rc), psn = c->psn;
		struct client_info info;

		rejects[i](c);
		begins_again(c);
		client_drive(c, CLIENT_ST_LIVE);
		client_get_info(c, &info);
		assert_int_equal(cli.live, 1);
		assert_int_equal(info.stale, 1);
		assert_int_not_equal(info.client_qpn, qpn);
		assert_int_equal(fake_cm_last(FAKE_CM_CONNECT)->param.qp_num, info.client_qpn);
		/* The first session's PSN may still be in use at the server. */
		assert_int_not_equal(c->psn, psn);
		client_close(c);
		client_finish_disconnect(c);
		assert_int_equal(cli.fail.kind, FAIL_NONE);
		client_assert_all_back();
		client_rig_again(state);
	}
}

TEST(stale__each_time__given_up_after_eight_more)
{
	static const struct { enum fail_kind kind; int code; } told[] = {
		{ FAIL_CM_STATUS, FAIL_CM_STALE }, { FAIL_REFUSED, REFUSE_STALE },
	};

	for (size_t i = 0; i < N_ELEMENTS(rejects); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

		for (int k = 0; k < RETRIES; k++) {
			rejects[i](c);
			begins_again(c);
			client_drive(c, CLIENT_ST_RDMA_CONNECT);
		}
		rejects[i](c);
		client_assert_failed(STAGE_RDMA_CONNECT, told[i].kind, told[i].code);
		assert_int_equal(fake_cm_calls(FAKE_CM_CONNECT), RETRIES + 1);
		client_rig_again(state);
	}
}

/* The number that the server's kernel knows is not used again: its queue pair is destroyed after its rest. */
TEST(stale__own_number__destroyed_after_its_rest)
{
	struct client_conn *c;
	uint32_t qpn;

	cli.cfg.region = false;
	c = client_at(CLIENT_ST_RDMA_CONNECT);
	qpn = rc_qpn(&c->link.rc);
	reject_by_the_cm(c);
	begins_again(c);
	assert_non_null(fake_qp_of(qpn));
	qp_pool_maintain(cli.ctx->qps, clock_now_ns() + 60 * NS_PER_S, 1000);
	assert_null(fake_qp_of(qpn));
	/* One that another reason ended is used again. */
	client_rig_again(state);
	cli.cfg.region = false;
	c = client_at(CLIENT_ST_RDMA_CONNECT);
	qpn = rc_qpn(&c->link.rc);
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_REJECTED, 8, 0, NULL, 0);
	client_assert_failed(STAGE_RDMA_CONNECT, FAIL_CM_STATUS, 8);
	assert_non_null(fake_qp_of(qpn));
}

/* A server that does not answer the disconnect may still know the number. */
TEST(close__unanswered__number_is_not_used_again)
{
	struct client_conn *c;
	uint32_t qpn;

	cli.cfg.region = false;
	c = client_at(CLIENT_ST_LIVE);
	qpn = rc_qpn(&c->link.rc);
	client_close(c);
	client_expire(c);
	client_until(cli.closed);
	client_assert_all_back();
	assert_null(fake_qp_of(qpn));
}

TEST(stale__closed_before_it_begins_again__over)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

	reject_by_the_cm(c);
	for (int i = 0; i < 200 && c->state == CLIENT_ST_RDMA_CONNECT; i++)
		client_on_cm_event(cli.ctx, &(struct cm_event){ .type = CM_REJECTED, .context = c,
								 .status = FAIL_CM_STALE });
	assert_true(c->again);
	client_close(c);
	client_until(cli.closed);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

TEST(stale__failed_by_its_user_before_it_begins_again__that_failure)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

	client_on_cm_event(cli.ctx, &(struct cm_event){ .type = CM_REJECTED, .context = c, .status = FAIL_CM_STALE });
	assert_true(c->again);
	client_fail(c, FAIL_TIMEOUT, 0);
	client_assert_failed(STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0);
}

/* A failure of the second attempt ends the connection like a failure of the first. */
TEST(stale__server_gone_then__its_failure)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

	reject_by_the_cm(c);
	begins_again(c);
	client_drive(c, CLIENT_ST_ROUTE_RESOLVE);
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, 0, NULL, 0);
	client_assert_failed(STAGE_ROUTE_RESOLVE, FAIL_CM_STATUS, -ETIMEDOUT);
}

TEST_EACH(client_rig_init, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
