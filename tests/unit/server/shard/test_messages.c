/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/messages.c: messages answered, buffers accounted for. */
#include "tests/unit/helpers/unit.h"

#include <arpa/inet.h>
#include <string.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_messages.h"
#include "tests/unit/helpers/server_rig.h"

LIVE_TEST(message__any_size__same_bytes_back_as_a_reply)
{
	static const uint32_t sizes[] = { 16, 17, 64, 220, 221, 1000, 1024 };

	for (uint32_t i = 0; i < N_ELEMENTS(sizes); i++) {
		assert_true(peer_message(&live, sizes[i]));
		server_turn();
		assert_int_equal(n_posts(), i + 1);
		assert_int_equal(post(i)->opcode, IBV_WR_SEND);
		assert_int_equal(post(i)->length, sizes[i]);
		assert_posted(i, MSG_REPLY, 1, i);
		for (uint32_t j = MSG_HEADER_BYTES; j < sizes[i] && j < 32; j++)
			assert_int_equal(post(i)->head[j], (uint8_t)(j + i));
		complete_sends(&live, 1);
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), N_ELEMENTS(sizes));
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), N_ELEMENTS(sizes));
	assert_int_equal(counter_get(&srv.shard->stats.bytes_in), 16 + 17 + 64 + 220 + 221 + 1000 + 1024);
	assert_int_equal(counter_get(&srv.shard->stats.bytes_out), 16 + 17 + 64 + 220 + 221 + 1000 + 1024);
}

/* The buffer goes out; another takes its place at once. */
LIVE_TEST(message__not_inline__srq_full_while_the_send_is_out)
{
	assert_true(peer_message(&live, 1000));
	server_turn();
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	assert_int_equal(counts().bufs_free, srv.bufs_free - 1);
	complete_sends(&live, 1);
	assert_int_equal(counts().bufs_free, srv.bufs_free);
}

TEST(message__before_established__counts_as_connected)
{
	struct peer p;

	server_start_accepting(&p, 0);
	p.qp = fake_qp_of(fake_cm_last(FAKE_CM_ACCEPT)->param.qp_num);
	fake_posts_forget();
	assert_true(peer_message(&p, 64));
	server_turn();
	server_only(CONN_ST_LIVE);
	assert_int_equal(n_posts(), 1);
	peer_establish(&p);
	assert_int_equal(counter_get(&srv.shard->stats.established), 1);
	peer_leave(&p);
}

LIVE_TEST(message__credits_at_once__all_echoed_many_times)
{
	for (int round = 0; round < 200; round++) {
		peer_messages(&live, 4, round % 2 ? 100 : 600);
		server_turns(2);
		complete_sends(&live, 4);
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), 800);
	for (uint32_t i = 0; i < 800; i++)
		assert_posted(i, MSG_REPLY, 1, i);
	server_only(CONN_ST_LIVE);
}

TEST(message__of_several_clients__each_gets_its_own)
{
	struct peer p[3];

	server_rig_start();
	peers_go_live(p, 3);
	fake_posts_forget();
	for (int round = 0; round < 4; round++)
		for (uint32_t i = 0; i < 3; i++)
			assert_true(peer_message(&p[i], 100 + i));
	server_turns(2);
	assert_int_equal(n_posts(), 12);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(post(i)->length, 100 + (post(i)->qpn == p[1].qp->qp_num) +
				 2 * (post(i)->qpn == p[2].qp->qp_num));
}

LIVE_TEST(one_way__asked_for_credit__all_since_the_last_in_one_answer)
{
	for (uint64_t i = 0; i < 12; i++) {
		assert_true(deliver_data(&live, i, i % 3 == 2 ? MSG_FLAG_ACK : 0));
		server_turn();
	}
	assert_int_equal(n_posts(), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(post(i)->length, MSG_HEADER_BYTES);
		assert_posted(i, MSG_CREDIT, 3, 3 * i + 2);
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 12);
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), 4);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
}

