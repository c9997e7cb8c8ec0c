/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/usl.c: curves whose parameters are known. */
#include "tests/unit/helpers/noise.h"

#include "loadgen/analysis/usl.h"

struct truth {
	double lambda, sigma, kappa;
};

static const double numbers[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000 };
#define ALL N_ELEMENTS(numbers)

static double throughput(struct truth t, double n)
{
	return t.lambda * n / (1 + t.sigma * (n - 1) + t.kappa * n * (n - 1));
}

/* Fills in exact points at numbers[first] to numbers[first + n - 1]. */
static void fill(struct usl_point *p, struct truth t, size_t first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (struct usl_point){ numbers[first + i], throughput(t, numbers[first + i]), NAN };
}

static void add_noise(struct usl_point *p, size_t n, double share, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		p[i].throughput *= 1 + share * noise_normal(seed);
}

static struct usl_fit fit_of(const struct usl_point *p, size_t n)
{
	struct usl_fit f;

	usl_fit(p, n, &f);
	return f;
}

static struct usl_fit fit_exact(struct truth t, size_t first, size_t n)
{
	struct usl_point p[ALL];

	fill(p, t, first, n);
	return fit_of(p, n);
}

static void assert_status(const struct usl_fit *f, enum usl_status status)
{
	assert_string_equal(usl_status_names[f->status], usl_status_names[status]);
}

static void assert_relative(double v, double truth)
{
	assert_true(fabs(v - truth) <= 1e-6 * fabs(truth));
}

static void assert_truth(const struct usl_fit *f, struct truth t)
{
	assert_status(f, USL_FITTED);
	assert_relative(f->lambda.value, t.lambda);
	assert_relative(f->sigma.value, t.sigma);
	assert_relative(f->kappa.value, t.kappa);
}

static void assert_nothing(struct estimate e)
{
	assert_true(isnan(e.value) && isnan(e.low) && isnan(e.high));
}

static void assert_no_peak(const struct usl_fit *f)
{
	assert_false(f->passes_peak);
	assert_nothing(f->peak_clients);
	assert_nothing(f->peak_throughput);
}

static void assert_no_fit(const struct usl_fit *f)
{
	assert_nothing(f->lambda);
	assert_nothing(f->sigma);
	assert_nothing(f->kappa);
	assert_true(isnan(f->r2));
	assert_nothing(usl_at(f, 10));
	assert_no_peak(f);
}

static bool holds(struct estimate e, double v)
{
	return e.low <= v && v <= e.high;
}

TEST(fit__exact_data__its_parameters)
{
	const struct truth truths[] = {
		{ 1000, 0.02, 1e-5 }, { 1000, 0.02, 1e-9 }, { 50, 0.5, 1e-3 }, { 1e6, 1e-4, 1e-10 },
		{ 1e-3, 0.3, 1e-7 }, { 7, 0.9, 0.9 }, { 1e12, 0.01, 1e-6 },
	};

	for (size_t i = 0; i < N_ELEMENTS(truths); i++) {
		struct usl_fit f = fit_exact(truths[i], 0, ALL);

		assert_truth(&f, truths[i]);
		assert_near(f.r2, 1, 1e-9);
		assert_int_equal(f.points, ALL);
		assert_true(f.sigma.high - f.sigma.low < 1e-6 * f.sigma.value);
	}
}

TEST(fit__four_numbers_of_any_size__its_parameters)
{
	const struct truth t = { 1000, 0.02, 1e-7 };

	for (size_t first = 0; first + 4 <= ALL; first++) {
		struct usl_fit f = fit_exact(t, first, 4);

		assert_truth(&f, t);
	}
}

/* Between 50,000 and 51,000 clients the three columns of the fit are almost multiples of one another. */
TEST(fit__numbers_close_together__no_nonsense)
{
	const struct truth t = { 1000, 0.02, 1e-7 };
	struct usl_point p[11];
	struct usl_fit f;

	for (size_t i = 0; i < N_ELEMENTS(p); i++) {
		double n = 50000 + 100 * (double)i;

		p[i] = (struct usl_point){ n, throughput(t, n), NAN };
	}
	f = fit_of(p, N_ELEMENTS(p));
	assert_status(&f, USL_FITTED);
	assert_near(usl_at(&f, 50500).value / throughput(t, 50500), 1, 1e-6);
	assert_no_peak(&f);
}

