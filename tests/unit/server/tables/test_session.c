/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/tables/session.c: single use, unknown ids, collisions, every slot. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "server/tables/session.h"

#define MAX 100u

static int set_up(void **state)
{
	struct session_table *t;
	int ret = session_table_new(MAX, &t);

	*state = t;
	return ret;
}

static int tear_down(void **state)
{
	session_table_free(*state);
	return 0;
}

/* The first bytes are the hash; `tail` makes ids of the same hash differ in the last byte only. */
static const uint8_t *id_of(uint32_t hash, uint8_t tail)
{
	static uint8_t id[FRAME_SESSION_BYTES];

	memset(id, 0x5a, sizeof(id));
	id[0] = (uint8_t)(hash >> 24);
	id[1] = (uint8_t)(hash >> 16);
	id[2] = (uint8_t)(hash >> 8);
	id[3] = (uint8_t)hash;
	id[15] = tail;
	return id;
}

#define SESSION_TEST(f) TEST_WITH(f, set_up, tear_down)

SESSION_TEST(take__put_before__its_connection_once)
{
	session_put(*state, id_of(7, 1), 42, true);
	assert_int_equal(session_count(*state), 1);
	assert_int_equal(session_take(*state, id_of(7, 1)), 42);
	assert_int_equal(session_take(*state, id_of(7, 1)), SESSION_NONE);
	assert_int_equal(session_count(*state), 0);
}

SESSION_TEST(qps__of_clients_over_sockets__not_counted)
{
	session_put(*state, id_of(7, 1), 1, true);
	session_put(*state, id_of(7, 2), 2, false);
	assert_int_equal(session_count(*state), 2);
	assert_int_equal(session_qps(*state), 1);
	assert_int_equal(session_take(*state, id_of(7, 2)), 2);
	assert_int_equal(session_qps(*state), 1);
	assert_int_equal(session_take(*state, id_of(7, 1)), 1);
	assert_int_equal(session_qps(*state), 0);
	session_put(*state, id_of(7, 3), 1, false);
	assert_int_equal(session_qps(*state), 0);
}

SESSION_TEST(take__never_put__none)
{
	assert_int_equal(session_take(*state, id_of(7, 1)), SESSION_NONE);
	session_put(*state, id_of(7, 1), 0, true);
	assert_int_equal(session_take(*state, id_of(7, 2)), SESSION_NONE);
	assert_int_equal(session_take(*state, id_of(8, 1)), SESSION_NONE);
	assert_int_equal(session_count(*state), 1);
}

SESSION_TEST(take__one_byte_differs_anywhere__none)
{
	uint8_t id[FRAME_SESSION_BYTES];

	memcpy(id, id_of(7, 1), sizeof(id));
	session_put(*state, id, 3, true);
	for (size_t i = 0; i < sizeof(id); i++) {
		id[i] ^= 0x80;
		assert_int_equal(session_take(*state, id), SESSION_NONE);
		id[i] ^= 0x80;
	}
	assert_int_equal(session_take(*state, id), 3);
}

SESSION_TEST(take__same_hash__from_head_middle_and_tail)
{
	static const uint8_t orders[][3] = {
		{ 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 }, { 0, 2, 1 }
	};

	for (size_t i = 0; i < N_ELEMENTS(orders); i++) {
		for (uint8_t k = 0; k < 3; k++)
			session_put(*state, id_of(0xdeadbeef, k), 10u + k, true);
		for (int k = 0; k < 3; k++)
			assert_int_equal(session_take(*state, id_of(0xdeadbeef, orders[i][k])),
					 10u + orders[i][k]);
		assert_int_equal(session_count(*state), 0);
	}
}

SESSION_TEST(put__every_slot__all_found_in_another_order)
{
	for (int round = 0; round < 3; round++) {
		for (uint32_t c = 0; c < MAX; c++)
			session_put(*state, id_of(c * 3 % 17, (uint8_t)c), c, true);
		assert_int_equal(session_count(*state), MAX);
		for (uint32_t i = 0; i < MAX; i++) {
			uint32_t c = i * 37 % MAX;

			assert_int_equal(session_take(*state, id_of(c * 3 % 17, (uint8_t)c)), c);
		}
		assert_int_equal(session_count(*state), 0);
	}
}

SESSION_TEST(put__after_take__the_slot_serves_again)
{
	for (uint32_t i = 0; i < 1000; i++) {
		session_put(*state, id_of(i, 0), MAX - 1, true);
		assert_int_equal(session_take(*state, id_of(i, 0)), MAX - 1);
		assert_int_equal(session_take(*state, id_of(i - 1, 0)), SESSION_NONE);
	}
}

SESSION_TEST(random_ids__put_and_taken_at_random__as_a_plain_array)
{
	uint8_t ids[MAX][FRAME_SESSION_BYTES];
	bool in[MAX] = { false };
	uint64_t seed = 3;
	uint32_t n = 0;

	for (int step = 0; step < 20000; step++) {
		uint32_t c = (uint32_t)(unit_random(&seed) % MAX);

		if (in[c]) {
			assert_int_equal(session_take(*state, ids[c]), c);
			n--;
		} else {
			for (size_t j = 0; j < FRAME_SESSION_BYTES; j++)
				ids[c][j] = (uint8_t)(unit_random(&seed) >> 20);
			session_put(*state, ids[c], c, true);
			n++;
		}
		in[c] = !in[c];
		assert_int_equal(session_count(*state), n);
	}
}

SESSION_TEST(stale__noted__the_last_64_are_known)
{
	assert_false(session_is_stale(*state, id_of(0, 0)));
	for (uint32_t i = 0; i < 100; i++)
		session_note_stale(*state, id_of(i, 7));
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(session_is_stale(*state, id_of(i, 7)), i >= 36);
	assert_false(session_is_stale(*state, id_of(99, 8)));
	assert_int_equal(session_count(*state), 0);
}

TEST(table_of_one__works)
{
	struct session_table *t;

	assert_int_equal(session_table_new(1, &t), 0);
	session_put(t, id_of(UINT32_MAX, 1), 0, true);
	assert_int_equal(session_take(t, id_of(UINT32_MAX, 1)), 0);
	session_table_free(t);
	session_table_free(NULL);
}
