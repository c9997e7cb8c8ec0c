/* SPDX-License-Identifier: BSD-2-Clause */
/* Log-linear latency histogram.
 *
 * Purpose: count a value in a few instructions; percentiles, sums and differences of histograms later. Non-goals: file
 * formats (hist_io.c), clocks, corrections of any kind. Threads: one writer per histogram; readers take snapshots with
 * hist_add at any time. Invariants: cells as in hist_internal.h. In a histogram that nobody writes to, count is the sum
 * of the cells, min is in the first cell that is not empty and max in the last.
 */
#include "common/hist/hist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/hist/hist_internal.h"

/* The result of a pass over cells: how many samples, in which cells, and between which bounds their true sum lies. */
struct tally {
	uint64_t count;
	unsigned __int128 sum_low, sum_high;	/* the sum if every sample had its cell's lowest, or highest, value */
	size_t first, last;			/* first and last cell that is not empty; valid if count is not 0 */
};

int hist_new(struct hist **out)
{
	struct hist *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	/* Writes to each page now, so that no later record waits for the kernel to provide one. */
	for (size_t i = 0; i < HIST_CELLS; i++)
		counter_set(&h->cell[i], 0);
	counter_set(&h->count, 0);
	counter_set(&h->sum, 0);
	counter_set(&h->max, 0);
	counter_set(&h->min, UINT64_MAX);
	*out = h;
	return 0;
}

void hist_free(struct hist *h)
{
	free(h);
}

int hists_new(struct hist **v, size_t n)
{
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		v[i] = NULL;
	for (size_t i = 0; i < n && !ret; i++)
		ret = hist_new(&v[i]);
	return ret;
}

void hists_free(struct hist *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hist_free(v[i]);
}

void hists_add(struct hist *const *dst, struct hist *const *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hist_add(dst[i], src[i]);
}

static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return sum < b ? UINT64_MAX : sum;
}

/* Compares first, because a store that changes nothing still takes the cache line from its readers. */
static inline void widen(struct hist *h, uint64_t low, uint64_t high)
{
	if (low < counter_get(&h->min))
		counter_set(&h->min, low);
	if (high > counter_get(&h->max))
		counter_set(&h->max, high);
}

/* Inline, so that hist_record needs no multiplication. */
static inline void record(struct hist *h, uint64_t value_ns, uint64_t n)
{
	uint64_t sum;

	if (__builtin_mul_overflow(value_ns, n, &sum))
		sum = UINT64_MAX;
	counter_add(&h->cell[hist_index(value_ns)], n);
	counter_add(&h->count, n);
	counter_set(&h->sum, add_saturated(counter_get(&h->sum), sum));
	widen(h, value_ns, value_ns);
}

void hist_record(struct hist *h, uint64_t value_ns)
{
	record(h, value_ns, 1);
}

void hist_record_n(struct hist *h, uint64_t value_ns, uint64_t n)
{
	if (n)
		record(h, value_ns, n);
}

void hist_reset(struct hist *h)
{
	struct hist_range r = hist_range_of(h);

	for (size_t i = r.first; i <= r.last; i++)
		counter_set(&h->cell[i], 0);
	counter_set(&h->count, 0);
	counter_set(&h->sum, 0);
	counter_set(&h->max, 0);
	counter_set(&h->min, UINT64_MAX);
}

static void tally_cell(struct tally *t, size_t index, uint64_t n)
{
	if (!t->count)
		t->first = index;
	t->last = index;
	t->count += n;
	t->sum_low += (unsigned __int128)n * hist_cell_low(index);
	t->sum_high += (unsigned __int128)n * hist_cell_high(index);
}

/* Returns `sum`, or the nearest sum that samples in these cells can have, because it was read after the cells. */
static uint64_t tally_fit_sum(const struct tally *t, uint64_t sum)
{
	if (sum < t->sum_low)
		return t->sum_low > UINT64_MAX ? UINT64_MAX : (uint64_t)t->sum_low;
	if (sum > t->sum_high && t->last != HIST_CELLS - 1)
		return (uint64_t)t->sum_high;
	return sum;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
	return v < low ? low : v > high ? high : v;
}

