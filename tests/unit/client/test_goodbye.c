/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of what a client makes of the server's goodbye. */
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/unit.h"

#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"

static void goodbye(struct client_conn *c, uint64_t reason)
{
	struct msg_header h = { .type = MSG_GOODBYE, .length = MSG_HEADER_BYTES, .sequence = reason };
	uint8_t data[MSG_HEADER_BYTES];

	msg_encode(&h, data);
	assert_true(fake_deliver(c->link.rc.qp, data, sizeof(data)));
	client_turn();
}

static void assert_drained(struct client_conn *c, enum stage stage)
{
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	client_finish_disconnect(c);
	client_assert_failed(stage, FAIL_CLOSED, REFUSE_DRAINING);
}

TEST(goodbye__nothing_in_flight__ends_at_once)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	goodbye(c, REFUSE_DRAINING);
	assert_int_equal(cli.draining, 1);
	assert_int_equal(cli.lost, 1);
	assert_drained(c, STAGE_TRAFFIC);
}

TEST(goodbye__messages_in_flight__answers_come_first)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	for (uint64_t i = 1; i <= 3; i++)
		client_rig_send(c, 64, i);
	goodbye(c, REFUSE_DRAINING);
	assert_int_equal(cli.draining, 1);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(c->state, CLIENT_ST_LIVE);
		assert_true(script_reply(c, 64, i));
	}
	assert_int_equal(cli.messages, 3);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	assert_drained(c, STAGE_TRAFFIC);
}

TEST(goodbye__request_on_the_region_in_flight__is_done_first)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	uint32_t buf = ep_buf_get(cli.ctx->ep);

	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_READ, buf, 64, 0), 0);
	goodbye(c, REFUSE_DRAINING);
	assert_int_equal(c->state, CLIENT_ST_LIVE);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_turn();
	assert_int_equal(cli.one_sided, 1);
	ep_buf_put(cli.ctx->ep, buf);
	assert_drained(c, STAGE_TRAFFIC);
}

/* The user has not begun anything. */
TEST(goodbye__before_the_first_reply__ends_at_once)
{
	struct client_conn *c = client_at(CLIENT_ST_FIRST_REPLY);

	goodbye(c, REFUSE_DRAINING);
	assert_int_equal(cli.live, 0);
	assert_int_equal(cli.draining, 0);
	assert_drained(c, STAGE_FIRST_REPLY);
}

TEST(goodbye__then_cut_off__named_after_the_goodbye)
{
	for (int broken = 0; broken < 2; broken++) {
		struct client_conn *c = client_at(CLIENT_ST_LIVE);

		fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS); /* of the first message */
		client_turn();
		client_rig_send(c, 300, 1);
		goodbye(c, REFUSE_DRAINING);
		if (broken)
			fake_complete_sends(c->link.rc.qp, 1, IBV_WC_RETRY_EXC_ERR);
		else
			fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
		client_turn();
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, REFUSE_DRAINING);
		client_rig_again(state);
	}
}

TEST(goodbye__unknown_reason_or_twice__protocol)
{
	static const uint64_t reasons[] = { 0, REFUSE_BUSY, UINT64_MAX, REFUSE_DRAINING | UINT64_C(1) << 32 };
	struct client_conn *c;

	for (size_t i = 0; i <= N_ELEMENTS(reasons); i++) {
		c = client_at(CLIENT_ST_LIVE);
		client_rig_send(c, 64, 1);
		if (i == N_ELEMENTS(reasons))
			goodbye(c, REFUSE_DRAINING);
		goodbye(c, i < N_ELEMENTS(reasons) ? reasons[i] : REFUSE_DRAINING);
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		client_rig_again(state);
	}
}

TEST_EACH(client_rig_init, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
