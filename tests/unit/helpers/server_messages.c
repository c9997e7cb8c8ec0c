/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a shard on the fake device. See server_messages.h. */
#include "tests/unit/helpers/server_messages.h"

#include "tests/unit/helpers/unit.h"

uint32_t n_posts(void)
{
	uint32_t n;

	fake_posts(&n);
	return n;
}

const struct fake_post *post(uint32_t i)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(i < n);
	return &p[i];
}

struct ep_counts counts(void)
{
	struct ep_counts c;

	ep_get_counts(srv.shard->ep, &c);
	return c;
}

void assert_posted(uint32_t i, enum msg_type type, uint16_t credits, uint64_t sequence)
{
	struct msg_header h;

	assert_int_equal(msg_decode(post(i)->head, post(i)->length, &h), 0);
	assert_int_equal(h.type, type);
	assert_int_equal(h.credits, credits);
	assert_int_equal(h.sequence, sequence);
}

void start_live(struct peer *p)
{
	server_start_live(p, 0);
	fake_posts_forget();
}

struct peer live;

int server_live_set_up(void **state)
{
	int ret = server_rig_init(state);

	start_live(&live);
	return ret;
}

int server_live_tear_down(void **state)
{
	peer_leave(&live);
	return server_rig_stop(state);
}

void peer_messages(struct peer *p, uint32_t n, uint32_t bytes)
{
	while (n--)
		assert_true(peer_message(p, bytes));
}

void complete_sends(struct peer *p, uint32_t n)
{
	fake_complete_sends(p->qp, n, IBV_WC_SUCCESS);
	server_turn();
}

void assert_counted(uint64_t in, uint64_t summed, uint64_t corrupt)
{
	const struct stats *st = &srv.shard->stats;

	assert_int_equal(counter_get(&st->messages_in), in);
	assert_int_equal(counter_get(&st->messages_checked), summed);
	assert_int_equal(counter_get(&st->messages_corrupt), corrupt);
}

struct msg_tags *start_tagged(struct peer *p)
{
	uint8_t server_keys[2 * MSG_TAG_KEY_BYTES], peer_keys[2 * MSG_TAG_KEY_BYTES];
	struct msg_tags *tags;
	struct conn *c;

	for (size_t i = 0; i < sizeof(peer_keys); i++)
		server_keys[i] = peer_keys[i] = (uint8_t)i;
	start_live(p);
	c = server_only(CONN_ST_LIVE);
	assert_int_equal(msg_tags_new(server_keys, false, &c->tags), 0);
	assert_int_equal(msg_tags_new(peer_keys, true, &tags), 0);
	return tags;
}

bool deliver_data(struct peer *p, uint64_t sequence, uint8_t flags)
{
	struct msg_header h = { .type = MSG_DATA, .flags = flags, .length = 64, .sequence = sequence };
	uint8_t data[64] = { 0 };

	msg_encode(&h, data);
	if (flags & MSG_FLAG_SUM)
		msg_seal(msg_sum_seed(p->grant.session, sizeof(p->grant.session)), data, sizeof(data));
	return fake_deliver(p->qp, data, sizeof(data));
}

void join_bytes(struct joined *j, enum msg_type type, uint8_t flags, uint32_t bytes)
{
	struct msg_header h = { .type = type, .flags = (uint8_t)(flags | (j->tags ? MSG_FLAG_TAG : 0)),
				.length = bytes, .sequence = 100 + j->n++ };
	uint8_t *p = j->data + j->bytes;

	assert_true(j->bytes + bytes <= sizeof(j->data));
	msg_encode(&h, p);
	if (flags & MSG_FLAG_SUM)
		msg_seal(msg_sum_seed(j->peer->grant.session, sizeof(j->peer->grant.session)), p,
			 bytes - (j->tags ? MSG_TAG_BYTES : 0));
	if (j->tags)
		assert_int_equal(msg_tag_write(j->tags, p, bytes), 0);
	j->bytes += bytes;
}

void join(struct joined *j, enum msg_type type, uint8_t flags)
{
	join_bytes(j, type, flags, JOINED_BYTES);
}

void deliver_joined(struct joined *j)
{
	assert_true(fake_deliver(j->peer->qp, j->data, j->bytes));
	server_turns(2);
}
