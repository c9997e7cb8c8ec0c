/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/traffic/schedule.c: which client is due next, and the intervals of a Poisson process. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "loadgen/traffic/schedule.h"

TEST(schedule__empty__nobody)
{
	struct schedule *s;

	assert_int_equal(schedule_new(4, &s), 0);
	assert_null(schedule_first(s));
	schedule_add(s, 1, 1);
	schedule_clear(s);
	assert_null(schedule_first(s));
	assert_int_equal(schedule_count(s), 0);
	schedule_free(s);
	schedule_free(NULL);
}

/* Whatever is added or removed, the first entry is the earliest of those present. */
TEST(schedule__random_adds_and_removes__always_the_earliest)
{
	static double due[1000];
	struct schedule *s;
	uint64_t seed = 11;
	uint32_t n = 0;

	assert_int_equal(schedule_new(N_ELEMENTS(due), &s), 0);
	for (int i = 0; i < 100000; i++) {
		if (n < N_ELEMENTS(due) && (n == 0 || unit_random(&seed) % 2)) {
			due[n] = (double)(unit_random(&seed) % 500);
			schedule_add(s, due[n], (uint32_t)unit_random(&seed));
			n++;
		} else {
			uint32_t earliest = 0;

			for (uint32_t k = 1; k < n; k++)
				earliest = due[k] < due[earliest] ? k : earliest;
			assert_true(schedule_first(s)->due_ns == due[earliest]);
			schedule_remove_first(s);
			due[earliest] = due[--n];
		}
		assert_int_equal(schedule_count(s), n);
	}
	schedule_free(s);
}

TEST(schedule__client__comes_back_with_its_time)
{
	struct schedule *s;

	assert_int_equal(schedule_new(3, &s), 0);
	schedule_add(s, 30, 3);
	schedule_add(s, 10, 1);
	schedule_add(s, 20, 2);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(schedule_first(s)->client, i);
		schedule_remove_first(s);
	}
	schedule_free(s);
}

/* An exponential distribution's mean and deviation are equal, and 1/e of its values exceed the mean. */
TEST(exponential__many__of_that_distribution)
{
	double sum = 0, squares = 0, longer = 0;
	uint64_t random = 1;
	const int n = 200000;

	for (int i = 0; i < n; i++) {
		double x = schedule_exponential_ns(1000, &random);

		assert_true(x >= 0 && isfinite(x));
		sum += x;
		squares += x * x;
		longer += x > 1000;
	}
	assert_true(fabs(sum / n - 1000) < 15);
	assert_true(fabs(sqrt(squares / n - sum / n * (sum / n)) - 1000) < 25);
	assert_true(fabs(longer / n - exp(-1)) < 0.005);
}
