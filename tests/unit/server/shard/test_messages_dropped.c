/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/messages.c: clients that are dropped, for what they sent or because no answer goes out. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_messages.h"
#include "tests/unit/helpers/server_rig.h"

/* What a client does, and the reason with which the server drops it. */
struct drop {
	const char *name;
	void (*act)(struct peer *p, const struct drop *d);
	bool tagged;			/* the connection has tags: `tags` */
	uint64_t message_bytes;		/* --message-size; 0: the rig's */
	uint64_t post_list;		/* 0: the rig's */
	uint8_t at, is;			/* send_header: a byte of the header, and what it becomes */
	uint32_t bytes;			/* send_header: of the message */
	uint32_t n;			/* of messages, or which one */
	uint64_t in;			/* messages that count */
	uint32_t posts;			/* work requests, the beacon among them; 0: any number */
	enum fail_kind kind;
	int code;
};

static struct msg_tags *tags;		/* the peer's; NULL: none */

static void send_header(struct peer *p, const struct drop *d)
{
	struct msg_header h = { .type = MSG_ECHO, .length = d->bytes, .sequence = 1 };
	uint8_t data[64] = { 0 };

	msg_encode(&h, data);
	data[d->at] = d->is;
	assert_true(fake_deliver(p->qp, data, d->bytes));
}

static void send_echoes(struct peer *p, const struct drop *d)
{
	peer_messages(p, d->n, 64);
}

static void send_ping(struct peer *p, const struct drop *d)
{
	static const uint8_t data[1024];

	assert_true(fake_deliver_imm(p->qp, data, d->bytes, 1));
}

static void send_tagged_echo(struct peer *p, const struct drop *d)
{
	struct msg_header h = { .type = MSG_ECHO, .flags = MSG_FLAG_TAG, .length = 64 };
	uint8_t data[64] = { 0 };

	(void)d;
	msg_encode(&h, data);
	assert_true(fake_deliver(p->qp, data, sizeof(data)));
}

static void send_bad_and_good_ones(struct peer *p, const struct drop *d)
{
	static const uint8_t bad[16] = { 9 };

	assert_true(fake_deliver(p->qp, bad, sizeof(bad)));
	send_echoes(p, d);
}

static void fail_to_answer(struct peer *p, const struct drop *d)
{
	fake_fail_next("ibv_post_send", ENOMEM);
	send_echoes(p, d);
}

static void receive_error(struct peer *p, const struct drop *d)
{
	assert_true(fake_deliver_error(p->qp, (enum ibv_wc_status)d->code));
}

static struct joined join_data(struct peer *p, uint32_t n)
{
	struct joined j = { .peer = p, .tags = tags };

	while (n--)
		join(&j, MSG_DATA, 0);
	return j;
}

static void join_many(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);

	deliver_joined(&j);
}

static void join_a_cut_one(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);

	j.bytes--;
	deliver_joined(&j);
}

static void join_a_short_tail(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);

	j.bytes += MSG_HEADER_BYTES - 1;
	deliver_joined(&j);
}

static void join_an_echo(struct peer *p, const struct drop *d)
{
	struct joined j = { .peer = p };

	for (uint32_t k = 0; k < 3; k++)
		join(&j, k == d->n ? MSG_ECHO : MSG_DATA, 0);
	deliver_joined(&j);
}

static void join_two_that_ask(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);

	join(&j, MSG_DATA, MSG_FLAG_ACK);
	join(&j, MSG_DATA, MSG_FLAG_ACK);
	deliver_joined(&j);
}

static void join_a_wrong_tag(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, 3);

	j.data[d->n * JOINED_BYTES - 1] ^= 1;
	deliver_joined(&j);
}

static void join_swapped(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);
	uint8_t first[JOINED_BYTES];

	memcpy(first, j.data, sizeof(first));
	memcpy(j.data, j.data + JOINED_BYTES, JOINED_BYTES);
	memcpy(j.data + JOINED_BYTES, first, sizeof(first));
	deliver_joined(&j);
}

static void join_one_without_a_tag(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, d->n);

	j.tags = NULL;
	join(&j, MSG_DATA, 0);
	deliver_joined(&j);
}

/* `n` SENDs of two messages in one batch of completions. */
static void join_many_at_once(struct peer *p, const struct drop *d)
{
	struct joined j = join_data(p, 1);

	join(&j, MSG_DATA, MSG_FLAG_ACK);
	for (uint32_t k = 0; k < d->n; k++)
		assert_true(fake_deliver(p->qp, j.data, j.bytes));
}

#define BROKE(rule) .kind = FAIL_PROTOCOL, .code = PROTO_##rule
#define HEADER(place, byte, size) .act = send_header, .at = place, .is = byte, .bytes = size, BROKE(BAD_MESSAGE)
#define JOINED(function, count, rule) .act = function, .n = count, .posts = 1, BROKE(rule)
#define TAGGED(function, count) JOINED(function, count, BAD_TAG), .tagged = true

