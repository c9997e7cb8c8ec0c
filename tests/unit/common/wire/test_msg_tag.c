/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/msg_tag.c: tags as published, and that nothing but the next message verifies. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/wire/msg_tag.h"

static struct msg_tags *client, *server;

static void keys_of(uint8_t first, uint8_t keys[2 * MSG_TAG_KEY_BYTES])
{
	for (int i = 0; i < 2 * MSG_TAG_KEY_BYTES; i++)
		keys[i] = (uint8_t)(first + i);
}

static int setup(void **state)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES];

	(void)state;
	keys_of(1, keys);
	if (msg_tags_new(keys, true, &client))
		return -1;
	keys_of(1, keys);
	return msg_tags_new(keys, false, &server);
}

static int teardown(void **state)
{
	(void)state;
	msg_tags_free(client);
	msg_tags_free(server);
	msg_tags_free(NULL);
	return 0;
}

/* McGrew and Viega, "The Galois/Counter Mode of Operation", test case 1: key and nonce all zero, no data. */
TEST(tag__published_vector__the_same)
{
	static const uint8_t expected[MSG_TAG_BYTES] = { 0x58, 0xe2, 0xfc, 0xce, 0xfa, 0x7e, 0x30, 0x61,
							 0x36, 0x7f, 0x1d, 0x57, 0xa4, 0xe7, 0x45, 0x5a };
	uint8_t keys[2 * MSG_TAG_KEY_BYTES] = { 0 }, message[MSG_TAG_BYTES];
	struct msg_tags *t;

	assert_int_equal(msg_tags_new(keys, true, &t), 0);
	assert_int_equal(msg_tag_write(t, message, sizeof(message)), 0);
	assert_memory_equal(message, expected, sizeof(expected));
	/* The next one has another nonce. */
	assert_int_equal(msg_tag_write(t, message, sizeof(message)), 0);
	assert_memory_not_equal(message, expected, sizeof(expected));
	msg_tags_free(t);
}

TEST(keys__made__overwritten)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES], zero[2 * MSG_TAG_KEY_BYTES] = { 0 };
	struct msg_tags *t;

	keys_of(7, keys);
	assert_int_equal(msg_tags_new(keys, false, &t), 0);
	assert_memory_equal(keys, zero, sizeof(keys));
	msg_tags_free(t);
}

TEST(check__both_directions_many_sizes__each_verifies)
{
	uint8_t *m = malloc(5000);

	assert_non_null(m);
	for (uint32_t bytes = MSG_TAG_BYTES; bytes < 5000; bytes += bytes < 100 ? 1 : 97) {
		memset(m, (int)bytes, bytes);
		assert_int_equal(msg_tag_write(client, m, bytes), 0);
		assert_true(msg_tag_check(server, m, bytes));
		assert_int_equal(msg_tag_write(server, m, bytes), 0);
		assert_true(msg_tag_check(client, m, bytes));
	}
	free(m);
}

TEST(check__any_bit_changed__false)
{
	uint8_t m[48] = "something to say";

	for (size_t i = 0; i < sizeof(m); i++) {
		assert_int_equal(msg_tag_write(client, m, sizeof(m)), 0);
		m[i] ^= (uint8_t)(1 << i % 8);
		assert_false(msg_tag_check(server, m, sizeof(m)));
		m[i] ^= (uint8_t)(1 << i % 8);
	}
}

TEST(check__left_out_repeated_or_reflected__false)
{
	uint8_t first[32] = "1", second[32] = "2", third[32] = "3";

	assert_int_equal(msg_tag_write(client, first, sizeof(first)), 0);
	assert_int_equal(msg_tag_write(client, second, sizeof(second)), 0);
	assert_int_equal(msg_tag_write(client, third, sizeof(third)), 0);
	assert_true(msg_tag_check(server, first, sizeof(first)));
	assert_false(msg_tag_check(server, third, sizeof(third)));
	assert_true(msg_tag_check(server, third, sizeof(third)));
	assert_false(msg_tag_check(server, third, sizeof(third)));
	/* Back to the one that sent it, as if the server had: another key. */
	assert_false(msg_tag_check(client, first, sizeof(first)));
}

TEST_EACH(setup, teardown)