LIVE_TEST(one_way__checksum__right_and_wrong_ones_counted)
{
	struct msg_header h = { .type = MSG_DATA, .flags = MSG_FLAG_SUM | MSG_FLAG_ACK, .length = 64, .sequence = 9 };
	uint8_t data[64] = { 0 };

	assert_true(deliver_data(&live, 1, MSG_FLAG_SUM | MSG_FLAG_ACK));
	server_turn();
	assert_int_equal(counter_get(&srv.shard->stats.messages_checked), 1);
	assert_int_equal(counter_get(&srv.shard->stats.messages_corrupt), 0);
	msg_encode(&h, data);
	msg_seal(msg_sum_seed(live.grant.session, sizeof(live.grant.session)), data, sizeof(data));
	data[40] ^= 1;
	assert_true(fake_deliver(live.qp, data, sizeof(data)));
	server_turn();
	/* The checksum is that of another connection. */
	data[40] ^= 1;
	msg_seal(msg_sum_seed((const uint8_t *)"another one's id", 16), data, sizeof(data));
	assert_true(fake_deliver(live.qp, data, sizeof(data)));
	server_turn();
	assert_int_equal(counter_get(&srv.shard->stats.messages_checked), 3);
	assert_int_equal(counter_get(&srv.shard->stats.messages_corrupt), 2);
	assert_int_equal(n_posts(), 3);
}

static void deliver_tagged(struct peer *p, struct msg_tags *tags, enum msg_type type, uint8_t flags)
{
	struct msg_header h = { .type = type, .flags = (uint8_t)(flags | MSG_FLAG_TAG), .length = 64, .sequence = 3 };
	uint8_t data[64] = { 0 };

	msg_encode(&h, data);
	if (flags & MSG_FLAG_SUM)
		msg_seal(msg_sum_seed(p->grant.session, sizeof(p->grant.session)), data,
			 sizeof(data) - MSG_TAG_BYTES);
	assert_int_equal(msg_tag_write(tags, data, sizeof(data)), 0);
	assert_true(fake_deliver(p->qp, data, sizeof(data)));
	server_turn();
}

TEST(tags__right__answers_are_tagged_too)
{
	struct msg_tags *tags;
	struct msg_header h;
	struct peer p;

	tags = start_tagged(&p);
	for (uint32_t i = 0; i < 3; i++) {
		deliver_tagged(&p, tags, MSG_DATA, MSG_FLAG_ACK | MSG_FLAG_SUM);
		assert_int_equal(n_posts(), i + 1);
		assert_int_equal(post(i)->length, MSG_HEADER_BYTES + MSG_TAG_BYTES);
		assert_int_equal(msg_decode(post(i)->head, post(i)->length, &h), 0);
		assert_int_equal(h.flags, MSG_FLAG_TAG);
		assert_true(msg_tag_check(tags, post(i)->head, post(i)->length));
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_checked), 3);
	assert_int_equal(counter_get(&srv.shard->stats.messages_corrupt), 0);
	msg_tags_free(tags);
	peer_leave(&p);
}

LIVE_TEST(joined__several_sends__messages_counted_and_a_credit_for_each_send)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct joined j = { .peer = &live };

		for (int k = 0; k < 5; k++)
			join(&j, MSG_DATA, 0);
		deliver_joined(&j);
		assert_int_equal(n_posts(), i);
		j = (struct joined){ .peer = &live };
		for (int k = 0; k < 4; k++)
			join(&j, MSG_DATA, k == 3 ? MSG_FLAG_ACK : 0);
		deliver_joined(&j);
		assert_int_equal(n_posts(), i + 1);
		assert_posted(i, MSG_CREDIT, 2, 103);
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 27);
	assert_int_equal(counter_get(&srv.shard->stats.bytes_in), 27 * JOINED_BYTES);
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), 3);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
}

LIVE_TEST(joined__lengths_that_differ__taken)
{
	struct joined j = { .peer = &live };

	join_bytes(&j, MSG_DATA, 0, 16);
	join_bytes(&j, MSG_DATA, MSG_FLAG_SUM, 21);
	join_bytes(&j, MSG_DATA, 0, 100);
	join_bytes(&j, MSG_DATA, MSG_FLAG_SUM | MSG_FLAG_ACK, 20);
	deliver_joined(&j);
	assert_counted(4, 2, 0);
	assert_int_equal(n_posts(), 1);
}