void hist_add(struct hist *dst, const struct hist *src)
{
	struct hist_range r = hist_range_of(src);
	struct tally t = { 0 };
	uint64_t min, max, high;

	for (size_t i = r.first; i <= r.last; i++) {
		uint64_t n = counter_get(&src->cell[i]);

		if (!n)
			continue;
		counter_add(&dst->cell[i], n);
		tally_cell(&t, i, n);
	}
	if (!t.count)
		return;
	/* Like the sum, minimum and maximum are read after the cells and may belong to newer samples: move them into
	 * the outermost cells that had samples. */
	high = t.last == HIST_CELLS - 1 ? UINT64_MAX : hist_cell_high(t.last);
	max = clamp(counter_get(&src->max), hist_cell_low(t.last), high);
	high = t.first == HIST_CELLS - 1 ? max : hist_cell_high(t.first);
	min = clamp(counter_get(&src->min), hist_cell_low(t.first), high);
	counter_add(&dst->count, t.count);
	counter_set(&dst->sum, add_saturated(counter_get(&dst->sum),
					  tally_fit_sum(&t, counter_get(&src->sum))));
	widen(dst, min, max);
}

static uint64_t sub_floor(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void hist_diff(struct hist *dst, const struct hist *later, const struct hist *earlier)
{
	struct hist_range r = hist_range_of(later);
	struct tally t = { 0 };
	uint64_t later_min = counter_get(&later->min);
	uint64_t later_max = counter_get(&later->max);
	uint64_t low;

	hist_reset(dst);
	for (size_t i = r.first; i <= r.last; i++) {
		uint64_t n = sub_floor(counter_get(&later->cell[i]), counter_get(&earlier->cell[i]));

		if (!n)
			continue;
		counter_set(&dst->cell[i], n);
		tally_cell(&t, i, n);
	}
	if (!t.count)
		return;
	low = hist_cell_low(t.first);
	counter_set(&dst->count, t.count);
	counter_set(&dst->sum, tally_fit_sum(&t, sub_floor(counter_get(&later->sum),
							 counter_get(&earlier->sum))));
	widen(dst, low > later_min ? low : later_min, hist_cell_bound(t.last, later_max));
}

uint64_t hist_count(const struct hist *h)
{
	return counter_get(&h->count);
}

uint64_t hist_min(const struct hist *h)
{
	uint64_t min = counter_get(&h->min);

	return min > counter_get(&h->max) ? 0 : min;
}

uint64_t hist_max(const struct hist *h)
{
	return counter_get(&h->max);
}

double hist_mean(const struct hist *h)
{
	uint64_t count = counter_get(&h->count);

	return count ? (double)counter_get(&h->sum) / (double)count : 0.0;
}

uint64_t hist_percentile(const struct hist *h, double percentile)
{
	struct hist_range r = hist_range_of(h);
	uint64_t max = counter_get(&h->max);
	uint64_t seen = 0;
	double rank;

	if (percentile <= 0.0)
		return hist_min(h);
	/* The rank of the sample. The percentile is first reduced by one step, in case rounding puts the product just
	 * above a whole number; HdrHistogram's getValueAtPercentile does the same. */
	rank = ceil(nextafter(percentile, 0.0) * (double)counter_get(&h->count) / 100.0);
	for (size_t i = r.first; i <= r.last; i++) {
		seen += counter_get(&h->cell[i]);
		if ((double)seen >= rank)
			return hist_cell_bound(i, max);
	}
	return max;
}

uint64_t hist_count_between(const struct hist *h, uint64_t low, uint64_t high)
{
	struct hist_range r = hist_range_of(h);
	size_t from = hist_index(low), to = hist_index(high);
	uint64_t n = 0;

	for (size_t i = from > r.first ? from : r.first; i <= r.last && i < to; i++)
		n += counter_get(&h->cell[i]);
	return n;
}

bool hist_supports(const struct hist *h, double percentile)
{
	return pow(percentile / 100.0, (double)counter_get(&h->count)) <= 0.05;
}
