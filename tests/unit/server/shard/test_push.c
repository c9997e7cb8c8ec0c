/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of pushes in server/shard/messages.c: what is WRITTEN where, in which order, and what is refused. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_messages.h"
#include "tests/unit/helpers/server_rig.h"

#define FEATURES (FRAME_FEATURE_REGION | FRAME_FEATURE_WINDOW)

static const struct fake_post *posts(uint32_t n_wanted)
{
	assert_int_equal(n_posts(), n_wanted);
	return post(0);
}

static void start_with(struct peer *p, uint16_t features)
{
	srv.cfg.windows = 1;
	server_start_live(p, features);
	fake_posts_forget();
}

static int set_up(void **state)
{
	int ret = server_rig_init(state);

	start_with(&live, FEATURES);
	return ret;
}

/* Begins with a live peer that has a region and a window. */
#define PUSH_TEST(f) TEST_WITH(f, set_up, server_rig_stop)

static void ask(struct peer *p, uint64_t region_offset, uint64_t window_offset, uint32_t bytes)
{
	struct msg_push push = { region_offset, window_offset, bytes };
	uint8_t data[MSG_HEADER_BYTES + MSG_PUSH_BYTES];
	struct msg_header h = { .type = MSG_PUSH, .length = sizeof(data), .sequence = p->sequence++ };

	msg_encode(&h, data);
	msg_put_push(&push, data);
	assert_true(fake_deliver(p->qp, data, sizeof(data)));
}

static void assert_pushed(uint32_t i, uint64_t sequence)
{
	assert_int_equal(post(i)->opcode, IBV_WR_SEND);
	assert_int_equal(post(i)->length, MSG_HEADER_BYTES);
	assert_posted(i, MSG_PUSHED, 1, sequence);
}

/* Asks for what it may not have, and is dropped. */
static void ask_and_be_dropped(struct peer *p, const struct msg_push *wrong)
{
	ask(p, wrong->region_offset, wrong->window_offset, wrong->bytes);
	server_turns(2);
	peer_assert_dropped(p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

PUSH_TEST(push__within_region_and_window__written_then_answered)
{
	const struct fake_post *w;

	assert_int_equal(live.grant.features, FEATURES);
	live.sequence = UINT64_C(0x1122334455667788);
	memset((void *)(uintptr_t)(live.grant.region_addr + 96), 0x5a, 32);
	ask(&live, 96, 8000, 192);
	server_turn();
	w = posts(2);
	assert_int_equal(fake_doorbells(), 1);
	assert_int_equal(w->opcode, IBV_WR_RDMA_WRITE);
	assert_true(w->addr == live.grant.region_addr + 96);
	assert_int_equal(w->length, 192);
	assert_int_not_equal(w->lkey, ep_lkey(srv.shard->ep));
	assert_int_equal(w->head[0], 0x5a);
	assert_true(w->remote_addr == PEER_WINDOW_ADDR + 8000);
	assert_int_equal(w->rkey, PEER_WINDOW_RKEY);
	assert_false(w->flags & IBV_SEND_SIGNALED);
	assert_pushed(1, UINT64_C(0x1122334455667788));
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 1);
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), 1);
	assert_int_equal(counter_get(&srv.shard->stats.bytes_in), MSG_HEADER_BYTES + MSG_PUSH_BYTES);
	assert_int_equal(counter_get(&srv.shard->stats.bytes_out), MSG_HEADER_BYTES + 192);
	peer_leave(&live);
}

PUSH_TEST(push__whole_region__also_the_last_byte_of_it_and_of_the_window)
{
	ask(&live, 0, PEER_WINDOW_BYTES - 4096, 4096);
	ask(&live, 4095, PEER_WINDOW_BYTES - 1, 1);
	server_turns(2);
	assert_int_equal(posts(4)[0].length, 4096);
	assert_int_equal(posts(4)[2].length, 1);
	peer_leave(&live);
}

TEST(push__outside__dropped)
{
	static const struct msg_push cases[] = {
		{ 0, 0, 0 }, { 0, 0, 4097 }, { 1, 0, 4096 }, { 4096, 0, 1 }, { UINT64_MAX, 0, 1 },
		{ UINT64_MAX - 3, 0, 8 }, { 0, 8192, 1 }, { 0, 8185, 8 }, { 0, UINT64_MAX, 1 },
		{ 0, UINT64_MAX - 7, 16 },
		{ 0, 0, UINT32_MAX },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;

		start_with(&p, FEATURES);
		ask_and_be_dropped(&p, &cases[i]);
		assert_int_equal(counter_get(&srv.shard->stats.messages_out), 0);
		server_rig_again(state);
	}
}