TEST(joined__as_many_as_may_be__taken_and_one_more_dropped)
{
	struct peer p;
	struct joined j = { .peer = &p };

	srv.cfg.message_bytes = sizeof(j.data);
	start_live(&p);
	for (int k = 0; k < MSG_JOINED_MAX; k++)
		join_bytes(&j, MSG_DATA, 0, 16);
	deliver_joined(&j);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), MSG_JOINED_MAX);
	server_only(CONN_ST_LIVE);
	join_bytes(&j, MSG_DATA, MSG_FLAG_ACK, 16);
	deliver_joined(&j);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), MSG_JOINED_MAX);
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

TEST(joined__with_tags__in_their_order)
{
	struct msg_tags *tags;
	struct peer p;

	tags = start_tagged(&p);
	for (uint32_t i = 0; i < 3; i++) {
		struct joined j = { .peer = &p, .tags = tags };

		for (int k = 0; k < 4; k++)
			join(&j, MSG_DATA, (uint8_t)(MSG_FLAG_SUM | (k == 3 ? MSG_FLAG_ACK : 0)));
		deliver_joined(&j);
		assert_int_equal(n_posts(), i + 1);
		assert_true(msg_tag_check(tags, post(i)->head, MSG_HEADER_BYTES + MSG_TAG_BYTES));
	}
	assert_counted(12, 12, 0);
	msg_tags_free(tags);
	peer_leave(&p);
}

LIVE_TEST(joined__checksum_of_the_second_wrong__counted_and_answered)
{
	struct joined j = { .peer = &live };

	for (int k = 0; k < 3; k++)
		join(&j, MSG_DATA, (uint8_t)(MSG_FLAG_SUM | (k == 2 ? MSG_FLAG_ACK : 0)));
	j.data[JOINED_BYTES + 30] ^= 1;
	deliver_joined(&j);
	assert_counted(3, 3, 1);
	assert_int_equal(n_posts(), 1);
}

LIVE_TEST(ping__any_size__same_bytes_and_number_back)
{
	static const uint32_t sizes[] = { 0, 1, 15, 64, 300, 1024 };
	uint8_t data[1024];

	for (uint32_t i = 0; i < N_ELEMENTS(sizes); i++) {
		memset(data, (int)i + 1, sizeof(data));
		assert_true(fake_deliver_imm(live.qp, data, sizes[i], 0x1000 + i));
		server_turn();
		assert_int_equal(n_posts(), i + 1);
		assert_int_equal(post(i)->opcode, IBV_WR_SEND_WITH_IMM);
		assert_int_equal(post(i)->imm, 0x1000 + i);
		assert_int_equal(post(i)->length, sizes[i]);
		for (uint32_t k = 0; k < sizes[i] && k < 32; k++)
			assert_int_equal(post(i)->head[k], i + 1);
		complete_sends(&live, 1);
	}
}

#define WRITES_IMM (FRAME_FEATURE_REGION | FRAME_FEATURE_WRITE_IMM)

TEST(write_imm__asked_for__its_credit_comes_back_with_the_number)
{
	struct peer p;

	server_start_live(&p, WRITES_IMM);
	fake_posts_forget();
	for (uint32_t i = 0; i < 20; i++) {
		/* Larger than any receive buffer: it went to the region. */
		assert_true(fake_deliver_write_imm(p.qp, 1 << 20, htonl(1000 + i)));
		server_turn();
		assert_int_equal(n_posts(), i + 1);
		assert_posted(i, MSG_CREDIT, 1, 1000 + i);
		complete_sends(&p, 1);
	}
	assert_counted(20, 0, 0);
	peer_leave(&p);
}

TEST(write_imm__behind_one_way_messages__their_credits_too)
{
	struct peer p;

	server_start_live(&p, WRITES_IMM);
	fake_posts_forget();
	assert_true(deliver_data(&p, 1, 0));
	assert_true(deliver_data(&p, 2, 0));
	assert_true(fake_deliver_write_imm(p.qp, 64, htonl(3)));
	server_turns(2);
	assert_int_equal(n_posts(), 1);
	assert_posted(0, MSG_CREDIT, 3, 3);
	complete_sends(&p, 1);
	peer_leave(&p);
}

