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

static void failure__want_of_memory__tried_again_and_said_once_a_second(void **state)
{
	struct retry r = { 0 };

	(void)state;
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

static void failure__for_long__given_up(void **state)
{
	struct retry r = { 0 };

	(void)state;
	assert_true(retry_again(&r, "the call", ENOMEM));
	r.since_ns -= RETRY_FOR_NS;
	assert_false(retry_again(&r, "the call", ENOMEM));
	assert_int_equal(lines[LOG_LVL_ERROR], 1);
	/* It worked in between. */
	retry_worked(&r);
	assert_true(retry_again(&r, "the call", ENOMEM));
}

static void failure__that_does_not_pass__given_up_at_once(void **state)
{
	static const int errors[] = { EIO, EINVAL, ENODEV, EBADF, 0 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
		struct retry r = { 0 };

		assert_false(retry_again(&r, "the call", errors[i]));
	}
	assert_int_equal(lines[LOG_LVL_ERROR], N_ELEMENTS(errors));
	assert_int_equal(lines[LOG_LVL_WARN], 0);
}

#define RETRY_TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RETRY_TEST(failure__want_of_memory__tried_again_and_said_once_a_second),
		RETRY_TEST(failure__for_long__given_up),
		RETRY_TEST(failure__that_does_not_pass__given_up_at_once),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
