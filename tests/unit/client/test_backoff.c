/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/backoff.c: pauses between attempts to connect again, and their end. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "client/backoff.h"
#include "common/base/clock.h"
#include "common/wire/frame.h"

#define T0 (1000 * NS_PER_S)
#define LIMIT (100 * NS_PER_S)

static const struct fail broken = { .stage = STAGE_TRAFFIC, .kind = FAIL_CLOSED };

TEST(pauses__one_after_another__double_up_to_ten_seconds_with_jitter)
{
	static const uint64_t most_ms[] = { 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000 };
	struct backoff b = { 0 };
	uint64_t now = T0, at, same = 0;

	backoff_begin(&b, now);
	for (size_t i = 0; i < N_ELEMENTS(most_ms); i++) {
		assert_true(backoff_next(&b, &broken, LIMIT, now, &at));
		assert_in_range(at - now, most_ms[i] * NS_PER_MS / 2, most_ms[i] * NS_PER_MS);
		same += at - now == most_ms[i] * NS_PER_MS || at - now == most_ms[i] * NS_PER_MS / 2;
		now = at;
	}
	assert_true(same < 3);
	/* After an outage the next one begins with the shortest. */
	assert_true(backoff_end(&b, now) == now - T0);
	assert_true(b.lost_ns == 0);
	backoff_begin(&b, now);
	assert_true(backoff_next(&b, &broken, LIMIT, now, &at));
	assert_true(at - now <= 100 * NS_PER_MS);
}

/* Clients that are lost together do not come back together. */
TEST(pauses__of_many_clients__differ)
{
	struct backoff b[64] = { 0 };
	uint64_t at[N_ELEMENTS(b)], least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < N_ELEMENTS(b); i++) {
		backoff_begin(&b[i], T0);
		assert_true(backoff_next(&b[i], &broken, LIMIT, T0, &at[i]));
		least = at[i] < least ? at[i] : least;
		most = at[i] > most ? at[i] : most;
	}
	assert_true(most - least > 25 * NS_PER_MS);
}

TEST(limit__reached__last_attempt_then_none)
{
	struct backoff b = { 0 };
	uint64_t now = T0, at = 0, attempts = 0;

	backoff_begin(&b, now);
	while (backoff_next(&b, &broken, LIMIT, now, &at)) {
		assert_true(at > now && at <= T0 + LIMIT);
		now = at;
		attempts++;
	}
	assert_true(now == T0 + LIMIT);
	assert_in_range(attempts, 16, 30);
}

TEST(limit__none__never)
{
	struct backoff b = { 0 };
	uint64_t at;

	backoff_begin(&b, T0);
	assert_false(backoff_next(&b, &broken, 0, T0, &at));
}

/* Its caller decides what may pass. */
TEST(wait__whatever_failed__same_pauses_and_the_same_limit)
{
	static const struct fail tls = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_TLS };
	struct backoff a = { 0 }, b;
	uint64_t now = T0, at_a, at_b;

	backoff_begin(&a, now);
	b = a;
	assert_false(backoff_next(&a, &tls, LIMIT, now, &at_a));
	while (backoff_next(&a, &broken, LIMIT, now, &at_a)) {
		assert_true(backoff_wait(&b, LIMIT, now, &at_b));
		assert_true(at_a == at_b);
		now = at_a;
	}
	assert_false(backoff_wait(&b, LIMIT, now, &at_b));
}

TEST(never_lost__never)
{
	struct backoff b = { 0 };
	uint64_t at;

	assert_false(backoff_next(&b, &broken, LIMIT, T0, &at));
}

TEST(failures__that_stay__are_not_tried_again)
{
	static const struct { enum fail_kind kind; int code; bool again; } cases[] = {
		{ FAIL_CLOSED, 0, true }, { FAIL_TIMEOUT, 0, true }, { FAIL_WC_STATUS, 12, true },
		{ FAIL_CM_STATUS, -ETIMEDOUT, true }, { FAIL_CM_STATUS, FAIL_CM_STALE, true },
		{ FAIL_ERRNO, ECONNREFUSED, true }, { FAIL_ERRNO, EAGAIN, true }, { FAIL_ERRNO, ENODEV, false },
		{ FAIL_REFUSED, REFUSE_FULL, true }, { FAIL_REFUSED, REFUSE_DRAINING, true },
		{ FAIL_REFUSED, REFUSE_BUSY, true }, { FAIL_REFUSED, REFUSE_BAD_SESSION, true },
		{ FAIL_REFUSED, REFUSE_STALE, true }, { FAIL_REFUSED, REFUSE_BAD_VERSION, false },
		{ FAIL_REFUSED, REFUSE_UNSUPPORTED, false }, { FAIL_REFUSED, REFUSE_BAD_ADDRESS, false },
		{ FAIL_TLS, 48, false }, { FAIL_CERTIFICATE, 10, false }, { FAIL_PROTOCOL, PROTO_BAD_PROOF, false },
		{ FAIL_NONE, 0, false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct fail f = { .kind = cases[i].kind, .code = cases[i].code };
		struct backoff b = { 0 };
		uint64_t at;

		backoff_begin(&b, T0);
		assert_int_equal(backoff_next(&b, &f, LIMIT, T0, &at), cases[i].again);
	}
}
