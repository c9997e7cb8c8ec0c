/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates and their intervals. See stats.h. */
#include "loadgen/analysis/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/hist/hist.h"

#define CONFIDENCE   0.95
#define NORMAL_95    1.9599639845400545	/* quantile of the normal distribution, two-sided */
/* With this many degrees of freedom, t95_expanded is exact to 1e-7. */
#define FREEDOM_MANY 30.0
#define RESIDUALS_ALIKE_MOST 0.5

static struct estimate estimate_none(double value)
{
	return (struct estimate){ .value = isfinite(value) ? value : NAN, .low = NAN, .high = NAN };
}

static struct estimate estimate_within(double value, double half_width)
{
	if (!isfinite(value - half_width) || !isfinite(value + half_width))
		return estimate_none(value);
	return (struct estimate){ .value = value, .low = value - half_width, .high = value + half_width };
}

/* Expansion around the normal quantile (Cornish and Fisher; Abramowitz and Stegun, 26.7.5). */
static double t95_expanded(double freedom)
{
	const double z = NORMAL_95, z2 = z * z, v = freedom;
	double g1 = z * (z2 + 1) / 4;
	double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
	double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;

	return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

/* The integral of cos^power from 0 to `angle` by Simpson's rule. The angle is below 90 degrees, where it is smooth. */
static double integral_cos_power(double power, double angle)
{
	const int parts = 400;
	double sum = 1 + pow(cos(angle), power);

	for (int i = 1; i < parts; i++)
		sum += (i % 2 ? 4 : 2) * pow(cos(angle * i / parts), power);
	return sum * angle / (3 * parts);
}

/* With t = sqrt(freedom) tan(a) the density becomes cos(a)^(freedom - 1). Its integral from 0 to 90 degrees is
 * sqrt(pi)/2 gamma(freedom/2) / gamma((freedom+1)/2); the integral up to the quantile is CONFIDENCE times that. Solved
 * by Newton's method, which starts so near (at the expansion's value) that each step doubles the correct digits. */
static double t95_integrated(double freedom)
{
	double whole = sqrt(M_PI) / 2 * tgamma(freedom / 2) / tgamma((freedom + 1) / 2);
	double angle = atan(t95_expanded(freedom) / sqrt(freedom));

	for (int i = 0; i < 10; i++) {
		double off = integral_cos_power(freedom - 1, angle) - CONFIDENCE * whole;
		double step = off / pow(cos(angle), freedom - 1);

		angle -= step;
		if (fabs(step) < 1e-8)
			break;
	}
	return sqrt(freedom) * tan(angle);
}

double stats_t95(double freedom)
{
	if (!(freedom >= 1))
		return NAN;
	return freedom >= FREEDOM_MANY ? t95_expanded(freedom) : t95_integrated(freedom);
}

/* Values that are not finite come last. */
static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	if (!isfinite(x) || !isfinite(y))
		return !isfinite(x) - !isfinite(y);
	return (x > y) - (x < y);
}

size_t stats_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), compare);
	while (n && !isfinite(v[n - 1]))
		n--;
	return n;
}

double stats_median(double *v, size_t n)
{
	n = stats_sort(v, n);
	if (!n)
		return NAN;
	return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
}

struct estimate stats_range(double *v, size_t n)
{
	struct estimate e = estimate_none(stats_median(v, n));

	n = stats_sort(v, n);
	if (n > 1) {
		e.low = v[0];
		e.high = v[n - 1];
	}
	return e;
}

struct moments {
	double n, mean;
	double squares;		/* sum of squared deviations */
	double products;	/* sum of the products of neighbours' deviations */
};

static struct moments moments_of(const double *v, size_t n)
{
	struct moments m = { 0 };

	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i])) {
			m.n++;
			m.mean += (v[i] - m.mean) / m.n;
		}
	for (size_t i = 0; i < n; i++) {
		double d = v[i] - m.mean;

		if (!isfinite(d))
			continue;
		m.squares += d * d;
		if (i && isfinite(v[i - 1]))
			m.products += d * (v[i - 1] - m.mean);
	}
	return m;
}

struct estimate stats_mean(const double *v, size_t n)
{
	struct moments m = moments_of(v, n);

	if (m.n < 3)
		return estimate_none(m.n > 0 ? m.mean : NAN);
	return estimate_within(m.mean, stats_t95(m.n - 1) * sqrt(m.squares / (m.n - 1) / m.n));
}

struct estimate stats_series_mean(const double *v, size_t n)
{
	struct moments m = moments_of(v, n);
	double r, effective;