TEST(write_imm__not_asked_for__dropped)
{
	struct peer p;

	server_start_live(&p, FRAME_FEATURE_REGION);
	assert_true(fake_deliver_write_imm(p.qp, 64, htonl(1)));
	server_turn();
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

/* As with SENDs: one more than the credits, at one look. */
TEST(write_imm__beyond_the_credits__dropped)
{
	struct peer p;

	server_start_live(&p, WRITES_IMM);
	for (uint32_t i = 0; i <= p.grant.credits; i++)
		assert_true(fake_deliver_write_imm(p.qp, 64, htonl(i)));
	server_turn();
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_CREDITS);
}

TEST(messages__of_one_batch__answered_with_one_doorbell)
{
	struct peer p;

	srv.cfg.tuning.post_list = 16;
	start_live(&p);
	peer_messages(&p, 4, 64);
	server_turns(2);
	assert_int_equal(n_posts(), 4);
	assert_int_equal(fake_doorbells(), 1);
	peer_leave(&p);
}

TEST(receive__of_a_queue_pair_nobody_has__buffer_back)
{
	struct peer p;

	start_live(&p);
	conn_close(server_only(CONN_ST_LIVE), CLOSE_DRAINING);
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(n_posts(), 1);	/* the beacon */
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	peer_leave(&p);
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 0);
	server_assert_all_back();
}

LIVE_TEST(close__answers_waiting_for_the_send_queue__dropped_with_it)
{
	for (int i = 0; i < 8; i++) {
		assert_true(peer_message(&live, 800));
		server_turn();
	}
	assert_true(server_only(CONN_ST_LIVE)->link.rc.waiting_n > 0);
}

LIVE_TEST(buffers__none_free__receives_made_up_for_later)
{
	uint32_t taken[4096], n = 0;

	while ((taken[n] = ep_buf_get(srv.shard->ep)) != EP_NO_BUF)
		n++;
	peer_messages(&live, 3, 800);
	server_turns(2);
	assert_int_equal(counts().bufs_short, 3);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted - 3);
	assert_int_equal(counter_get(&srv.shard->stats.receive_shortfalls), 3);
	fake_complete_sends(live.qp, 2, IBV_WC_SUCCESS);
	server_turns(2);
	assert_int_equal(counts().bufs_short, 1);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted - 1);
	fake_complete_sends(live.qp, 1, IBV_WC_SUCCESS);
	server_turns(2);
	assert_int_equal(counts().bufs_short, 0);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	while (n)
		ep_buf_put(srv.shard->ep, taken[--n]);
}

TEST(completion__of_an_earlier_life__nothing_happens)
{
	struct peer p, next;
	struct wr w = { .type = WR_SEND, .covers = 1 };
	struct ibv_wc wc = { .status = IBV_WC_RETRY_EXC_ERR };
	struct conn *c = server_start_live(&p, 0);

	w.qp_slot = c->link.rc.slot;
	w.generation = wr_unpack(c->link.rc.id_base).generation;
	/* The one that just rested is the next to be taken, if no others are made meanwhile. */
	fake_device.attr.max_qp = (int)fake_qps();
	peer_leave(&p);
	peer_go_live(&next, 0);
	c = server_only(CONN_ST_LIVE);
	assert_int_equal(c->link.rc.slot, w.qp_slot);
	w.buf = ep_buf_get(srv.shard->ep);
	wc.wr_id = wr_pack(&w);
	fake_push_wc(next.qp->send_cq, &wc);
	server_turns(2);
	assert_int_equal(c->state, CONN_ST_LIVE);
	assert_int_equal(c->link.rc.sq_used, 0);
	/* The end of that life freed its buffers; this one is somebody else's by now. */
	assert_int_equal(counts().bufs_free, srv.bufs_free - 1);
	ep_buf_put(srv.shard->ep, w.buf);
	peer_leave(&next);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
