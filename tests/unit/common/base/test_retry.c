/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/retry.h: what is tried again, for how long, and how often that is said. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdarg.h>

#include "common/base/retry.h"

static unsigned lines[LOG_LVL_DEBUG + 1];

bool log_enabled(enum log_level level)
{
	(void)level;
	return true;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	(void)fmt;
	lines[level]++;
}

static int set_up(void **state)
{
	(void)state;
	memset(lines, 0, sizeof(lines));
	return 0;
}

TEST(failure__want_of_memory__tried_again_and_said_once_a_second)
{
	struct retry r = { 0 };

	assert_int_equal(retry_failing_ns(&r), 0);
	for (unsigned s = 1; s <= 5; s++) {
		for (int i = 0; i < 100; i++)
			assert_true(retry_again(&r, "the call", i % 2 ? ENOMEM : ENOBUFS));
		assert_int_equal(lines[LOG_LVL_WARN], s);
		r.logged_ns -= RETRY_LOG_EVERY_NS;
	}
	assert_true(retry_failing_ns(&r) > 0);
	assert_int_equal(lines[LOG_LVL_ERROR], 0);
}

TEST(failure__for_long__given_up)
{
	struct retry r = { 0 };

	assert_true(retry_again(&r, "the call", ENOMEM));
	r.since_ns -= RETRY_FOR_NS;
	assert_false(retry_again(&r, "the call", ENOMEM));
	assert_int_equal(lines[LOG_LVL_ERROR], 1);
	/* It worked in between. */
	retry_worked(&r);
	assert_true(retry_again(&r, "the call", ENOMEM));
}

TEST(failure__that_does_not_pass__given_up_at_once)
{
	static const int errors[] = { EIO, EINVAL, ENODEV, EBADF, 0 };

	for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
		struct retry r = { 0 };

		assert_false(retry_again(&r, "the call", errors[i]));
	}
	assert_int_equal(lines[LOG_LVL_ERROR], N_ELEMENTS(errors));
	assert_int_equal(lines[LOG_LVL_WARN], 0);
}

TEST_EACH(set_up, NULL)
