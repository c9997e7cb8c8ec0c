/* Log-linear latency histogram, laid out as HdrHistogram does (3 significant digits, values in ns).
 *
 * One writer thread records; any thread may take a snapshot with hist_add at the same time: every
 * cell is written with a relaxed atomic store by the one writer, so a snapshot is a valid histogram
 * that may lag by the records in flight. No I/O, no clock, no allocation after hist_new.
 */
#ifndef RAMPART_COMMON_HIST_H
#define RAMPART_COMMON_HIST_H

#include <stdbool.h>
#include <stdint.h>

struct hist;

/* Highest value kept exact to 3 digits: about 137 s. Larger values count in the last bucket, and
 * the true maximum is still kept. */
#define HIST_MAX_TRACKABLE_NS ((UINT64_C(1) << 37) - 1)

/* Returns 0 or -ENOMEM; *out is owned by the caller (hist_free, NULL-safe). */
int hist_new(struct hist **out) __attribute__((warn_unused_result));
void hist_free(struct hist *h);

/* Writer thread only. */
void hist_record(struct hist *h, uint64_t value_ns);
void hist_record_n(struct hist *h, uint64_t value_ns, uint64_t n);	/* the same n times; n may be 0 */
void hist_reset(struct hist *h);

/* dst += src. The caller is dst's writer; src may be recorded into at the same time. The count of
 * dst grows by exactly the sum of the bucket counts read, so count and buckets always agree. */
void hist_add(struct hist *dst, const struct hist *src);

/* dst = later - earlier, two snapshots of the same growing histogram. Minimum and maximum of the
 * difference are bucket bounds (the true ones are not known). */
void hist_diff(struct hist *dst, const struct hist *later, const struct hist *earlier);

uint64_t hist_count(const struct hist *h);
uint64_t hist_min(const struct hist *h);	/* true minimum; 0 when empty */
uint64_t hist_max(const struct hist *h);	/* true maximum; 0 when empty */
double hist_mean(const struct hist *h);		/* from a true running sum; 0 when empty */

/* The value at or below which `percentile` (0 to 100) per cent of the samples lie: the highest value
 * equivalent to the bucket, as HdrHistogram reports it, but never above the true maximum. 0 when empty. */
uint64_t hist_percentile(const struct hist *h, double percentile);

/* How many samples are in the cells from that of `low` up to, but without, that of `high`: those from low to below
 * high, as far as cells tell them apart (a thousandth). */
uint64_t hist_count_between(const struct hist *h, uint64_t low, uint64_t high);

/* True if there are enough samples for the percentile to mean something with 95 % one-sided
 * confidence: 1 - (p/100)^n >= 0.95, which is 299 samples for p99 and 2,995 for p99.9. */
bool hist_supports(const struct hist *h, double percentile);

#endif
