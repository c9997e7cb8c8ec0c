/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/stats.c: against tables, against sorted data, and by simulation. */
#include "tests/unit/helpers/noise.h"

#include <stdlib.h>

#include "common/hist/hist.h"
#include "loadgen/analysis/stats.h"

static void assert_estimate(struct estimate e, double value, double low, double high)
{
	assert_near(e.value, value, 1e-9);
	assert_near(e.low, low, 1e-6);
	assert_near(e.high, high, 1e-6);
}

static void assert_no_interval(struct estimate e)
{
	assert_true(isnan(e.low) && isnan(e.high));
}

static void assert_nothing(struct estimate e)
{
	assert_true(isnan(e.value));
	assert_no_interval(e);
}

static bool holds(struct estimate e, double v)
{
	return e.low <= v && v <= e.high;
}

TEST(t95__whole_freedom__as_in_tables)
{
	const struct { double freedom, t; } table[] = {
		{ 1, 12.7062047362 }, { 2, 4.3026527297 }, { 3, 3.1824463053 }, { 4, 2.7764451052 },
		{ 5, 2.5705818356 }, { 6, 2.4469118511 }, { 7, 2.3646242516 }, { 8, 2.3060041352 },
		{ 9, 2.2621571628 }, { 10, 2.2281388520 }, { 15, 2.1314495456 }, { 20, 2.0859634473 },
		{ 25, 2.0595385528 }, { 29, 2.0452296421 }, { 30, 2.0422724563 }, { 40, 2.0210753903 },
		{ 60, 2.0002978211 }, { 120, 1.9799304051 }, { 1000, 1.9623390808 }, { 1e12, 1.9599639845 },
	};

	for (size_t i = 0; i < N_ELEMENTS(table); i++)
		assert_near(stats_t95(table[i].freedom), table[i].t, 1e-6);
	assert_near(stats_t95(INFINITY), 1.9599639845, 1e-6);
}

/* Integrates the density itself from 0 to t, by midpoints. */
static double confidence_of(double t, double freedom)
{
	const int parts = 200000;
	double sum = 0;

	for (int i = 0; i < parts; i++) {
		double x = t * (i + 0.5) / parts;

		sum += pow(1 + x * x / freedom, -(freedom + 1) / 2);
	}
	return 2 * sum * t / parts * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * M_PI);
}

TEST(t95__any_freedom__holds_95_percent)
{
	const double freedoms[] = { 1.001, 1.3, 1.5, 1.99, 2.5, 4.4, 9.1, 29.99, 30.01, 77.7 };

	for (size_t i = 0; i < N_ELEMENTS(freedoms); i++)
		assert_near(confidence_of(stats_t95(freedoms[i]), freedoms[i]), 0.95, 1e-8);
}

TEST(t95__below_one__nan)
{
	const double freedoms[] = { 0.999, 0, -1, -INFINITY, NAN };

	for (size_t i = 0; i < N_ELEMENTS(freedoms); i++)
		assert_true(isnan(stats_t95(freedoms[i])));
}

TEST(median__odd_even_none__middle)
{
	double odd[] = { 5, -1, 3 }, even[] = { 8, 1, 2, 4 }, one[] = { 7 }, huge[] = { 1.6e308, 1.7e308 };
	double gaps[] = { NAN, 3, INFINITY, 1, NAN, 2, -INFINITY }, none[] = { NAN, NAN };

	assert_near(stats_median(odd, 3), 3, 0);
	assert_near(stats_median(even, 4), 3, 0);
	assert_near(stats_median(one, 1), 7, 0);
	assert_near(stats_median(huge, 2), 1.65e308, 1e294);
	assert_near(stats_median(gaps, N_ELEMENTS(gaps)), 2, 0);
	assert_near(gaps[0], 1, 0);
	assert_true(isnan(stats_median(none, 2)));
	assert_true(isnan(stats_median(NULL, 0)));
}

/* Mean 3, variance 2.5: 3 +- 2.776445 sqrt(2.5 / 5). */
TEST(mean__five_values__student_s_interval)
{
	const double v[] = { 1, 2, NAN, 3, 4, INFINITY, 5 };

	assert_estimate(stats_mean(v, N_ELEMENTS(v)), 3, 1.0367568, 4.9632432);
}