	if (m.n < 5)
		return estimate_none(m.n > 0 ? m.mean : NAN);
	r = m.squares > 0 ? m.products / m.squares : 0;
	/* A short series underestimates r by (1 + 4 r) / n (F. Marriott, J. Pope, Biometrika 41, 1954). */
	if (r > 0)
		r = fmin(r + (1 + 4 * r) / m.n, 1);
	effective = r > 0 ? m.n * (1 - r) / (1 + r) : m.n;
	/* The mean is the series' own, so the squares sum to only n (effective - 1) / effective variances. */
	return estimate_within(m.mean, stats_t95(effective - 1) * sqrt(m.squares / m.n / (effective - 1)));
}

/* The value at a rank from 1 to `count`. Half a rank is subtracted, so that rounding does not reach the next rank. */
static double value_at(const struct hist *h, double rank, double count)
{
	return (double)hist_percentile(h, 100 * (rank - 0.5) / count);
}

struct estimate stats_percentile(const struct hist *h, double percentile)
{
	double count = (double)hist_count(h), p = percentile / 100;
	double spread, low, high;
	struct estimate e;

	if (!(count > 0) || !(p > 0 && p < 1))
		return estimate_none(NAN);
	e = estimate_none((double)hist_percentile(h, percentile));
	spread = NORMAL_95 * sqrt(count * p * (1 - p));
	/* W. Conover, Practical Nonparametric Statistics, 3rd ed., 3.2. */
	low = ceil(count * p - spread);
	high = ceil(count * p + spread);
	if (low < 1 || high > count)
		return e;
	e.low = value_at(h, low, count);
	e.high = value_at(h, high, count);
	return e;
}

static bool is_point(double x, double y)
{
	return isfinite(x) && isfinite(y);
}

/* Number of different x; 3 means 3 or more. */
static int distinct_x(const double *x, const double *y, size_t n)
{
	double seen[2] = { NAN, NAN };
	int found = 0;

	for (size_t i = 0; i < n && found < 3; i++) {
		if (!is_point(x[i], y[i]) || x[i] == seen[0] || x[i] == seen[1])
			continue;
		if (found < 2)
			seen[found] = x[i];
		found++;
	}
	return found;
}

struct line stats_line(const double *x, const double *y, size_t n)
{
	struct line line = { .base = estimate_none(NAN), .slope = estimate_none(NAN) };
	double mx = 0, my = 0, xx = 0, xy = 0, residuals = 0, slope, variance, t;
	int distinct = distinct_x(x, y, n);

	for (size_t i = 0; i < n; i++)
		if (is_point(x[i], y[i])) {
			line.n++;
			mx += (x[i] - mx) / (double)line.n;
			my += (y[i] - my) / (double)line.n;
		}
	for (size_t i = 0; i < n; i++)
		if (is_point(x[i], y[i])) {
			xx += (x[i] - mx) * (x[i] - mx);
			xy += (x[i] - mx) * (y[i] - my);
		}
	slope = xy / xx;
	if (distinct < 2 || !isfinite(slope) || !isfinite(my - slope * mx))
		return line;
	line.slope = estimate_none(slope);
	line.base = estimate_none(my - slope * mx);
	if (distinct < 3)
		return line;
	for (size_t i = 0; i < n; i++)
		if (is_point(x[i], y[i])) {
			double off = y[i] - my - slope * (x[i] - mx);

			residuals += off * off;
		}
	variance = residuals / (double)(line.n - 2);
	t = stats_t95((double)line.n - 2);
	line.slope = estimate_within(slope, t * sqrt(variance / xx));
	line.base = estimate_within(line.base.value, t * sqrt(variance * (1 / (double)line.n + mx * mx / xx)));
	return line;
}

static struct estimate widened(struct estimate e, double factor)
{
	return isfinite(e.low) ? estimate_within(e.value, (e.high - e.value) * factor) : e;
}

struct line stats_series_line(const double *x, const double *y, size_t n)
{
	struct line line = stats_line(x, y, n);
	double before = NAN, squares = 0, products = 0, r;

	for (size_t i = 0; i < n; i++) {
		double off = y[i] - line.base.value - line.slope.value * x[i];

		if (!is_point(x[i], off))
			continue;
		squares += off * off;
		products += isfinite(before) ? off * before : 0;
		before = off;
	}
	r = products > 0 ? fmin(products / squares, RESIDUALS_ALIKE_MOST) : 0;
	line.slope = widened(line.slope, sqrt((1 + r) / (1 - r)));
	line.base = widened(line.base, sqrt((1 + r) / (1 - r)));
	return line;
}