TEST(push__more_than_the_device_moves__dropped)
{
	struct peer p;

	fake_device.port.max_msg_sz = 1024;
	start_with(&p, FEATURES);
	ask(&p, 0, 0, 1024);
	server_turns(2);
	server_only(CONN_ST_LIVE);
	ask_and_be_dropped(&p, &(struct msg_push){ .bytes = 1025 });
}

TEST(push__without_a_window__dropped)
{
	static const uint16_t features[] = { 0, FRAME_FEATURE_REGION };

	for (size_t i = 0; i < N_ELEMENTS(features); i++) {
		struct peer p;

		start_with(&p, features[i]);
		ask_and_be_dropped(&p, &(struct msg_push){ .bytes = 16 });
		server_rig_again(state);
	}
}

/* A window is of one connection. */
PUSH_TEST(push__by_the_next_client_of_the_same_object__has_no_window)
{
	peer_leave(&live);
	peer_go_live(&live, FRAME_FEATURE_REGION);
	assert_int_equal(server_only(CONN_ST_LIVE)->window.bytes, 0);
	ask_and_be_dropped(&live, &(struct msg_push){ .bytes = 16 });
}

PUSH_TEST(push__to_the_wrong_key__failed_with_its_status)
{
	for (int i = 0; i < 4; i++)
		ask(&live, 0, 0, 1000);
	server_turns(2);
	fake_complete_sends(live.qp, 1, IBV_WC_REM_ACCESS_ERR);
	/* Nobody waits for a completion of inline answers: it is found with the next that wakes the thread. */
	ep_sweep(srv.shard->ep);
	assert_true(peer_message(&live, 64));
	server_turns(2);
	peer_assert_dropped(&live, FAIL_WC_STATUS, IBV_WC_REM_ACCESS_ERR);
}

PUSH_TEST(push__credits_at_once__all_written_and_answered_in_order)
{
	const struct fake_post *w;

	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 4; i++)
			ask(&live, 0, i * 1000, 1000);
		server_turns(2);
		complete_sends(&live, 8);
	}
	w = posts(800);
	for (uint32_t i = 0; i < 400; i++) {
		assert_true(w[2 * i].remote_addr == PEER_WINDOW_ADDR + i % 4 * 1000);
		assert_pushed(2 * i + 1, i);
	}
	server_only(CONN_ST_LIVE);
	peer_leave(&live);
}

PUSH_TEST(push__more_than_its_credits_at_once__dropped)
{
	for (int i = 0; i < 5; i++)
		ask(&live, 0, 0, 1000);
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 4);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

/* The client never acknowledges the writes that it asks for, and goes on asking. */
PUSH_TEST(push__without_end_while_none_is_acknowledged__dropped)
{
	int messages = 0;

	for (; messages < 100 && server_n(CONN_ST_LIVE); messages++) {
		ask(&live, 0, 0, 1000);
		server_turn();
	}
	/* Half of the send queue's entries, as many again as it has credits waiting, and one too many. */
	assert_in_range(messages, 8, 13);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

PUSH_TEST(push__tagged__answer_is_tagged_too)
{
	uint8_t server_keys[2 * MSG_TAG_KEY_BYTES] = { 1 }, peer_keys[2 * MSG_TAG_KEY_BYTES] = { 1 };
	uint8_t data[MSG_HEADER_BYTES + MSG_PUSH_BYTES + MSG_TAG_BYTES] = { 0 };
	struct msg_header h = { .type = MSG_PUSH, .flags = MSG_FLAG_TAG, .length = sizeof(data) };
	struct msg_tags *tags;

	assert_int_equal(msg_tags_new(server_keys, false, &server_only(CONN_ST_LIVE)->tags), 0);
	assert_int_equal(msg_tags_new(peer_keys, true, &tags), 0);
	msg_encode(&h, data);
	msg_put_push(&(struct msg_push){ 0, 0, 100 }, data);
	assert_int_equal(msg_tag_write(tags, data, sizeof(data)), 0);
	assert_true(fake_deliver(live.qp, data, sizeof(data)));
	server_turn();
	assert_int_equal(posts(2)[0].length, 100);
	assert_int_equal(posts(2)[1].length, MSG_HEADER_BYTES + MSG_TAG_BYTES);
	assert_true(msg_tag_check(tags, posts(2)[1].head, MSG_HEADER_BYTES + MSG_TAG_BYTES));
	msg_tags_free(tags);
	peer_leave(&live);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
