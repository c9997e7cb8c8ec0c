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

/* Median; low and high are the least and greatest value (no confidence interval), NAN with fewer than 2 values. Sorts
 * `v`. */
struct estimate stats_range(double *v, size_t n);

/* Mean of values drawn independently; NAN interval with fewer than 3. */
struct estimate stats_mean(const double *v, size_t n);

/* Mean over successive, equally long intervals of one run. Neighbours resemble each other, so a positive lag-1
 * autocorrelation r widens the confidence interval (n (1-r)/(1+r) effective values). NAN interval with fewer than 5
 * values, or fewer than 2 effective ones. */
struct estimate stats_series_mean(const double *v, size_t n);

/* A percentile (0 to 100, exclusive) of the samples of `h`, with the interval of its order statistics (normal
 * approximation of the binomial ranks), all rounded like hist_percentile's values. NAN interval if a rank lies outside
 * the samples; NAN value without samples. */
struct estimate stats_percentile(const struct hist *h, double percentile);

/* Unweighted least-squares line y = base + slope x through n points. NAN if the points do not determine it; NAN
 * intervals with fewer than 3 distinct x. */
struct line {
	struct estimate base, slope;
	size_t n;
};
struct line stats_line(const double *x, const double *y, size_t n);
/* The same through successive values of one run, in rising order of x: a positive lag-1 autocorrelation r of the
 * residuals widens the intervals by sqrt((1+r)/(1-r)). An r above 0.5 counts as 0.5, because a bend or a jump, which is
 * no noise, makes residuals alike, too. */
struct line stats_series_line(const double *x, const double *y, size_t n);

#endif