TEST(mean__too_few_or_too_great__no_interval)
{
	const double v[] = { 1, 2, NAN }, huge[] = { 1.7e308, -1.7e308, 1.7e308 }, same[] = { 4, 4, 4 };

	assert_nothing(stats_mean(NULL, 0));
	assert_nothing(stats_mean(v + 2, 1));
	assert_near(stats_mean(v, 1).value, 1, 0);
	assert_near(stats_mean(v, 3).value, 1.5, 0);
	assert_no_interval(stats_mean(v, 3));
	assert_no_interval(stats_mean(huge, 3));
	assert_estimate(stats_mean(same, 3), 4, 4, 4);
}

/* In how many of a thousand trials the interval contains the true value. */
static int coverage(struct estimate (*mean)(const double *, size_t), size_t n, double resemblance)
{
	uint64_t seed = 1234567;
	double v[100];
	int held = 0;

	for (int trial = 0; trial < 1000; trial++) {
		v[0] = noise_normal(&seed);
		for (size_t i = 1; i < n; i++)
			v[i] = resemblance * v[i - 1] + sqrt(1 - resemblance * resemblance) * noise_normal(&seed);
		for (size_t i = 0; i < n; i++)
			v[i] += 10;
		held += holds(mean(v, n), 10);
	}
	return held;
}

TEST(mean__independent_noise__holds_the_truth_in_95_of_100)
{
	assert_in_range(coverage(stats_mean, 3, 0), 930, 970);
	assert_in_range(coverage(stats_mean, 5, 0), 930, 970);
	assert_in_range(coverage(stats_mean, 50, 0), 930, 970);
}

/* If the values were taken for independent, only about 70 of 100 intervals would contain the truth. */
TEST(series__neighbours_alike__holds_the_truth_in_90_and_more)
{
	assert_in_range(coverage(stats_mean, 60, 0.6), 600, 750);
	assert_in_range(coverage(stats_series_mean, 60, 0.6), 900, 980);
	assert_in_range(coverage(stats_series_mean, 30, 0.3), 900, 980);
	assert_in_range(coverage(stats_series_mean, 60, 0), 930, 980);
}

TEST(series__alternating__as_independent_values)
{
	const double v[] = { 1, 3, 1, 3, 1, 3, 1, 3 };
	struct estimate e = stats_series_mean(v, N_ELEMENTS(v)), independent = stats_mean(v, N_ELEMENTS(v));

	assert_estimate(e, independent.value, independent.low, independent.high);
}

TEST(series__two_levels__wider_than_of_independent_values)
{
	double v[40];
	struct estimate series, independent;

	for (size_t i = 0; i < N_ELEMENTS(v); i++)
		v[i] = (i / 4 % 2 ? 100 : 110) + (double)(i % 3);
	series = stats_series_mean(v, N_ELEMENTS(v));
	independent = stats_mean(v, N_ELEMENTS(v));
	assert_near(series.value, independent.value, 1e-9);
	assert_true(series.high - series.low > 1.5 * (independent.high - independent.low));
	assert_true(series.high - series.low < 4 * (independent.high - independent.low));
}

TEST(series__too_few_effective_values__no_interval)
{
	const double few[] = { 1, 2, 1, 2 }, trend[] = { 1, 2, 3, 4, 5, 6 }, same[] = { 2, 2, 2, 2, 2 };
	const double gaps[] = { 1, NAN, 2, NAN, 1, 2, NAN };

	assert_nothing(stats_series_mean(few, 0));
	assert_no_interval(stats_series_mean(few, 4));
	assert_no_interval(stats_series_mean(gaps, 7));
	assert_no_interval(stats_series_mean(trend, 6));
	assert_near(stats_series_mean(trend, 6).value, 3.5, 1e-12);
	assert_estimate(stats_series_mean(same, 5), 2, 2, 2);
}

static struct hist *new_hist(void)
{
	struct hist *h = NULL;

