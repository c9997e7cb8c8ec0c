/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/msg.c: the message header's layout and what is refused. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/msg.h"

static const uint8_t vector[MSG_HEADER_BYTES] = {
	0x02, 0x00, 0x12, 0x34, 0x00, 0x01, 0x02, 0x03,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
};

TEST(encode__reply__exact_bytes)
{
	struct msg_header h = { .type = MSG_REPLY, .credits = 0x1234, .length = 0x00010203,
				.sequence = UINT64_C(0x1122334455667788) };
	uint8_t out[MSG_HEADER_BYTES];

	memset(out, 0xa5, sizeof(out));
	msg_encode(&h, out);
	assert_memory_equal(out, vector, sizeof(vector));
}

TEST(decode__vector__every_field)
{
	struct msg_header h;

	assert_int_equal(msg_decode(vector, 0x00010203, &h), 0);
	assert_int_equal(h.type, MSG_REPLY);
	assert_int_equal(h.credits, 0x1234);
	assert_int_equal(h.length, 0x00010203);
	assert_true(h.sequence == UINT64_C(0x1122334455667788));
}

TEST(decode__every_type_byte__six_known)
{
	struct msg_header h = { .type = MSG_ECHO, .length = 16 };
	uint8_t p[MSG_HEADER_BYTES];

	msg_encode(&h, p);
	for (int type = 0; type < 256; type++) {
		p[0] = (uint8_t)type;
		/* A push has a payload. */
		assert_int_equal(msg_decode(p, 16, &h), type >= 1 && type <= 7 && type != MSG_PUSH ? 0 : -EPROTO);
	}
}

/* Each type has flags of its own; no other is taken, alone or with them. */
TEST(decode__every_flags_byte__those_of_the_type)
{
	static const uint8_t allowed[] = { [MSG_ECHO] = MSG_FLAG_SUM | MSG_FLAG_TAG,
					   [MSG_REPLY] = MSG_FLAG_SUM | MSG_FLAG_TAG,
					   [MSG_DATA] = MSG_FLAG_ACK | MSG_FLAG_SUM | MSG_FLAG_TAG,
					   [MSG_CREDIT] = MSG_FLAG_TAG, [MSG_PUSH] = MSG_FLAG_TAG,
					   [MSG_PUSHED] = MSG_FLAG_TAG, [MSG_GOODBYE] = MSG_FLAG_TAG };
	uint8_t p[MSG_HEADER_BYTES + MSG_PUSH_BYTES + MSG_TAG_BYTES];

	for (int type = MSG_ECHO; type <= MSG_GOODBYE; type++)
		for (int flags = 0; flags < 256; flags++) {
			struct msg_header h = { .type = (enum msg_type)type, .flags = (uint8_t)flags,
						.length = sizeof(p) };

			if (type == MSG_PUSH && !(flags & MSG_FLAG_TAG))
				h.length -= MSG_TAG_BYTES;
			msg_encode(&h, p);
			assert_int_equal(msg_decode(p, h.length, &h), flags & ~allowed[type] ? -EPROTO : 0);
			assert_int_equal(h.flags, flags);
		}
}

TEST(decode__trailer_without_room_for_it__refused)
{
	static const struct { uint8_t flags; uint32_t bytes; } cases[] = {
		{ MSG_FLAG_SUM, 20 }, { MSG_FLAG_TAG, 32 }, { MSG_FLAG_SUM | MSG_FLAG_TAG, 36 },
	};
	uint8_t p[64];

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct msg_header h = { .type = MSG_DATA, .flags = cases[i].flags }, out;

		for (h.length = MSG_HEADER_BYTES; h.length <= cases[i].bytes; h.length++) {
			msg_encode(&h, p);
			assert_int_equal(msg_decode(p, h.length, &out), h.length < cases[i].bytes ? -EPROTO : 0);
		}
	}
}

TEST(push__vector__exact_both_ways)
{
	static const uint8_t payload[MSG_PUSH_BYTES] = {
		0, 0, 0, 1, 2, 3, 4, 5,  0x80, 0, 0, 0, 0, 0, 0, 7,  0xfe, 0, 0, 1,
	};
	struct msg_push push = { UINT64_C(0x102030405), UINT64_C(0x8000000000000007), 0xfe000001 }, got;
	uint8_t p[MSG_HEADER_BYTES + MSG_PUSH_BYTES] = { 0 };

	msg_put_push(&push, p);
	assert_memory_equal(p + MSG_HEADER_BYTES, payload, sizeof(payload));
	msg_get_push(p, &got);
	assert_true(got.region_offset == push.region_offset);
	assert_true(got.window_offset == push.window_offset);
	assert_int_equal(got.bytes, push.bytes);
}

