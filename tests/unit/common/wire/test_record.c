/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/record.c: what is written is read back, and each field is checked. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/wire/record.h"

#define MOST 1000u

TEST(record__each_kind__read_back)
{
	static const struct record all[] = {
		{ RECORD_MESSAGES, 1, 0 }, { RECORD_MESSAGES, MOST, 0 }, { RECORD_MESSAGES, 0, 0 },
		{ RECORD_PING, 7, 0x01020304 }, { RECORD_PING, 0, UINT32_MAX }, { RECORD_BYE, 0, 0 },
		{ RECORD_PROOF, 52, 0 }, { RECORD_REJECT, 8, 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(all); i++) {
		uint8_t bytes[RECORD_HEADER_BYTES];
		struct record r;

		memset(bytes, 0xff, sizeof(bytes));
		record_encode(&all[i], bytes);
		assert_int_equal(record_decode(bytes, MOST, &r), 0);
		assert_int_equal(r.kind, all[i].kind);
		assert_int_equal(r.bytes, all[i].bytes);
		assert_int_equal(r.imm, all[i].imm);
	}
}

TEST(record__layout__as_the_protocol_says)
{
	static const uint8_t expected[RECORD_HEADER_BYTES] = { 0, 1, 2, 3, 1, 0, 0, 0, 0, 0, 0, 0 };
	const struct record r = { RECORD_MESSAGES, 0x010203, 0 };
	uint8_t bytes[RECORD_HEADER_BYTES];

	record_encode(&r, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
}

TEST(record__fields_that_are_not_allowed__refused)
{
	static const struct { unsigned at; uint8_t value; } bad[] = {
		{ 0, 1 }, { 2, 4 }, { 4, 0 }, { 4, 6 }, { 4, 0xff }, { 5, 1 }, { 6, 1 }, { 7, 0x80 }, { 8, 1 },
		{ 11, 0xff },
	};
	uint8_t good[RECORD_HEADER_BYTES], bytes[RECORD_HEADER_BYTES];
	struct record r;

	record_encode(&(struct record){ RECORD_MESSAGES, MOST, 0 }, good);
	assert_int_equal(record_decode(good, MOST, &r), 0);
	assert_int_equal(record_decode(good, MOST - 1, &r), -EPROTO);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		memcpy(bytes, good, sizeof(bytes));
		bytes[bad[i].at] = bad[i].value;
		assert_int_equal(record_decode(bytes, MOST, &r), -EPROTO);
	}
	record_encode(&(struct record){ RECORD_BYE, 0, 0 }, bytes);
	bytes[3] = 1;
	assert_int_equal(record_decode(bytes, MOST, &r), -EPROTO);
}
