/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/hist/hist.c: figures against exact ones computed from the samples themselves. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/hist/hist_internal.h"
#include "tests/unit/common/hist/hist_rig.h"

#define N_SAMPLES      50000
#define RELATIVE_ERROR 0.001	/* three significant digits */
static const double percentiles[] = { 0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100 };

static void record_all(struct hist *to, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hist_record(to, values[i]);
}

static struct hist *hist_of(const uint64_t *values, size_t n)
{
	struct hist *of = new_hist();

	record_all(of, values, n);
	return of;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nearest rank: the smallest sample with at least p per cent of the samples at or below it. */
static uint64_t exact_percentile(const uint64_t *sorted, size_t n, double p)
{
	size_t rank = (size_t)ceil(p * (double)n / 100.0 - 1e-9);

	return sorted[rank ? rank - 1 : 0];
}

static void assert_near(uint64_t got, uint64_t exact)
{
	/* The upper edge of the cell: never below, and above by no more than the cell's width. */
	assert_in_range(got, exact, exact + (uint64_t)((double)exact * RELATIVE_ERROR));
}

static void check_percentiles(const struct hist *of, uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	for (size_t i = 0; i < N_ELEMENTS(percentiles); i++)
		assert_near(hist_percentile(of, percentiles[i]), exact_percentile(values, n, percentiles[i]));
	assert_int_equal(hist_count(of), n);
	assert_int_equal(hist_min(of), values[0]);
	assert_int_equal(hist_max(of), values[n - 1]);
	assert_int_equal(hist_percentile(of, 100), values[n - 1]);
}

static uint64_t cells_total(const struct hist *of)
{
	uint64_t total = 0;

	for (size_t i = 0; i < HIST_CELLS; i++)
		total += counter_get(&of->cell[i]);
	return total;
}

/* HdrHistogram_c's counts_index_for, with its own steps and names. */
static size_t reference_index(uint64_t value)
{
	int pow2ceiling = 64 - __builtin_clzll(value | 2047);
	int bucket_index = pow2ceiling - (10 + 1);
	int sub_bucket_index = (int)(value >> bucket_index);
	int bucket_base_index = (bucket_index + 1) << 10;

	return (size_t)(bucket_base_index + sub_bucket_index - 1024);
}

TEST(hist_index__power_of_two_boundaries__as_hdrhistogram)
{
	for (int bit = 0; bit < 37; bit++)
		for (int64_t delta = -2; delta <= 2; delta++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)delta;

			if (v <= HIST_MAX_TRACKABLE_NS)
				assert_int_equal(hist_index(v), reference_index(v));
		}
	assert_int_equal(hist_index(0), 0);
	assert_int_equal(hist_index(2047), 2047);
	assert_int_equal(hist_index(2048), 2048);
	assert_int_equal(hist_index(2049), 2048);
	assert_int_equal(hist_index(HIST_MAX_TRACKABLE_NS), HIST_CELLS - 1);
	assert_int_equal(hist_index(HIST_MAX_TRACKABLE_NS + 1), HIST_CELLS - 1);
	assert_int_equal(hist_index(UINT64_MAX), HIST_CELLS - 1);
}

TEST(hist_cell_bounds__every_cell__adjoin_and_map_back)
{
	uint64_t expected_low = 0;

	for (size_t i = 0; i < HIST_CELLS; i++) {
		uint64_t low = hist_cell_low(i), high = hist_cell_high(i);

		assert_int_equal(low, expected_low);
		assert_int_equal(hist_index(low), i);
		assert_int_equal(hist_index(high), i);
		assert_true((double)(high - low) <= (double)low * RELATIVE_ERROR);
		expected_low = high + 1;
	}
	assert_int_equal(expected_low, HIST_MAX_TRACKABLE_NS + 1);
}

TEST(hist_new__nothing_recorded__all_zero)
{
	assert_int_equal(hist_count(h), 0);
	assert_int_equal(hist_min(h), 0);
	assert_int_equal(hist_max(h), 0);
	assert_true(hist_mean(h) == 0.0);
	assert_int_equal(hist_percentile(h, 50), 0);
	assert_int_equal(hist_percentile(h, 100), 0);
	assert_false(hist_supports(h, 0));
	hist_free(NULL);
}

TEST(hist_percentile__uniform_samples__within_three_digits)
{
	static uint64_t values[N_SAMPLES];
	uint64_t seed = 42;

	for (size_t i = 0; i < N_SAMPLES; i++)
		values[i] = unit_random(&seed) % 10000000;
	record_all(h, values, N_SAMPLES);
	check_percentiles(h, values, N_SAMPLES);
}