TEST(push__any_other_length__refused)
{
	uint8_t p[64] = { 0 };

	for (uint32_t n = MSG_HEADER_BYTES; n <= sizeof(p); n++) {
		struct msg_header h = { .type = MSG_PUSH, .length = n }, out;

		msg_encode(&h, p);
		assert_int_equal(msg_decode(p, n, &out), n == 36 ? 0 : -EPROTO);
		h.flags = MSG_FLAG_TAG;
		msg_encode(&h, p);
		assert_int_equal(msg_decode(p, n, &out), n == 52 ? 0 : -EPROTO);
	}
}

/* CRC-32 of ISO 3309: the check value of "123456789" is cbf43926. */
TEST(sum__check_value__as_published)
{
	assert_int_equal(msg_sum(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	assert_int_equal(msg_sum(msg_sum_seed((const uint8_t *)"1234", 4), (const uint8_t *)"56789", 5), 0xcbf43926);
}

TEST(seal__any_bit_changed__not_intact)
{
	struct msg_header h = { .type = MSG_ECHO, .flags = MSG_FLAG_SUM, .length = 70, .sequence = 5 };
	uint32_t seed = msg_sum_seed((const uint8_t *)"0123456789abcdef", 16);
	uint8_t p[70] = { 0 };

	msg_encode(&h, p);
	msg_seal(seed, p, sizeof(p));
	assert_true(msg_is_intact(seed, p, sizeof(p)));
	assert_false(msg_is_intact(seed + 1, p, sizeof(p)));
	for (size_t i = 4; i < sizeof(p); i++)
		for (int bit = 0; bit < 8; bit++) {
			p[i] ^= (uint8_t)(1 << bit);
			assert_false(msg_is_intact(seed, p, sizeof(p)));
			p[i] ^= (uint8_t)(1 << bit);
		}
	/* Type and credits change on the way back. */
	p[0] = MSG_REPLY;
	p[3] = 1;
	assert_true(msg_is_intact(seed, p, sizeof(p)));
}

TEST(decode__truncated_at_every_length__refused)
{
	struct msg_header h = { .type = MSG_ECHO };
	uint8_t p[MSG_HEADER_BYTES];

	for (uint32_t n = 0; n < MSG_HEADER_BYTES; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		h.length = n;
		msg_encode(&h, p);
		memcpy(exact, p, n);
		assert_int_equal(msg_decode(exact, n, &h), -EPROTO);
		free(exact);
	}
}

TEST(decode__length_not_the_received__refused)
{
	static const uint32_t lengths[] = { 0, 15, 16, 63, 65, 0x40000000, UINT32_MAX };
	struct msg_header h = { .type = MSG_ECHO };
	uint8_t p[64];

	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		h.length = lengths[i];
		msg_encode(&h, p);
		assert_int_equal(msg_decode(p, 64, &h), -EPROTO);
	}
}

static uint8_t joined[256];	/* several messages, up to `end` */
static uint32_t end;

static int join_none(void **state)
{
	(void)state;
	memset(joined, 0, sizeof(joined));
	end = 0;
	return 0;
}

/* One more message, of `bytes`. */
static void join(enum msg_type type, uint8_t flags, uint32_t bytes)
{
	struct msg_header h = { .type = type, .flags = flags, .length = bytes, .sequence = end };

	msg_encode(&h, joined + end);
	end += bytes;
}

/* How many decode, one behind the other; -EPROTO if one does not. */
static int count_joined(uint32_t received)
{
	uint8_t *exact = malloc(received ? received : 1);
	struct msg_header h;
	uint32_t at = 0;
	int n = 0;

	memcpy(exact, joined, received);
	do {
		if (msg_decode_at(exact, received, at, &h)) {
			n = -EPROTO;
			break;
		}
		assert_int_equal(h.sequence, at);
		at += h.length;
		n++;
	} while (at < received);
	free(exact);
	return n;
}

TEST(decode_at__data_of_any_lengths__each)
{
	join(MSG_DATA, 0, 16);
	assert_int_equal(count_joined(end), 1);
	join(MSG_DATA, MSG_FLAG_SUM, 20);
	join(MSG_DATA, MSG_FLAG_SUM | MSG_FLAG_TAG, 61);
	join(MSG_DATA, MSG_FLAG_ACK, 17);
	assert_int_equal(count_joined(end), 4);
}

TEST(decode_at__one_message__as_decode)
{
	struct msg_header h;

	for (int type = MSG_ECHO; type <= MSG_CREDIT; type++) {
		join_none(NULL);
		join((enum msg_type)type, 0, 64);
		assert_int_equal(msg_decode_at(joined, 64, 0, &h), 0);
		assert_int_equal(h.type, type);
	}
}

TEST(decode_at__cut_anywhere_but_between_two__refused)
{
	join(MSG_DATA, 0, 40);
	join(MSG_DATA, 0, 16);
	join(MSG_DATA, 0, 24);
	for (uint32_t n = 0; n <= end; n++)
		assert_int_equal(count_joined(n), n == 40 ? 1 : n == 56 ? 2 : n == 80 ? 3 : -EPROTO);
	for (uint32_t n = end + 1; n < end + 16; n++)
		assert_int_equal(count_joined(n), -EPROTO);
}

TEST(decode_at__length_beyond_what_is_left__refused)
{
	static const uint32_t lengths[] = { 0, 15, 17, 48, 49, 80, 0x7fffffff, 0x80000000, UINT32_MAX - 15,
					    UINT32_MAX };
	struct msg_header h = { .type = MSG_DATA }, out;

	join(MSG_DATA, 0, 32);
	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		h.length = lengths[i];
		msg_encode(&h, joined + 32);
		assert_int_equal(msg_decode_at(joined, 80, 32, &out),
				 lengths[i] == 17 || lengths[i] == 48 ? 0 : -EPROTO);
	}
}