TEST(fit__peak_within_the_data__quoted)
{
	const struct truth t = { 1000, 0.02, 1e-5 };
	double peak = sqrt(0.98 / 1e-5);
	struct usl_fit f = fit_exact(t, 0, ALL);

	assert_true(f.passes_peak);
	assert_relative(f.peak_clients.value, peak);
	assert_relative(f.peak_throughput.value, throughput(t, peak));
}

TEST(fit__data_ends_before_or_begins_after_the_peak__none_quoted)
{
	const struct truth t = { 1000, 0.02, 1e-5 };	/* the peak is at 313 clients */
	struct usl_fit before = fit_exact(t, 0, 8), after = fit_exact(t, 8, 8);
	struct usl_fit falling = fit_exact((struct truth){ 7, 1, 1 }, 0, 8);

	assert_truth(&before, t);
	assert_no_peak(&before);
	assert_truth(&after, t);
	assert_no_peak(&after);
	assert_truth(&falling, (struct truth){ 7, 1, 1 });
	assert_no_peak(&falling);
}

TEST(fit__linear__neither_contention_nor_coherence)
{
	struct usl_fit f = fit_exact((struct truth){ 7, 0, 0 }, 0, ALL);

	assert_truth(&f, (struct truth){ 7, 0, 0 });
	assert_no_peak(&f);
}

TEST(fit__one_of_both_only__the_other_is_zero)
{
	struct usl_fit contention = fit_exact((struct truth){ 300, 0.1, 0 }, 0, ALL);
	struct usl_fit coherence = fit_exact((struct truth){ 3, 0, 1e-4 }, 0, ALL);

	assert_truth(&contention, (struct truth){ 300, 0.1, 0 });
	assert_no_peak(&contention);
	assert_truth(&coherence, (struct truth){ 3, 0, 1e-4 });
	assert_relative(coherence.peak_clients.value, 100);
}

/* All contention: more clients add nothing. A constant throughput is not a bad fit. */
TEST(fit__constant__all_contention)
{
	struct usl_fit f = fit_exact((struct truth){ 100, 1, 0 }, 0, 8);

	assert_truth(&f, (struct truth){ 100, 1, 0 });
	assert_true(isnan(f.r2));
	assert_no_peak(&f);
}

/* Faster than linear growth: no parameter may be below 0, and a curve like N^1.02 is not yet another shape. */
TEST(fit__more_than_linear__kept_at_the_constraint)
{
	struct usl_point p[8];
	struct usl_fit f;

	for (size_t i = 0; i < N_ELEMENTS(p); i++)
		p[i] = (struct usl_point){ numbers[i], 10 * pow(numbers[i], 1.02), NAN };
	f = fit_of(p, N_ELEMENTS(p));
	assert_status(&f, USL_FITTED);
	assert_true(f.sigma.value == 0 && f.sigma.low == 0 && f.sigma.high > 0);
	assert_true(f.kappa.value == 0 && f.kappa.low == 0 && f.kappa.high > 0);
	assert_no_peak(&f);
}

#define TRIALS 1000

struct coverage {
	int fitted, lambda, sigma, kappa, curve, peaks, peak;
};

/* In how many of TRIALS the intervals contain the truth, at n of numbers[] from `first` on, each `times` times. */
static struct coverage cover(struct truth t, double noise, size_t first, size_t n, size_t times)
{
	double peak = sqrt((1 - t.sigma) / t.kappa);
	struct usl_point p[3 * ALL];
	struct coverage c = { 0 };
	uint64_t seed = 20240229;

	for (int trial = 0; trial < TRIALS; trial++) {
		struct usl_fit f;

		for (size_t k = 0; k < times; k++)
			fill(p + k * n, t, first, n);
		add_noise(p, n * times, noise, &seed);
		f = fit_of(p, n * times);
		c.fitted += f.status == USL_FITTED;
		c.lambda += holds(f.lambda, t.lambda);
		c.sigma += holds(f.sigma, t.sigma);
		c.kappa += holds(f.kappa, t.kappa);
		c.curve += holds(usl_at(&f, 300), throughput(t, 300));
		c.peaks += f.passes_peak;
		c.peak += holds(f.peak_clients, peak);
	}
	return c;
}

