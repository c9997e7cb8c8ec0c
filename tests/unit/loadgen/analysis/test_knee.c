/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/knee.c: curves whose knee is known. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "loadgen/analysis/knee.h"

static struct knee knee_of(const struct knee_point *p, size_t n)
{
	struct knee k;

	knee_find(p, n, &k);
	return k;
}
#define KNEE_OF(...) \
	knee_of((const struct knee_point[]){ __VA_ARGS__ }, N_ELEMENTS(((const struct knee_point[]){ __VA_ARGS__ })))

static void assert_knee(struct knee k, enum knee_reason reason, double clients, double beyond)
{
	assert_string_equal(knee_reason_names[k.reason], knee_reason_names[reason]);
	assert_true(k.clients == clients);
	assert_true(k.beyond == beyond);
}

static void assert_no_knee(struct knee k, enum knee_reason reason)
{
	assert_string_equal(knee_reason_names[k.reason], knee_reason_names[reason]);
	assert_true(isnan(k.clients) && isnan(k.beyond));
}

TEST(find__grows_to_the_end__none)
{
	struct knee_point p[20];

	for (size_t i = 0; i < N_ELEMENTS(p); i++) {
		double n = exp2((double)i);

		p[i] = (struct knee_point){ .clients = n, .throughput = 7 * n, .p99_ns = 100 };
	}
	assert_no_knee(knee_of(p, N_ELEMENTS(p)), KNEE_NONE);
	assert_no_knee(KNEE_OF({ 10, 1, NAN }, { 1e6, 1e5, NAN }), KNEE_NONE);
}

/* N / (1 + (N - 1) / 10): 32 to 64 clients bring a factor of 1.123, 64 to 128 one of 1.066. */
TEST(find__saturates__where_growth_ends)
{
	struct knee_point p[12];
	size_t expected = 0;

	for (size_t i = 0; i < N_ELEMENTS(p); i++) {
		double n = exp2((double)i);

		p[i] = (struct knee_point){ .clients = n, .throughput = n / (1 + (n - 1) / 10), .p99_ns = NAN };
		if (!expected && i && p[i].throughput < 1.1 * p[i - 1].throughput)
			expected = i;
	}
	assert_int_equal(expected, 7);
	assert_knee(knee_of(p, N_ELEMENTS(p)), KNEE_THROUGHPUT, 64, 128);
}

TEST(find__falls_from_the_start__the_first_number)
{
	assert_knee(KNEE_OF({ 10, 100, 1 }, { 20, 50, 1 }, { 40, 25, 1 }), KNEE_THROUGHPUT, 10, 20);
	assert_knee(KNEE_OF({ 10, 0, 1 }, { 20, 0, 1 }), KNEE_THROUGHPUT, 10, 20);
}

TEST(find__falls_after_rising__the_last_before)
{
	assert_knee(KNEE_OF({ 10, 100, 1 }, { 20, 190, 1 }, { 40, 150, 1 }, { 80, 900, 1 }), KNEE_THROUGHPUT, 20, 40);
}

TEST(find__growth_at_the_limit__goes_on)
{
	assert_no_knee(KNEE_OF({ 1, 100, 1 }, { 2, 110, 1 }, { 4, 121, 1 }, { 8, 133.1, 1 }), KNEE_NONE);
	assert_knee(KNEE_OF({ 1, 100, 1 }, { 2, 109.9, 1 }), KNEE_THROUGHPUT, 1, 2);
}

/* Ten times the clients are 3.32 doublings and must bring 1.1^3.32 = 1.373; half as many again must bring 1.057. */
TEST(find__uneven_spacing__growth_is_scaled)
{
	assert_no_knee(KNEE_OF({ 10, 100, 1 }, { 100, 137.5, 1 }), KNEE_NONE);
	assert_knee(KNEE_OF({ 10, 100, 1 }, { 100, 137, 1 }), KNEE_THROUGHPUT, 10, 100);
	assert_no_knee(KNEE_OF({ 10, 100, 1 }, { 15, 105.8, 1 }), KNEE_NONE);
	assert_knee(KNEE_OF({ 10, 100, 1 }, { 15, 105.6, 1 }), KNEE_THROUGHPUT, 10, 15);
}

TEST(find__p99_more_than_twice_the_first__p99)
{
	assert_knee(KNEE_OF({ 1, 1, 100 }, { 2, 2, 150 }, { 4, 4, 200 }, { 8, 8, 201 }), KNEE_P99, 4, 8);
	assert_no_knee(KNEE_OF({ 1, 1, 100 }, { 2, 2, 200 }, { 4, 4, 199 }), KNEE_NONE);
	/* If both happen at once, throughput is named. */
	assert_knee(KNEE_OF({ 1, 1, 100 }, { 2, 1, 300 }), KNEE_THROUGHPUT, 1, 2);
}

TEST(find__p99_not_known__of_the_first_where_it_is)
{
	assert_knee(KNEE_OF({ 1, 1, NAN }, { 2, 2, 100 }, { 4, 4, NAN }, { 8, 8, 201 }), KNEE_P99, 4, 8);
	assert_no_knee(KNEE_OF({ 1, 1, 0 }, { 2, 2, 100 }, { 4, 4, 199 }), KNEE_NONE);
}

TEST(find__points_that_say_nothing__left_out)
{
	assert_knee(KNEE_OF({ NAN, 1, 1 }, { -5, 1, 1 }, { 0, 1, 1 }, { 10, 100, 1 }, { 20, NAN, 900 }, { 20, -1, 1 },
			    { 40, INFINITY, 1 }, { 40, 110, 1 }, { INFINITY, 1, 1 }), KNEE_THROUGHPUT, 10, 40);
	/* Numbers of clients that fall or repeat. */
	assert_no_knee(KNEE_OF({ 10, 100, 1 }, { 10, 50, 1 }, { 5, 1, 1 }, { 20, 200, 1 }), KNEE_NONE);
}

static struct knee of_full_cpus(struct knee k)
{
	knee_of_full_cpus(&k, 10);
	return k;
}

TEST(full_cpus__p99_or_the_first_number__saturated)
{
	assert_no_knee(of_full_cpus(KNEE_OF({ 10, 100, 1 }, { 20, 105, 2 })), KNEE_SATURATED);
	assert_no_knee(of_full_cpus(KNEE_OF({ 10, 100, 1 }, { 20, 120, 1.7 }, { 40, 140, 3 })), KNEE_SATURATED);
	/* Throughput that still grew, because messages share their costs, has a knee where that ends. */
	assert_knee(of_full_cpus(KNEE_OF({ 10, 100, 1 }, { 20, 150, 1 }, { 40, 155, 2 })), KNEE_THROUGHPUT, 20, 40);
	assert_no_knee(of_full_cpus(KNEE_OF({ 10, 100, 1 }, { 20, 200, 1 })), KNEE_NONE);
}

TEST(find__fewer_than_two_points__few_points)
{
	assert_no_knee(knee_of(NULL, 0), KNEE_FEW_POINTS);
	assert_no_knee(KNEE_OF({ 10, 100, 1 }), KNEE_FEW_POINTS);
	assert_no_knee(KNEE_OF({ 10, 100, 1 }, { 20, NAN, 1 }), KNEE_FEW_POINTS);
}