	assert_int_equal(hist_new(&h), 0);
	return h;
}

/* Below 2048 every value has its own cell, so ranks are values. */
TEST(percentile__one_of_each_value__ranks)
{
	struct hist *h = new_hist();

	for (uint64_t v = 1; v <= 1000; v++)
		hist_record(h, v);
	/* 500 +- 1.96 sqrt(250) and 990 +- 1.96 sqrt(9.9), rounded up. */
	assert_estimate(stats_percentile(h, 50), 500, 470, 531);
	assert_estimate(stats_percentile(h, 99), 990, 984, 997);
	assert_estimate(stats_percentile(h, 1), 10, 4, 17);
	hist_free(h);
}

TEST(percentile__rank_beyond_the_samples__no_interval)
{
	struct hist *h = new_hist();

	for (uint64_t v = 1; v <= 300; v++)
		hist_record(h, v);
	assert_near(stats_percentile(h, 99).value, 297, 0);
	assert_no_interval(stats_percentile(h, 99));	/* 297 + 1.96 sqrt(2.97) is beyond the last of 300 */
	assert_no_interval(stats_percentile(h, 0.5));
	assert_estimate(stats_percentile(h, 98), 294, 290, 299);
	hist_free(h);
}

TEST(percentile__empty_or_out_of_range__nothing)
{
	const double percentiles[] = { 0, 100, -1, 101, NAN, INFINITY };
	struct hist *h = new_hist();

	assert_nothing(stats_percentile(h, 50));
	hist_record(h, 5);
	for (size_t i = 0; i < N_ELEMENTS(percentiles); i++)
		assert_nothing(stats_percentile(h, percentiles[i]));
	assert_near(stats_percentile(h, 50).value, 5, 0);
	hist_free(h);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Latencies of all magnitudes, accurate to a thousandth. */
TEST(percentile__random_values__those_of_the_sorted_data)
{
	const double percentiles[] = { 1, 25, 50, 90, 99, 99.9 };
	struct hist *h = new_hist();
	static uint64_t v[20000];
	uint64_t seed = 31;
	double n = N_ELEMENTS(v);

	for (size_t i = 0; i < N_ELEMENTS(v); i++) {
		v[i] = (uint64_t)(50000 * exp(noise_normal(&seed)));
		hist_record(h, v[i]);
	}
	qsort(v, N_ELEMENTS(v), sizeof(*v), compare);
	for (size_t i = 0; i < N_ELEMENTS(percentiles); i++) {
		struct estimate e = stats_percentile(h, percentiles[i]);
		double p = percentiles[i] / 100, spread = 1.959964 * sqrt(n * p * (1 - p));
		double value = (double)v[(size_t)ceil(p * n - 1e-6) - 1];
		double low = (double)v[(size_t)ceil(p * n - spread) - 1];
		double high = (double)v[(size_t)ceil(p * n + spread) - 1];

		assert_near(e.value, value, value / 1000 + 1);
		assert_near(e.low, low, low / 1000 + 1);
		assert_near(e.high, high, high / 1000 + 1);
	}
	hist_free(h);
}

/* Values from 1 to 2000, all equally likely. */
TEST(percentile__many_samples__interval_holds_the_truth_in_95_of_100)
{
	struct hist *h = new_hist();
	uint64_t seed = 77;
	int median = 0, p99 = 0;

	for (int trial = 0; trial < 1000; trial++) {
		hist_reset(h);
		for (int i = 0; i < 1000; i++)
			hist_record(h, (uint64_t)ceil(2000 * noise_uniform(&seed)));
		median += holds(stats_percentile(h, 50), 1000);
		p99 += holds(stats_percentile(h, 99), 1980);
	}
	assert_in_range(median, 930, 975);
	assert_in_range(p99, 930, 975);
	hist_free(h);
}

TEST(line__points_on_it__exact)
{
	const double x[] = { 1, 10, NAN, 100, 1e5, 3 }, y[] = { 7, 25, 1, 205, 200005, NAN };
	struct line l = stats_line(x, y, 6);

	assert_int_equal(l.n, 4);
	assert_estimate(l.slope, 2, 2, 2);
	assert_near(l.base.value, 5, 1e-9);
	assert_near(l.base.low, 5, 1e-6);
}

TEST(line__points_off_it__least_squares)
{
	const double x[] = { 1, 2, 3, 4, 5 }, y[] = { 2, 4, 3, 6, 5 };
	struct line l = stats_line(x, y, 5);
	/* Mean 3 and 4, Sxy 8, Syy 10: residuals 10 - 8 * 8 / 10 = 3.6, variance 1.2, t of 3 is 3.182446. */
	double slope_half = 3.1824463053 * sqrt(1.2 / 10), base_half = 3.1824463053 * sqrt(1.2 * (0.2 + 0.9));

	assert_estimate(l.slope, 0.8, 0.8 - slope_half, 0.8 + slope_half);
	assert_estimate(l.base, 1.6, 1.6 - base_half, 1.6 + base_half);
}

TEST(line__far_from_the_origin__as_exact)
{
	double x[10], y[10];
	struct line l;

	for (int i = 0; i < 10; i++) {
		x[i] = 1e9 + i;
		y[i] = 3 * (double)i + 1e10;
	}
	l = stats_line(x, y, 10);
	assert_near(l.slope.value, 3, 1e-6);
}

TEST(line__not_determined__nan)
{
	const double x[] = { 5, 5, 5, 6, 6 }, y[] = { 1, 2, 3, 5, 7 }, huge[] = { 1e200, 2e200, -1e308 };
	struct line l = stats_line(x, y, 3);

	assert_nothing(l.slope);
	assert_nothing(l.base);
	assert_nothing(stats_line(x, y, 0).slope);
	assert_nothing(stats_line(huge, huge, 3).slope);
	l = stats_line(x, y, 5);	/* only two different x */
	assert_near(l.slope.value, 4, 1e-9);
	assert_near(l.base.value, -18, 1e-9);
	assert_no_interval(l.slope);
	assert_no_interval(l.base);
}

TEST(line__noise__holds_the_truth_in_95_of_100)
{
	uint64_t seed = 99;
	int slope = 0, base = 0;

	for (int trial = 0; trial < 1000; trial++) {
		double x[8], y[8];
		struct line l;

		for (int i = 0; i < 8; i++) {
			x[i] = exp2(i);
			y[i] = 1000 + 3 * x[i] + 20 * noise_normal(&seed);
		}
		l = stats_line(x, y, 8);
		slope += holds(l.slope, 3);
		base += holds(l.base, 1000);
	}
	assert_in_range(slope, 930, 970);
	assert_in_range(base, 930, 970);
}

/* Returns in how many of a thousand trials the interval contains the true slope of a line through 20 values whose noise
 * partly stays for the next one. */
static int slope_coverage(struct line (*line)(const double *, const double *, size_t), double resemblance)
{
	uint64_t seed = 4321;
	int held = 0;

	for (int trial = 0; trial < 1000; trial++) {
		double x[20], y[20], noise = noise_normal(&seed);

		for (int i = 0; i < 20; i++) {
			noise = resemblance * noise + sqrt(1 - resemblance * resemblance) * noise_normal(&seed);
			x[i] = 0.25 * (i + 1);
			y[i] = 1000 + 3 * x[i] + 20 * noise;
		}
		held += holds(line(x, y, 20).slope, 3);
	}
	return held;
}

TEST(series_line__neighbours_alike__holds_the_truth_more_often)
{
	assert_in_range(slope_coverage(stats_line, 0.5), 600, 800);
	assert_in_range(slope_coverage(stats_series_line, 0.5), 830, 950);
	assert_in_range(slope_coverage(stats_series_line, 0), 930, 980);
}

TEST(series_line__exact_or_not_determined__as_the_line)
{
	const double x[] = { 1, 2, 3, 4 }, y[] = { 3, 5, 7, 9 };

	assert_estimate(stats_series_line(x, y, 4).slope, 2, 2, 2);
	assert_nothing(stats_series_line(x, y, 1).slope);
	assert_no_interval(stats_series_line(x, y, 2).slope);
}