static void assert_covers(struct coverage c)
{
	assert_int_equal(c.fitted, TRIALS);
	assert_in_range(c.lambda, 930, 970);
	assert_in_range(c.sigma, 930, 970);
	assert_in_range(c.kappa, 930, 970);
	assert_in_range(c.curve, 930, 970);
}

TEST(fit__noise__holds_the_truth_in_95_of_100)
{
	const struct truth t = { 1000, 0.02, 1e-5 };
	struct coverage c;

	c = cover(t, 0.02, 0, 12, 1);
	assert_covers(c);
	assert_int_equal(c.peaks, TRIALS);
	assert_in_range(c.peak, 930, 970);
	assert_covers(cover(t, 0.05, 0, 12, 1));
	assert_covers(cover(t, 0.02, 3, 8, 3));		/* each number of clients three times */
	assert_covers(cover(t, 0.02, 5, 5, 1));		/* two degrees of freedom */
}

/* At a constraint the interval is cut off there, and contains the truth more often. */
TEST(fit__noise_at_the_constraints__no_peak_in_97_of_100)
{
	struct coverage linear = cover((struct truth){ 10, 0, 0 }, 0.02, 0, 10, 1);
	struct coverage contention = cover((struct truth){ 1000, 0.05, 0 }, 0.02, 0, 10, 1);

	assert_int_equal(linear.fitted, TRIALS);
	assert_in_range(linear.peaks, 0, 30);
	assert_in_range(linear.sigma, 950, TRIALS);
	assert_in_range(linear.kappa, 950, TRIALS);
	assert_int_equal(contention.fitted, TRIALS);
	assert_in_range(contention.peaks, 0, 30);
	assert_in_range(contention.sigma, 940, TRIALS);
	assert_in_range(contention.kappa, 950, TRIALS);
}

/* From 5 to 100 clients, with the peak at 313, the data do not show that there is a peak. */
TEST(fit__noise_before_the_peak__none_quoted)
{
	struct coverage c = cover((struct truth){ 1000, 0.02, 1e-5 }, 0.02, 2, 5, 1);

	assert_int_equal(c.peaks, 0);
}

TEST(fit__one_point_with_a_great_error__hardly_counts)
{
	const struct truth t = { 1000, 0.02, 1e-5 };
	struct usl_point p[ALL];
	struct usl_fit f;

	fill(p, t, 0, ALL);
	p[6].throughput *= 2;
	p[6].error = 1e6 * p[6].throughput;
	f = fit_of(p, ALL);
	assert_near(f.lambda.value / t.lambda, 1, 1e-6);
	assert_near(f.kappa.value / t.kappa, 1, 1e-6);
	/* A very small error is taken for 2 %, like an unknown one. */
	p[6].error = 1e-9;
	f = fit_of(p, ALL);
	p[6].error = NAN;
	assert_near(f.lambda.value, fit_of(p, ALL).lambda.value, 1e-9);
	assert_true(fabs(f.lambda.value / t.lambda - 1) > 1e-3);
}

TEST(fit__few_different_numbers__few_points)
{
	struct usl_point p[30];
	struct usl_fit f;

	f = fit_of(NULL, 0);
	assert_status(&f, USL_FEW_POINTS);
	assert_no_fit(&f);
	for (size_t k = 0; k < 10; k++)
		fill(p + 3 * k, (struct truth){ 1000, 0.02, 1e-5 }, 2, 3);
	f = fit_of(p, 30);
	assert_status(&f, USL_FEW_POINTS);
	assert_int_equal(f.points, 30);
	assert_no_fit(&f);
}

TEST(fit__another_shape__bad_fit)
{
	struct usl_point saw[10], steep[10], square[10];
	struct usl_fit f;

	for (size_t i = 0; i < 10; i++) {
		double n = numbers[i];

		saw[i] = (struct usl_point){ n, i % 2 ? 1000 : 10, NAN };
		steep[i] = (struct usl_point){ n, 1e6 / (n * n), NAN };
		square[i] = (struct usl_point){ n, n * n, NAN };
	}
	f = fit_of(saw, 10);
	assert_status(&f, USL_BAD_FIT);
	assert_no_peak(&f);
	f = fit_of(steep, 10);
	assert_status(&f, USL_BAD_FIT);
	assert_no_peak(&f);
	f = fit_of(square, 10);
	assert_status(&f, USL_BAD_FIT);
	assert_true(f.r2 < 0.8);
	assert_no_peak(&f);
}

