/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_limits.c. */
#include "tests/unit/helpers/unit.h"

#include "common/tls/tls_limits.h"

TEST(turn__records_or_bytes_used_up__over_until_the_next)
{
	struct tls_limits l = { .shook_hands = true };

	for (int i = 0; i < TLS_TURN_RECORDS; i++) {
		assert_false(tls_limits_turn_is_over(&l));
		tls_limits_count_record(&l, 1);
	}
	assert_false(tls_limits_turn_is_over(&l));
	tls_limits_count_record(&l, 1);
	assert_true(tls_limits_turn_is_over(&l));
	tls_limits_begin_turn(&l);
	assert_false(tls_limits_turn_is_over(&l));
	tls_limits_count_record(&l, TLS_TURN_BYTES);
	assert_false(tls_limits_turn_is_over(&l));
	tls_limits_count_record(&l, 1);
	assert_true(tls_limits_turn_is_over(&l));
	/* Data without end is no excess. */
	assert_null(tls_limits_excess(&l));
}

TEST(handshake__too_many_records__excess_that_no_turn_ends)
{
	struct tls_limits l = { 0 };

	for (int i = 0; i < TLS_HANDSHAKE_RECORDS; i++)
		tls_limits_count_record(&l, 6);
	assert_null(tls_limits_excess(&l));
	tls_limits_count_record(&l, 6);
	assert_says(tls_limits_excess(&l), "handshake of more than 64 records");
	tls_limits_begin_turn(&l);
	assert_true(tls_limits_turn_is_over(&l));
}

TEST(handshake__too_many_bytes__excess)
{
	struct tls_limits l = { 0 };

	tls_limits_count_record(&l, TLS_HANDSHAKE_BYTES);
	assert_null(tls_limits_excess(&l));
	tls_limits_count_record(&l, 1);
	assert_says(tls_limits_excess(&l), "bytes");
}

/* Certificates and the like come during the handshake. */
TEST(extra__records_without_data__counted_after_the_handshake_only)
{
	struct tls_limits l = { 0 };

	for (int i = 0; i <= TLS_EXTRA_RECORDS; i++)
		tls_limits_count_extra(&l);
	assert_null(tls_limits_excess(&l));
	l.shook_hands = true;
	for (int i = 0; i < TLS_EXTRA_RECORDS; i++)
		tls_limits_count_extra(&l);
	assert_null(tls_limits_excess(&l));
	tls_limits_count_extra(&l);
	assert_says(tls_limits_excess(&l), "key updates");
	assert_true(tls_limits_turn_is_over(&l));
	for (int i = 0; i < TLS_RECORDS_PER_EXTRA; i++)
		tls_limits_count_record(&l, 1);
	assert_null(tls_limits_excess(&l));
	tls_limits_count_extra(&l);
	assert_says(tls_limits_excess(&l), "key updates");
}
