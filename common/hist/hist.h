/* SPDX-License-Identifier: BSD-2-Clause */
/* Log-linear latency histogram with the layout of HdrHistogram: 3 significant digits, values in ns.
 *
 * One thread, the writer, records. Any other may read at the same time: each cell is stored atomically, so a snapshot
 * by hist_add is a valid histogram that lacks at most the records in progress. No I/O, no clock, and no allocation
 * after hist_new (224 KiB).
 */
#ifndef RAMPART_COMMON_HIST_H
#define RAMPART_COMMON_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hist;

/* The highest value kept to 3 digits, about 137 s. Larger values count in the last cell; the maximum is exact. */
#define HIST_MAX_TRACKABLE_NS ((UINT64_C(1) << 37) - 1)

/* Memory of a histogram, all of it resident from the start. */
#define HIST_BYTES ((28u * 1024 + 4) * 8)

/* Creates an empty histogram, which the caller owns. Returns 0 or -ENOMEM. */
int hist_new(struct hist **out) __attribute__((warn_unused_result));
/* `h` may be NULL. */
void hist_free(struct hist *h);

/* The same for each of n histograms. hists_new sets them to NULL first: hists_free may follow even if it fails. */
int hists_new(struct hist **v, size_t n) __attribute__((warn_unused_result));
void hists_free(struct hist *const *v, size_t n);
void hists_add(struct hist *const *dst, struct hist *const *src, size_t n);	/* as hist_add */

/* Counts a value, or the same value n times; n may be 0. Writer only. */
void hist_record(struct hist *h, uint64_t value_ns);
void hist_record_n(struct hist *h, uint64_t value_ns, uint64_t n);
/* Empties the histogram. Writer only; a snapshot taken at the same time may contain some of the samples. */
void hist_reset(struct hist *h);

/* dst += src. The caller is dst's writer; src's writer may record at the same time. dst's count grows by the sum of the
 * cells that were read, so its count and its cells always agree. */
void hist_add(struct hist *dst, const struct hist *src);

/* dst = later - earlier, two snapshots of one histogram. The caller is dst's writer. Minimum and maximum of the
 * difference are bounds of cells, because the true ones are unknown. */
void hist_diff(struct hist *dst, const struct hist *later, const struct hist *earlier);

/* Figures of a histogram, each 0 if it is empty. Any thread; while the writer records, two figures may differ by the
 * records in between. */
uint64_t hist_count(const struct hist *h);
uint64_t hist_min(const struct hist *h);	/* ns, exact */
uint64_t hist_max(const struct hist *h);	/* ns, exact */
double hist_mean(const struct hist *h);		/* ns, from the exact sum */

/* The value in ns that `percentile` per cent (0 to 100) of the samples do not exceed: as in HdrHistogram the highest
 * value of its cell, but never above the true maximum. */
uint64_t hist_percentile(const struct hist *h, double percentile);

/* Number of samples in the cells from that of `low` to the one before that of `high`: the samples from low to below
 * high, as exact as cells are (to a thousandth). */
uint64_t hist_count_between(const struct hist *h, uint64_t low, uint64_t high);

/* True if there are enough samples to state the percentile with 95 % confidence (one-sided): 1 - (p/100)^n >= 0.95,
 * which needs 299 samples for p99 and 2,995 for p99.9. */
bool hist_supports(const struct hist *h, double percentile);

#endif
