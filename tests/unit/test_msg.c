/* Unit tests of common/msg.c: the message header's layout and what is refused. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"

static const uint8_t vector[MSG_HEADER_BYTES] = {
	0x02, 0x00, 0x12, 0x34, 0x00, 0x01, 0x02, 0x03,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
};

static void encode__reply__exact_bytes(void **state)
{
	struct msg_header h = { .type = MSG_REPLY, .credits = 0x1234, .length = 0x00010203,
				.sequence = UINT64_C(0x1122334455667788) };
	uint8_t out[MSG_HEADER_BYTES];

	(void)state;
	memset(out, 0xa5, sizeof(out));
	msg_encode(&h, out);
	assert_memory_equal(out, vector, sizeof(vector));
}

static void decode__vector__every_field(void **state)
{
	struct msg_header h;

	(void)state;
	assert_int_equal(msg_decode(vector, 0x00010203, &h), 0);
	assert_int_equal(h.type, MSG_REPLY);
	assert_int_equal(h.credits, 0x1234);
	assert_int_equal(h.length, 0x00010203);
	assert_true(h.sequence == UINT64_C(0x1122334455667788));
}

static void decode__every_type_byte__two_known(void **state)
{
	struct msg_header h = { .type = MSG_ECHO, .length = 16 };
	uint8_t p[MSG_HEADER_BYTES];

	(void)state;
	msg_encode(&h, p);
	for (int type = 0; type < 256; type++) {
		p[0] = (uint8_t)type;
		assert_int_equal(msg_decode(p, 16, &h), type == 1 || type == 2 ? 0 : -EPROTO);
	}
}

static void decode__any_flag__refused(void **state)
{
	struct msg_header h = { .type = MSG_ECHO, .length = 16 };
	uint8_t p[MSG_HEADER_BYTES];

	(void)state;
	msg_encode(&h, p);
	for (int bit = 0; bit < 8; bit++) {
		p[1] = (uint8_t)(1 << bit);
		assert_int_equal(msg_decode(p, 16, &h), -EPROTO);
	}
}

static void decode__truncated_at_every_length__refused(void **state)
{
	struct msg_header h = { .type = MSG_ECHO };
	uint8_t p[MSG_HEADER_BYTES];

	(void)state;
	for (uint32_t n = 0; n < MSG_HEADER_BYTES; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		h.length = n;
		msg_encode(&h, p);
		memcpy(exact, p, n);
		assert_int_equal(msg_decode(exact, n, &h), -EPROTO);
		free(exact);
	}
}

static void decode__length_not_the_received__refused(void **state)
{
	static const uint32_t lengths[] = { 0, 15, 16, 63, 65, 0x40000000, UINT32_MAX };
	struct msg_header h = { .type = MSG_ECHO };
	uint8_t p[64];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		h.length = lengths[i];
		msg_encode(&h, p);
		assert_int_equal(msg_decode(p, 64, &h), -EPROTO);
	}
}

/* What decodes is what encodes to the same bytes. */
static void decode__mutated_headers__canonical_or_refused(void **state)
{
	uint64_t seed = 42;
	unsigned good = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encode__reply__exact_bytes),
		cmocka_unit_test(decode__vector__every_field),
		cmocka_unit_test(decode__every_type_byte__two_known),
		cmocka_unit_test(decode__any_flag__refused),
		cmocka_unit_test(decode__truncated_at_every_length__refused),
		cmocka_unit_test(decode__length_not_the_received__refused),
		cmocka_unit_test(decode__mutated_headers__canonical_or_refused),
	};

	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}