/* A flat curve whose scatter is within its errors is a good fit, although it explains none of its variance. */
TEST(fit__flat_with_scatter__fitted_where_the_errors_are_as_large)
{
	struct usl_point p[10];
	uint64_t seed = 3;
	struct usl_fit f;

	fill(p, (struct truth){ 100, 1, 0 }, 3, 10);
	add_noise(p, 10, 0.2, &seed);
	f = fit_of(p, 10);
	assert_status(&f, USL_BAD_FIT);
	for (size_t i = 0; i < 10; i++)
		p[i].error = 20;
	f = fit_of(p, 10);
	assert_status(&f, USL_FITTED);
	assert_true(f.r2 < 0.8);
}

TEST(fit__garbage_among_the_points__left_out)
{
	const double odd[] = { NAN, 0, -1, INFINITY, -INFINITY, 1e300, 0.5e-300 };
	const struct truth t = { 1000, 0.02, 1e-5 };
	struct usl_point p[ALL + 3 * N_ELEMENTS(odd)];
	struct usl_fit f;
	size_t n = ALL;

	fill(p, t, 0, ALL);
	for (size_t i = 0; i < N_ELEMENTS(odd); i++) {
		p[n++] = (struct usl_point){ odd[i], 5, NAN };
		p[n++] = (struct usl_point){ 5, odd[i], NAN };
		p[n++] = (struct usl_point){ 5, throughput(t, 5), odd[i] };	/* an invalid error counts as unknown */
	}
	f = fit_of(p, n);
	assert_truth(&f, t);
	assert_int_equal(f.points, ALL + N_ELEMENTS(odd));
}

static void assert_sane(struct estimate e, double most)
{
	if (isnan(e.value))
		assert_nothing(e);
	else
		assert_true(e.value >= 0 && e.value <= most);
	if (!isnan(e.low))
		assert_true(e.low >= 0 && e.low <= e.value && e.value <= e.high && e.high <= most);
}

/* Any numbers of any size must not lead to impossible figures. */
TEST(fit__random_garbage__never_nonsense)
{
	uint64_t seed = 424242;

	for (int trial = 0; trial < 3000; trial++) {
		struct usl_point p[12];
		double spread = trial % 3 ? 3 : 60;
		struct usl_fit f;

		for (size_t i = 0; i < N_ELEMENTS(p); i++)
			p[i] = (struct usl_point){ exp(fabs(5 * noise_normal(&seed))),
						   exp(spread * noise_normal(&seed) / 3),
						   exp(spread * noise_normal(&seed)) };
		f = fit_of(p, N_ELEMENTS(p));
		assert_sane(f.lambda, INFINITY);
		assert_sane(f.sigma, 1);
		assert_sane(f.kappa, INFINITY);
		assert_sane(f.peak_clients, INFINITY);
		assert_sane(f.peak_throughput, INFINITY);
		assert_sane(usl_at(&f, 100), INFINITY);
		assert_true(f.passes_peak == !isnan(f.peak_clients.value));
	}
}

TEST(at__numbers_of_clients__the_curve)
{
	const struct truth t = { 1000, 0.02, 1e-5 };
	const double outside[] = { 0.5, 0, -10, NAN, INFINITY, 1e300 };
	struct usl_fit f = fit_exact(t, 0, ALL);

	assert_relative(usl_at(&f, 1).value, 1000);
	assert_relative(usl_at(&f, 777).value, throughput(t, 777));
	assert_relative(usl_at(&f, 1e6).value, throughput(t, 1e6));
	for (size_t i = 0; i < N_ELEMENTS(outside); i++)
		assert_nothing(usl_at(&f, outside[i]));
}

TEST(at__beyond_the_data__wider)
{
	struct usl_point p[8];
	struct estimate within, beyond;
	uint64_t seed = 12;
	struct usl_fit f;

	fill(p, (struct truth){ 1000, 0.02, 1e-5 }, 0, 8);
	add_noise(p, 8, 0.02, &seed);
	f = fit_of(p, 8);
	within = usl_at(&f, 100);
	beyond = usl_at(&f, 2000);
	assert_true((beyond.high - beyond.low) / beyond.value > 3 * (within.high - within.low) / within.value);
}