static const struct drop drops[] = {
	{ "message__unknown_type__dropped", HEADER(0, 7, 64) },
	{ "message__of_a_server__dropped", HEADER(0, MSG_REPLY, 64) },
	{ "message__with_flags__dropped", HEADER(1, 1, 64) },
	{ "message__length_not_the_received__dropped", HEADER(7, 65, 64) },
	{ "message__shorter_than_a_header__dropped", HEADER(0, MSG_ECHO, 15) },
	{ "message__empty__dropped", HEADER(0, MSG_ECHO, 0) },
	{ "message__more_than_its_credits_at_once__dropped", .act = send_echoes, .n = 5, .in = 4, BROKE(CREDITS) },
	{ "receives__several_and_the_first_is_bad__rest_ignored", .act = send_bad_and_good_ones, .n = 2,
	  BROKE(BAD_MESSAGE) },
	{ "receive__error_status__dropped", .act = receive_error, .kind = FAIL_WC_STATUS, .code = IBV_WC_LOC_LEN_ERR },
	{ "send__cannot_be_posted__dropped_and_buffers_back", .act = fail_to_answer, .n = 1, .in = 1,
	  .kind = FAIL_WC_STATUS, .code = IBV_WC_LOC_QP_OP_ERR },
	{ "messages__of_one_batch_cannot_be_answered__dropped", .act = fail_to_answer, .n = 1, .in = 1,
	  .post_list = 16, .kind = FAIL_WC_STATUS, .code = IBV_WC_LOC_QP_OP_ERR },
	{ "ping__above_the_message_size__dropped", .act = send_ping, .bytes = 1001, .message_bytes = 1000,
	  BROKE(BAD_MESSAGE) },
	{ "tags__ping__dropped", .act = send_ping, .bytes = 1, .tagged = true, BROKE(BAD_TAG) },
	{ "tags__message_without__dropped", .act = send_echoes, .n = 1, .tagged = true, BROKE(BAD_TAG) },
	{ "tags__not_agreed_on__dropped", .act = send_tagged_echo, BROKE(BAD_TAG) },
	{ "joined__last_one_says_more_than_is_left__dropped", JOINED(join_a_cut_one, 2, BAD_MESSAGE) },
	{ "joined__tail_shorter_than_a_header__dropped", JOINED(join_a_short_tail, 2, BAD_MESSAGE) },
	{ "joined__echo_first__dropped", JOINED(join_an_echo, 0, BAD_MESSAGE) },
	{ "joined__echo_among_them__dropped", JOINED(join_an_echo, 1, BAD_MESSAGE) },
	{ "joined__echo_last__dropped", JOINED(join_an_echo, 2, BAD_MESSAGE) },
	{ "joined__one_but_the_last_asks__dropped", JOINED(join_two_that_ask, 1, BAD_MESSAGE) },
	{ "joined__more_than_the_message_size__dropped", JOINED(join_many, 3, BAD_MESSAGE),
	  .message_bytes = 3 * JOINED_BYTES - 1 },
	{ "joined__tag_of_the_second_wrong__dropped", TAGGED(join_a_wrong_tag, 2) },
	{ "joined__tagged_ones_that_changed_places__dropped", TAGGED(join_swapped, 2) },
	{ "joined__one_without_a_tag_among_tagged_ones__dropped", TAGGED(join_one_without_a_tag, 1) },
	{ "joined__more_sends_than_its_credits_at_once__dropped", .act = join_many_at_once, .n = 5, .in = 8,
	  BROKE(CREDITS) },
};

static void drop_test(void **state)
{
	const struct drop *d = *state;
	struct peer p;

	if (d->message_bytes)
		srv.cfg.message_bytes = d->message_bytes;
	if (d->post_list)
		srv.cfg.tuning.post_list = d->post_list;
	tags = NULL;
	if (d->tagged)
		tags = start_tagged(&p);
	else
		start_live(&p);
	d->act(&p, d);
	server_turns(2);
	msg_tags_free(tags);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), d->in);
	if (d->posts)
		assert_int_equal(n_posts(), d->posts);
	peer_assert_dropped(&p, d->kind, d->code);
}

__attribute__((constructor)) static void register_drops(void)
{
	static struct CMUnitTest tests[N_ELEMENTS(drops)];

	for (size_t i = 0; i < N_ELEMENTS(drops); i++)
		tests[i] = (struct CMUnitTest){ drops[i].name, drop_test, NULL, NULL, (void *)&drops[i] };
	unit_register(tests, N_ELEMENTS(drops), __LINE__);
}

/* Begins with a live peer, which does not leave by itself. */
#define DROP_TEST(f) TEST_WITH(f, server_live_set_up, server_rig_stop)

