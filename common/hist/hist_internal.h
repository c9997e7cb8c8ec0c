/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of struct hist; for hist.c, hist_io.c, hist_read.c and their tests only.
 *
 * HdrHistogram's layout for a lowest discernible value of 1 and 3 significant digits: bucket 0
 * holds 2048 cells of width 1, every later bucket b the upper 1024 cells of width 2^b, so a cell's
 * index is b * 1024 + (value >> b) (HdrHistogram_c, counts_index).
 */
#ifndef RAMPART_COMMON_HIST_INTERNAL_H
#define RAMPART_COMMON_HIST_INTERNAL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/counter.h"
#include "common/hist/hist.h"

#define HIST_SIGNIFICANT_DIGITS 3
#define HIST_LOWEST_DISCERNIBLE 1
#define HIST_SUB_BUCKET_COUNT	2048
#define HIST_SUB_BUCKET_HALF	1024
#define HIST_SUB_BUCKET_BITS	11	/* log2 of HIST_SUB_BUCKET_COUNT */
#define HIST_BUCKET_COUNT	27	/* 2048 << 26 is the first value beyond the range */
#define HIST_CELLS		((HIST_BUCKET_COUNT + 1) * HIST_SUB_BUCKET_HALF)

static_assert(1 << HIST_SUB_BUCKET_BITS == HIST_SUB_BUCKET_COUNT, "sub-bucket bits");
static_assert(((uint64_t)HIST_SUB_BUCKET_COUNT << (HIST_BUCKET_COUNT - 1)) - 1 ==
	      HIST_MAX_TRACKABLE_NS, "the buckets end where the range ends");

/* The histogram is empty while min > max. The cells are authoritative; the other figures are updated after them. */
struct hist {
	counter count;
	counter sum;	/* saturates */
	counter min;
	counter max;
	counter cell[HIST_CELLS];
};

static_assert(sizeof(struct hist) == HIST_BYTES, "HIST_BYTES is the size of a histogram");

/* Index of the cell that counts the value; the last cell counts all values beyond the range. */
static inline size_t hist_index(uint64_t value)
{
	uint64_t v = value < HIST_MAX_TRACKABLE_NS ? value : HIST_MAX_TRACKABLE_NS;
	unsigned int bucket = 64 - HIST_SUB_BUCKET_BITS -
			      (unsigned int)__builtin_clzll(v | (HIST_SUB_BUCKET_COUNT - 1));

	return (size_t)bucket * HIST_SUB_BUCKET_HALF + (size_t)(v >> bucket);
}

static inline unsigned int hist_bucket_of(size_t index)
{
	return index < HIST_SUB_BUCKET_COUNT ? 0 : (unsigned int)(index / HIST_SUB_BUCKET_HALF) - 1;
}

/* The lowest and the highest value that the cell counts; the last cell also counts all values beyond its highest. */
static inline uint64_t hist_cell_low(size_t index)
{
	unsigned int bucket = hist_bucket_of(index);

	return (uint64_t)(index - (size_t)bucket * HIST_SUB_BUCKET_HALF) << bucket;
}

static inline uint64_t hist_cell_high(size_t index)
{
	return hist_cell_low(index) + (UINT64_C(1) << hist_bucket_of(index)) - 1;
}

/* The middle of a cell, HdrHistogram's medianEquivalentValue. */
static inline uint64_t hist_cell_middle(size_t index)
{
	return hist_cell_low(index) + ((UINT64_C(1) << hist_bucket_of(index)) >> 1);
}

/* The highest value that a sample in the cell can have, given the histogram's maximum. */
static inline uint64_t hist_cell_bound(size_t index, uint64_t true_max)
{
	uint64_t high = hist_cell_high(index);

	return index == HIST_CELLS - 1 || high > true_max ? true_max : high;
}

/* The first and the last cell that may hold samples; first > last when the histogram is empty. */
struct hist_range {
	size_t first, last;
};

static inline struct hist_range hist_range_of(const struct hist *h)
{
	uint64_t min = counter_get(&h->min);
	uint64_t max = counter_get(&h->max);

	if (min > max)
		return (struct hist_range){ .first = 1, .last = 0 };
	return (struct hist_range){ .first = hist_index(min), .last = hist_index(max) };
}

#endif
