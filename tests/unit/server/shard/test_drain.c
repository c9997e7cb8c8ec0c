/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the drain of server/shard/: live clients get what they are owed and a goodbye, and are waited for. */
#include "tests/unit/helpers/server_messages.h"
#include "tests/unit/helpers/server_rig.h"
#include "tests/unit/helpers/unit.h"

#include "common/base/clock.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/moved_clock.h"

static void assert_goodbye(uint32_t i)
{
	assert_posted(i, MSG_GOODBYE, 0, REFUSE_DRAINING);
}

static enum msg_type type_of(uint32_t i)
{
	return (enum msg_type)post(i)->head[0];
}

TEST(drain__idle_client__told_and_waited_for)
{
	struct peer p;

	start_live(&p);
	server_drain();
	assert_int_equal(n_posts(), 1);
	assert_goodbye(0);
	server_turns(4);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), p.disconnects);
	assert_int_equal(n_posts(), 1);
	/* It leaves because it was told to. */
	peer_disconnect(&p);
	assert_int_equal(server_closed(CLOSE_DRAINING), 1);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 0);
	server_assert_all_back();
}

/* As many as it has credits for were there when the server was told to stop, and nobody had looked. */
LIVE_TEST(drain__requests_arrived__answered_before_the_goodbye)
{
	peer_messages(&live, live.grant.credits, 64);
	server_drain();
	assert_int_equal(n_posts(), live.grant.credits + 1u);
	for (uint32_t i = 0; i < live.grant.credits; i++)
		assert_int_equal(type_of(i), MSG_REPLY);
	assert_goodbye(live.grant.credits);
}

LIVE_TEST(drain__requests_still_arriving__answered)
{
	server_drain();
	peer_messages(&live, live.grant.credits, 64);
	server_turns(2);
	assert_int_equal(n_posts(), live.grant.credits + 1u);
	assert_int_equal(type_of(live.grant.credits), MSG_REPLY);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
}

/* The client would wait for them, and cannot ask for them any more. */
LIVE_TEST(drain__one_way_messages_owed__credits_come_back)
{
	assert_true(deliver_data(&live, 7, 0));
	assert_true(deliver_data(&live, 8, 0));
	server_drain();
	assert_int_equal(n_posts(), 2);
	assert_posted(0, MSG_CREDIT, 2, 8);
	assert_goodbye(1);
	/* One that crossed the goodbye did not ask either. */
	assert_true(deliver_data(&live, 9, 0));
	server_turns(2);
	assert_posted(2, MSG_CREDIT, 1, 9);
}

TEST(drain__tagged_client__tagged_goodbye)
{
	struct peer p;
	struct msg_tags *tags = start_tagged(&p);

	server_drain();
	assert_int_equal(type_of(0), MSG_GOODBYE);
	assert_true(msg_tag_check(tags, post(0)->head, MSG_HEADER_BYTES + MSG_TAG_BYTES));
	msg_tags_free(tags);
	peer_leave(&p);
}

TEST(drain__being_accepted__told_when_live)
{
	struct peer p;

	server_start_accepting(&p, 0);
	shard_drain(srv.shard);
	server_turns(2);
	assert_int_equal(server_n(CONN_ST_ACCEPTING), 1);
	peer_establish(&p);
	server_until(server_only(CONN_ST_LIVE)->told);
	peer_leave(&p);
}

LIVE_TEST(drain__no_buffer__told_when_there_is_one)
{
	uint32_t bufs[512], n = 0, buf;

	while ((buf = ep_buf_get(srv.shard->ep)) != EP_NO_BUF) {
		assert_true(n < N_ELEMENTS(bufs));
		bufs[n++] = buf;
	}
	shard_drain(srv.shard);
	for (int i = 0; i < 5; i++)
		server_wait();
	assert_int_equal(n_posts(), 0);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	while (n)
		ep_buf_put(srv.shard->ep, bufs[--n]);
	server_until(server_only(CONN_ST_LIVE)->told);
}

/* It goes on as if nothing had been said. */
TEST(drain__client_never_stops_sending__cut_off_at_the_deadline)
{
	uint64_t start;
	struct peer p;

	srv.cfg.drain_timeout_ns = 200 * NS_PER_MS;
	start_live(&p);
	start = clock_now_ns();
	shard_drain(srv.shard);
	server_turns(2);
	while (!server_is_over()) {
		assert_true(clock_now_ns() - start < 5 * NS_PER_S);
		assert_true(peer_message(&p, 64));
		server_wait();
		fake_complete_sends(p.qp, 9, IBV_WC_SUCCESS);
	}
	assert_true(clock_now_ns() - start >= 200 * NS_PER_MS);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