/* From 1 ns to 130 s, every magnitude equally likely: all buckets are used. */
TEST(hist_percentile__every_magnitude__within_three_digits)
{
	static uint64_t values[N_SAMPLES];
	uint64_t seed = 7;

	for (size_t i = 0; i < N_SAMPLES; i++)
		values[i] = (unit_random(&seed) & HIST_MAX_TRACKABLE_NS) >> unit_random(&seed) % 37;
	record_all(h, values, N_SAMPLES);
	check_percentiles(h, values, N_SAMPLES);
}

TEST(hist_percentile__bucket_boundaries__exact_edges)
{
	const uint64_t values[] = { 0, 1, 2047, 2048, 4095, 4096, HIST_MAX_TRACKABLE_NS };
	const uint64_t reported[] = { 0, 1, 2047, 2049, 4095, 4099, HIST_MAX_TRACKABLE_NS };
	size_t n = N_ELEMENTS(values);

	record_all(h, values, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(hist_percentile(h, 100.0 * (double)(i + 1) / (double)n),
				 reported[i]);
	assert_int_equal(hist_percentile(h, 0), 0);
}

/* The cell of 1000001 reaches from 999936 to 1000447. */
TEST(hist_percentile__one_sample__never_beyond_true_ends)
{
	const uint64_t values[] = { 1000001, 2000000 };

	record_all(h, values, 1);
	assert_int_equal(hist_percentile(h, 0), 1000001);
	assert_int_equal(hist_percentile(h, 50), 1000001);
	assert_int_equal(hist_percentile(h, 100), 1000001);
	hist_record(h, values[1]);
	assert_int_equal(hist_percentile(h, 0), 1000001);
	assert_int_equal(hist_percentile(h, 1e-300), 1000447);
	assert_int_equal(hist_percentile(h, 50), 1000447);
}

/* 16.1 * 1000 / 100 is 161.00000000000003 in binary, and so are the other two. */
TEST(hist_percentile__rank_on_a_rounding_edge__nearest_rank)
{
	for (uint64_t v = 1; v <= 1000; v++)
		hist_record(h, v);
	for (uint64_t p = 1; p <= 100; p++)
		assert_int_equal(hist_percentile(h, (double)p), 10 * p);
	assert_int_equal(hist_percentile(h, 16.1), 161);
	assert_int_equal(hist_percentile(h, 32.7), 327);
	assert_int_equal(hist_percentile(h, 64.9), 649);
	assert_int_equal(hist_percentile(h, 64.91), 650);
	assert_int_equal(hist_percentile(h, 99.99), 1000);
	assert_int_equal(hist_percentile(h, 1000), 1000);
}

TEST(hist_record__beyond_range__last_cell_and_true_maximum)
{
	const uint64_t values[] = { 5, HIST_MAX_TRACKABLE_NS + 1, 2 * HIST_MAX_TRACKABLE_NS };

	record_all(h, values, N_ELEMENTS(values));
	assert_int_equal(hist_count(h), 3);
	assert_int_equal(counter_get(&h->cell[HIST_CELLS - 1]), 2);
	assert_int_equal(hist_max(h), 2 * HIST_MAX_TRACKABLE_NS);
	assert_int_equal(hist_percentile(h, 100), 2 * HIST_MAX_TRACKABLE_NS);
	assert_int_equal(hist_percentile(h, 33), 5);
}

TEST(hist_mean__odd_values__true_and_not_of_cells)
{
	const uint64_t values[] = { 1000001, 1000003, 2000007 };

	record_all(h, values, N_ELEMENTS(values));
	assert_true(fabs(hist_mean(h) - 4000011.0 / 3.0) < 1e-6);
}

TEST(hist_mean__sum_beyond_64_bits__saturates)
{
	const uint64_t values[] = { UINT64_MAX, UINT64_MAX / 4 };

	record_all(h, values, N_ELEMENTS(values));
	assert_true(hist_mean(h) == (double)UINT64_MAX / 2.0);
}

TEST(hist_reset__after_records__as_new)
{
	const uint64_t values[] = { 0, 77, 1000000, UINT64_MAX };

	record_all(h, values, N_ELEMENTS(values));
	hist_reset(h);
	assert_int_equal(hist_count(h), 0);
	assert_int_equal(hist_max(h), 0);
	assert_true(hist_mean(h) == 0.0);
	assert_int_equal(cells_total(h), 0);
	hist_record(h, 9);
	assert_int_equal(hist_min(h), 9);
	assert_int_equal(hist_max(h), 9);
	assert_true(hist_mean(h) == 9.0);
}

TEST(hist_add__two_halves__same_as_all_in_one)
{
	static uint64_t values[N_SAMPLES];
	uint64_t seed = 3;
	struct hist *all, *merged, *half;

	for (size_t i = 0; i < N_SAMPLES; i++)
		values[i] = unit_random(&seed) % (i < N_SAMPLES / 2 ? 100000 : 90000000);
	all = hist_of(values, N_SAMPLES);
	merged = hist_of(values, N_SAMPLES / 2);
	half = hist_of(values + N_SAMPLES / 2, N_SAMPLES - N_SAMPLES / 2);
	hist_add(merged, half);
	assert_memory_equal(merged, all, sizeof(*all));
	check_percentiles(merged, values, N_SAMPLES);
}

TEST(hist_add__empty_or_into_empty__changes_nothing_else)
{
	const uint64_t values[] = { 12345678, 99, HIST_MAX_TRACKABLE_NS + 5 };
	struct hist *empty = new_hist(), *copy = new_hist();

	record_all(h, values, N_ELEMENTS(values));
	hist_add(copy, h);
	assert_memory_equal(copy, h, sizeof(*h));
	hist_add(copy, empty);
	assert_memory_equal(copy, h, sizeof(*h));
	assert_int_equal(hist_count(empty), 0);

	hist_reset(h);
	hist_record(h, 2 * HIST_MAX_TRACKABLE_NS);
	hist_reset(copy);
	hist_add(copy, h);
	assert_memory_equal(copy, h, sizeof(*h));
}

/* A reader that comes between the stores of a record sees cells that are ahead of sum, min and max. */
TEST(hist_add__torn_source__figures_fit_the_cells)
{
	const uint64_t values[] = { 500000, 5000000 };
	struct hist *torn = hist_of(values, N_ELEMENTS(values)), *copy = new_hist();

	counter_set(&torn->cell[hist_index(1000000)], 3);
	counter_set(&torn->sum, 1);
	hist_add(copy, torn);
	assert_int_equal(hist_count(copy), 5);
	assert_int_equal(cells_total(copy), 5);
	assert_in_range((uint64_t)hist_mean(copy), 1699000, 1700000);

	hist_reset(copy);
	counter_set(&torn->sum, UINT64_MAX / 2);
	counter_set(&torn->cell[hist_index(500000)], 0);
	counter_set(&torn->cell[hist_index(5000000)], 0);
	hist_add(copy, torn);
	assert_int_equal(hist_count(copy), 3);
	assert_int_equal(hist_index(hist_min(copy)), hist_index(1000000));
	assert_int_equal(hist_index(hist_max(copy)), hist_index(1000000));
	assert_int_equal(hist_index((uint64_t)hist_mean(copy)), hist_index(1000000));
}

TEST(hist_diff__two_snapshots__what_came_between)
{
	const uint64_t before[] = { 10, 1000000, 90000000 }, after[] = { 2000, 1000000, 3000000 };
	struct hist *earlier = hist_of(before, 3), *later = hist_of(before, 3), *d = new_hist();

	hist_record(d, 123);	/* what was in dst is gone */
	for (size_t i = 0; i < 3; i++)
		hist_record(later, after[i]);
	hist_diff(d, later, earlier);
	assert_int_equal(hist_count(d), 3);
	assert_int_equal(cells_total(d), 3);
	assert_true(fabs(hist_mean(d) - 4002000.0 / 3.0) < 1e-6);
	assert_int_equal(hist_min(d), 2000);
	assert_int_equal(hist_max(d), hist_cell_high(hist_index(3000000)));
	assert_near(hist_percentile(d, 50), 1000000);
	hist_diff(d, later, later);
	assert_int_equal(hist_count(d), 0);
	assert_int_equal(hist_max(d), 0);
}

TEST(hist_diff__from_nothing__bounded_by_true_minimum_and_maximum)
{
	const uint64_t values[] = { 1000001, 3000001 };
	struct hist *empty = new_hist(), *later = hist_of(values, 2), *d = new_hist();

	hist_diff(d, later, empty);
	assert_memory_equal(d, later, sizeof(*d));
	hist_record(later, 3 * HIST_MAX_TRACKABLE_NS);
	hist_diff(d, later, empty);
	assert_int_equal(hist_max(d), 3 * HIST_MAX_TRACKABLE_NS);
}

TEST(hist_diff__reset_in_between__nothing_negative)
{
	const uint64_t before[] = { 5, 5, 900 }, after[] = { 5, 700 };
	struct hist *earlier = hist_of(before, 3), *later = hist_of(after, 2), *d = new_hist();

	hist_diff(d, later, earlier);
	assert_int_equal(hist_count(d), 1);
	assert_int_equal(hist_min(d), 700);
	assert_int_equal(hist_max(d), 700);
	assert_true(hist_mean(d) == 700.0);
}

TEST(hist_supports__sample_thresholds__95_percent_one_sided)
{
	static const struct {
		double percentile;
		uint64_t needed;
	} rules[] = {
		{ 50, 5 }, { 90, 29 }, { 95, 59 }, { 99, 299 }, { 99.9, 2995 }, { 99.99, 29956 },
	};

	for (size_t i = 0; i < N_ELEMENTS(rules); i++) {
		hist_reset(h);
		for (uint64_t n = 0; n < rules[i].needed - 1; n++)
			hist_record(h, n);
		assert_false(hist_supports(h, rules[i].percentile));
		hist_record(h, 1);
		assert_true(hist_supports(h, rules[i].percentile));
	}
	assert_false(hist_supports(h, 100));
}

#define SNAPSHOTS 200

struct writer {
	struct hist *h;
	uint64_t n;		/* recorded; read after the join */
	_Atomic int stop;
};

static void *record_until_told(void *arg)
{
	struct writer *w = arg;
	uint64_t seed = 11;

	for (; !atomic_load(&w->stop); w->n++)
		hist_record(w->h, unit_random(&seed) >> (24 + w->n % 24));
	return NULL;
}

static void check_snapshot(const struct hist *snapshot)
{
	assert_int_equal(hist_count(snapshot), cells_total(snapshot));
	assert_true(hist_min(snapshot) <= hist_max(snapshot));
	assert_true(hist_mean(snapshot) >= (double)hist_min(snapshot) * (1 - RELATIVE_ERROR));
	assert_true(hist_mean(snapshot) <= (double)hist_max(snapshot) * (1 + RELATIVE_ERROR));
	assert_int_equal(hist_percentile(snapshot, 100), hist_max(snapshot));
}

struct snapshots {
	struct hist *earlier, *now, *news, *sum;
};

/* Adds what came since the earlier snapshot to the sum. Returns how much that was. */
static uint64_t take_snapshot(const struct hist *live, struct snapshots *s)
{
	uint64_t n;

	hist_reset(s->now);
	hist_add(s->now, live);
	check_snapshot(s->now);
	hist_diff(s->news, s->now, s->earlier);
	check_snapshot(s->news);
	n = hist_count(s->news);
	assert_int_equal(n, hist_count(s->now) - hist_count(s->earlier));
	hist_add(s->sum, s->news);
	hist_reset(s->earlier);
	hist_add(s->earlier, s->now);
	return n;
}

TEST(hist_add__while_another_thread_records__valid_snapshots)
{
	struct writer w = { .h = h };
	struct snapshots s = { new_hist(), new_hist(), new_hist(), new_hist() };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, record_until_told, &w), 0);
	for (int fresh = 0; fresh < SNAPSHOTS;)
		fresh += take_snapshot(h, &s) > 0;
	atomic_store(&w.stop, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	take_snapshot(h, &s);
	assert_int_equal(hist_count(s.sum), w.n);
	assert_memory_equal(s.earlier, h, sizeof(*h));
	assert_memory_equal(s.sum->cell, h->cell, sizeof(h->cell));
}

TEST(record_n__some_values__as_if_recorded_one_by_one)
{
	struct hist *one_by_one = new_hist();

	hist_record_n(h, 7, 0);
	assert_int_equal(hist_count(h), 0);
	assert_int_equal(hist_min(h), 0);
	hist_record_n(h, 123456, 3);
	hist_record_n(h, 5, 2);
	for (int i = 0; i < 5; i++)
		hist_record(one_by_one, i < 3 ? 123456 : 5);
	assert_memory_equal(h, one_by_one, sizeof(*h));
	hist_record_n(h, UINT64_MAX / 2, 3);	/* the sum saturates */
	assert_true(hist_mean(h) == (double)UINT64_MAX / 8);
}