/* Each message of a joined SEND must be DATA, and only the last one may ask for an acknowledgement. */
TEST(decode_at__type_or_ack_among_others__only_as_it_may_be)
{
	static const struct { enum msg_type type[2]; uint8_t flags[2]; int n; } cases[] = {
		{ { MSG_DATA, MSG_DATA }, { 0, 0 }, 2 },
		{ { MSG_DATA, MSG_DATA }, { 0, MSG_FLAG_ACK }, 2 },
		{ { MSG_DATA, MSG_DATA }, { MSG_FLAG_ACK, 0 }, -EPROTO },
		{ { MSG_DATA, MSG_DATA }, { MSG_FLAG_ACK, MSG_FLAG_ACK }, -EPROTO },
		{ { MSG_ECHO, MSG_DATA }, { 0, 0 }, -EPROTO },
		{ { MSG_DATA, MSG_ECHO }, { 0, 0 }, -EPROTO },
		{ { MSG_ECHO, MSG_ECHO }, { 0, 0 }, -EPROTO },
		{ { MSG_DATA, MSG_REPLY }, { 0, 0 }, -EPROTO },
		{ { MSG_CREDIT, MSG_CREDIT }, { 0, 0 }, -EPROTO },
		{ { MSG_DATA, 0 }, { 0, 0 }, -EPROTO },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		join_none(NULL);
		for (int k = 0; k < 2; k++)
			join(cases[i].type[k], cases[i].flags[k], 32);
		assert_int_equal(count_joined(end), cases[i].n);
	}
}

/* A message that must be alone is not to be taken for one that is followed by others. */
TEST(decode__followed_by_another__refused)
{
	struct msg_header h;

	join(MSG_CREDIT, 0, 16);
	join(MSG_CREDIT, 0, 16);
	assert_int_equal(msg_decode(joined, end, &h), -EPROTO);
	assert_int_equal(msg_decode(joined, 16, &h), 0);
}

/* A header is accepted only if encoding it again gives the same bytes. */
TEST(decode__mutated_headers__canonical_or_refused)
{
	uint64_t seed = 42;
	unsigned good = 0;

	for (int i = 0; i < 200000; i++) {
		struct msg_header h;
		uint8_t *p = malloc(MSG_HEADER_BYTES), again[MSG_HEADER_BYTES];
		uint32_t received = (uint32_t)unit_random(&seed) % 64;

		for (int j = 0; j < MSG_HEADER_BYTES; j++)
			p[j] = (uint8_t)unit_random(&seed);
		p[0] &= 3;
		p[1] &= (uint8_t)(unit_random(&seed) & 1);
		p[4] = p[5] = p[6] = 0;
		p[7] &= 63;
		if (received >= MSG_HEADER_BYTES && msg_decode(p, received, &h) == 0) {
			msg_encode(&h, again);
			assert_memory_equal(again, p, MSG_HEADER_BYTES);
			assert_int_equal(h.length, received);
			good++;
		}
		free(p);
	}
	assert_true(good > 100);
}

TEST_EACH(join_none, NULL)
