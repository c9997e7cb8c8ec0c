/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/pace.c: how many connections are made at once, and which failures are retried. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/wire/frame.h"
#include "loadgen/worker/pace.h"

static struct pace p;

static void succeed(int n)
{
	while (n--)
		pace_on_success(&p);
}

TEST(init__any_limit__starts_low)
{
	pace_init(&p, 1000);
	assert_int_equal(pace_window(&p), 8);
	pace_init(&p, 3);
	assert_int_equal(pace_window(&p), 3);
}

TEST(success__before_any_congestion__doubles_with_every_windowful)
{
	pace_init(&p, 1000);
	succeed(8);
	assert_int_equal(pace_window(&p), 16);
	succeed(16);
	assert_int_equal(pace_window(&p), 32);
}

TEST(success__at_the_limit__stays)
{
	pace_init(&p, 10);
	succeed(100);
	assert_int_equal(pace_window(&p), 10);
}

TEST(congestion__halves__then_grows_by_one_a_windowful)
{
	pace_init(&p, 64);
	succeed(100);
	pace_on_congestion(&p, 10, 20);
	assert_int_equal(pace_window(&p), 32);
	/* Each success adds the inverse of a window that is growing meanwhile, so it takes one more. */
	succeed(32);
	assert_int_equal(pace_window(&p), 32);
	succeed(1);
	assert_int_equal(pace_window(&p), 33);
	succeed(32);
	assert_int_equal(pace_window(&p), 33);
}

TEST(congestion__begun_before_the_last_decrease__counts_once)
{
	pace_init(&p, 64);
	succeed(100);
	for (uint64_t begun = 10; begun <= 20; begun++)
		pace_on_congestion(&p, begun, 20 + begun);
	assert_int_equal(pace_window(&p), 32);
	assert_int_equal(p.decreases, 1);
	pace_on_congestion(&p, 31, 40);
	assert_int_equal(pace_window(&p), 16);
	assert_int_equal(p.decreases, 2);
}

TEST(congestion__for_ever__one_is_always_made)
{
	pace_init(&p, 64);
	for (uint64_t t = 1; t < 100; t++)
		pace_on_congestion(&p, 10 * t, 10 * t + 1);
	assert_int_equal(pace_window(&p), 1);
	succeed(1);
	assert_int_equal(pace_window(&p), 2);
}

TEST(leaving__all_leave__no_more_than_the_limit_at_once)
{
	uint64_t told = 0, left = 1000;
	struct leaving l;

	leaving_begin(&l, left);
	while (told < 1000) {
		while (leaving_has_room(&l, left) && told < 1000) {
			l.told += leaving_portion(&l, left, (uint32_t)(1000 - told));
			told = l.told;
		}
		assert_true(told - (1000 - left) < LEAVING_MAX + 64);
		left -= 50;
	}
	assert_int_equal(told, 1000);
}

TEST(leaving__slow_server__others_wait)
{
	struct leaving l;

	leaving_begin(&l, 1000);
	l.told = 300;
	assert_false(leaving_has_room(&l, 1000));
	assert_int_equal(leaving_portion(&l, 1000, 700), LEAVING_MAX);
	l.told += LEAVING_MAX;
	assert_int_equal(leaving_portion(&l, 999, 444), 0);
	assert_int_equal(leaving_portion(&l, 998, 444), 0);
	/* Nobody has left since. */
	assert_int_equal(leaving_portion(&l, 998, 444), LEAVING_MAX);
	l.told += LEAVING_MAX;
	assert_int_equal(leaving_portion(&l, 998, 188), 188);
}

TEST(leaving__clients_lost_before_they_are_told__room_for_others)
{
	struct leaving l;

	leaving_begin(&l, 1000);
	l.told = 300;
	assert_true(leaving_has_room(&l, 100));
	assert_true(leaving_portion(&l, 100, 700) > 0);
	/* None had a connection when leaving began: more are left than that only if one has come back. */
	leaving_begin(&l, 0);
	assert_true(leaving_has_room(&l, 1));
}

TEST(is_congestion__later__and_no)
{
	static const struct { struct fail fail; bool later; } cases[] = {
		{ { STAGE_TLS_HANDSHAKE, FAIL_TIMEOUT, 0 }, true },
		{ { STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0 }, true },
		{ { STAGE_TRAFFIC, FAIL_TIMEOUT, 0 }, false },
		{ { STAGE_DISCONNECT, FAIL_TIMEOUT, 0 }, false },
		{ { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_BUSY }, true },
		{ { STAGE_RDMA_CONNECT, FAIL_REFUSED, REFUSE_BAD_SESSION }, true },
		{ { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL }, false },
		{ { STAGE_RDMA_CONNECT, FAIL_REFUSED, REFUSE_BAD_HMAC }, false },
		{ { STAGE_RDMA_CONNECT, FAIL_CM_STATUS, -ETIMEDOUT }, true },
		{ { STAGE_RDMA_CONNECT, FAIL_CM_STATUS, 8 }, false },
		{ { STAGE_QP_SETUP, FAIL_ERRNO, EAGAIN }, true },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, ETIMEDOUT }, true },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, ECONNREFUSED }, false },
		{ { STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, 18 }, false },
		{ { STAGE_TLS_HANDSHAKE, FAIL_CLOSED, 0 }, true },
		{ { STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0 }, true },
		{ { STAGE_RDMA_CONNECT, FAIL_CLOSED, 0 }, true },
		{ { STAGE_SOCKET_CONNECT, FAIL_CLOSED, 0 }, true },
		{ { STAGE_SOCKET_CONNECT, FAIL_ERRNO, ECONNREFUSED }, false },
		{ { STAGE_PSN_EXCHANGE, FAIL_ERRNO, ECONNRESET }, true },
		{ { STAGE_TLS_HANDSHAKE, FAIL_ERRNO, EPIPE }, true },
		{ { STAGE_TCP_CONNECT, FAIL_CLOSED, 0 }, false },
		{ { STAGE_FIRST_REPLY, FAIL_CLOSED, 0 }, false },
		{ { STAGE_TRAFFIC, FAIL_ERRNO, ECONNRESET }, false },
		{ { STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, ECONNRESET }, false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		if (pace_is_congestion(&cases[i].fail) != cases[i].later)
			fail_msg("case %zu", i);
}