/* With as many credits as several batches of completions have room for. */
TEST(credits__more_than_a_batch__kept_to_and_exceeded)
{
	const uint32_t credits = 2 * EP_BATCH + 2;
	struct peer p;

	srv.cfg.credits = credits;
	srv.peers_depth = credits;
	start_live(&p);
	assert_int_equal(p.grant.credits, credits);
	for (uint32_t round = 1; round <= 3; round++) {
		peer_messages(&p, credits, 64);
		server_turns(4);
		assert_int_equal(counter_get(&srv.shard->stats.messages_in), round * credits);
		server_only(CONN_ST_LIVE);
		fake_complete_sends(p.qp, credits, IBV_WC_SUCCESS);
		server_turns(2);
	}
	peer_messages(&p, credits + 1, 64);
	server_turns(4);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 4 * credits);
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_CREDITS);
}

/* Credits that are owed for one-way messages are taken, whatever comes next. */
DROP_TEST(credits__owed_and_an_echo_more__dropped)
{
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(deliver_data(&live, i, i == 1 ? MSG_FLAG_ACK : 0));
		server_turn();
	}
	/* Two came back. */
	peer_messages(&live, 2, 64);
	server_turns(2);
	server_only(CONN_ST_LIVE);
	for (uint64_t i = 0; i < 2; i++)
		assert_true(deliver_data(&live, i, 0));
	server_turns(2);
	server_only(CONN_ST_LIVE);
	assert_true(peer_message(&live, 64));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 8);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

static bool deliver_unsolicited(struct peer *p)
{
	struct msg_header h = { .type = MSG_DATA, .length = MSG_HEADER_BYTES };
	uint8_t data[MSG_HEADER_BYTES];

	msg_encode(&h, data);
	return fake_deliver_unsolicited(p->qp, data, sizeof(data));
}

/* Only the SRQ's limit wakes the shard. The client that exceeded its credits ends, the other is served. */
DROP_TEST(credits__unsolicited_until_receives_run_out__offender_dropped)
{
	struct peer honest;

	peer_go_live(&honest, 0);
	server_turns(3);
	for (int i = 0; i < 4; i++)
		assert_true(deliver_unsolicited(&live));
	server_turns(3);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 0);
	while (deliver_unsolicited(&live))
		;
	server_turns(4);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_CREDITS), 1);
	assert_int_equal(fake_srq_posted(), srv.bufs_posted);
	fake_posts_forget();
	peer_messages(&honest, 4, 64);
	server_turns(2);
	assert_int_equal(n_posts(), 4);
	assert_ptr_equal(server_only(CONN_ST_LIVE), honest.id->context);
	fake_cm_event(live.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	peer_leave(&honest);
}

DROP_TEST(one_way__more_than_its_credits_unasked__dropped)
{
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(deliver_data(&live, i, 0));
		server_turn();
	}
	server_only(CONN_ST_LIVE);
	assert_true(deliver_data(&live, 4, MSG_FLAG_ACK));
	server_turns(2);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

TEST(tags__repeated_message__dropped)
{
	struct msg_header h = { .type = MSG_ECHO, .flags = MSG_FLAG_TAG, .length = 32 };
	uint8_t data[32] = { 0 };
	struct peer p;

	tags = start_tagged(&p);
	msg_encode(&h, data);
	assert_int_equal(msg_tag_write(tags, data, sizeof(data)), 0);
	assert_true(fake_deliver(p.qp, data, sizeof(data)));
	server_turn();
	server_only(CONN_ST_LIVE);
	assert_true(fake_deliver(p.qp, data, sizeof(data)));
	server_turns(2);
	msg_tags_free(tags);
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_TAG);
}

DROP_TEST(joined__more_sends_than_its_credits__dropped)
{
	struct joined j = { .peer = &live };

	join(&j, MSG_DATA, 0);
	join(&j, MSG_DATA, 0);
	for (int k = 0; k < 4; k++)
		deliver_joined(&j);
	server_only(CONN_ST_LIVE);
	deliver_joined(&j);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

/* Sends complete never, for the peer does not acknowledge; its messages keep coming. */
DROP_TEST(message__without_end_while_none_is_acknowledged__dropped)
{
	int messages = 0;

	for (; messages < 100 && server_n(CONN_ST_LIVE); messages++) {
		assert_true(peer_message(&live, 64));
		server_turn();
	}
	/* The send queue's entries, as many again waiting, and one too many. */
	assert_in_range(messages, 8, 13);
	peer_assert_dropped(&live, FAIL_PROTOCOL, PROTO_CREDITS);
}

DROP_TEST(send__completes_with_an_error__dropped_and_buffers_back)
{
	peer_messages(&live, 4, 800);
	server_turn();
	fake_complete_sends(live.qp, 1, IBV_WC_RETRY_EXC_ERR);
	server_turns(2);
	peer_assert_dropped(&live, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
