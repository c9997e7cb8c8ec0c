/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of intervals, fits and comparisons. Pure; no allocation. All confidence is 95 %, two-sided. Values
 * that are not finite are left out. */
#ifndef RAMPART_LOADGEN_ANALYSIS_STATS_H
#define RAMPART_LOADGEN_ANALYSIS_STATS_H

#include <stddef.h>
#include <stdint.h>

struct hist;

/* An estimate and its 95 % confidence interval; low and high are NAN when the data does not support one. */
struct estimate {
	double value, low, high;
};

/* Two-sided 95 % quantile of Student's t with `freedom` degrees of freedom (1 and more; not necessarily whole);
 * exact to 1e-6. NAN below 1. */
double stats_t95(double freedom);

/* Sorts `v`, least first; values that are not finite come last. Returns how many are finite. */
size_t stats_sort(double *v, size_t n);

/* Median; NAN without values. Sorts `v`. */
double stats_median(double *v, size_t n);

/* Median with the least and the most value, which is no confidence interval; those are NAN with fewer than 2 values.
 * Sorts `v`. */
struct estimate stats_range(double *v, size_t n);

/* Mean of values drawn independently; NAN interval with fewer than 3. */
struct estimate stats_mean(const double *v, size_t n);

/* Mean over successive, equally long intervals of one run, which resemble their neighbours: the interval is widened by
 * the lag-1 autocorrelation where that is positive (n (1-r)/(1+r) effective values). NAN interval with fewer than 5, or
 * fewer than 2 effective ones. */
struct estimate stats_series_mean(const double *v, size_t n);

/* A percentile (0 to 100, exclusive) of what `h` counted, with the interval of its order statistics (normal
 * approximation of the binomial ranks), all as hist_percentile reports values. NAN interval where a rank lies outside
 * the samples; NAN value when empty. */
struct estimate stats_percentile(const struct hist *h, double percentile);

/* Least-squares line y = base + slope x through n points, weights all 1; NAN where it is not determined, NAN intervals
 * with fewer than 3 distinct x. */
struct line {
	struct estimate base, slope;
	size_t n;
};
struct line stats_line(const double *x, const double *y, size_t n);

#endif
