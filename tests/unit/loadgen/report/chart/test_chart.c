/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/chart: scales alone, then whole charts. */
#include "tests/unit/helpers/unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/report/chart/chart.h"
#include "loadgen/report/chart/chart_scale.h"

#define N 5

static const double ones[N] = { 1, 1, 1, 1, 1 }, rising[N] = { 1, 10, 100, 1000, 10000 };
static const double odd[N] = { NAN, INFINITY, -INFINITY, 0, -1 };
static struct chart chart_of(enum chart_mark mark, const double *x, const double *y, size_t n)
{
	return (struct chart){ .x_label = "Clients", .y_label = "Time (ns)", .n_series = 1,
			       .series = { { .label = "series", .mark = mark, .x = x, .y = y, .n = n } } };
}

/* Returns a chart, which the caller frees; NULL if there is nothing to show. */
static __attribute__((noinline)) char *drawn(const struct chart *c)
{
	char *svg;

	assert_int_equal(chart_draw(c, &svg), 0);
	return svg;
}

static void expect_in(const char *text, const char *expected)
{
	if (!text || !strstr(text, expected))
		fail_msg("no '%s' in: %s", expected, text ? text : "nothing");
}

static void expect_scale(double lo, double hi, bool log, bool from_zero, const char *const *labels)
{
	struct chart_scale s = { .log = log };
	size_t n = 0;

	chart_scale_widen(&s, lo);
	chart_scale_widen(&s, hi);
	chart_scale_round(&s, from_zero, 6);
	for (; labels[n]; n++)
		assert_string_equal(n < s.n_ticks ? s.ticks[n].label : "none", labels[n]);
	assert_int_equal(s.n_ticks, n);
	assert_true(s.lo < s.hi);
	assert_true(s.lo - fabs(lo) * 1e-9 <= lo && s.hi + fabs(hi) * 1e-9 >= hi);
}

TEST(scale__linear__round_steps_with_prefixes)
{
	expect_scale(0, 100, false, true, (const char *const[]){ "0", "20", "40", "60", "80", "100", NULL });
	expect_scale(3, 2900, false, true,
		     (const char *const[]){ "0", "500", "1 k", "1.5 k", "2 k", "2.5 k", "3 k", NULL });
	expect_scale(-1, 1, false, false, (const char *const[]){ "-1", "-0.5", "0", "0.5", "1", NULL });
	expect_scale(0, 5e-5, false, true,
		     (const char *const[]){ "0", "10 \xc2\xb5", "20 \xc2\xb5", "30 \xc2\xb5", "40 \xc2\xb5",
					    "50 \xc2\xb5", NULL });
	expect_scale(0, 0.003, false, true,
		     (const char *const[]){ "0", "0.0005", "0.001", "0.0015", "0.002", "0.0025", "0.003", NULL });
}

TEST(scale__equal_values__something_around_them)
{
	expect_scale(0, 0, false, true, (const char *const[]){ "0", "0.2", "0.4", "0.6", "0.8", "1", NULL });
	expect_scale(100, 100, false, false, (const char *const[]){ "90", "95", "100", "105", "110", NULL });
	expect_scale(100, 100, true, false, (const char *const[]){ "50", "100", "200", "300", NULL });
}

TEST(scale__log__decades_or_their_parts)
{
	expect_scale(1, 10000, true, false, (const char *const[]){ "1", "10", "100", "1 k", "10 k", NULL });
	expect_scale(10, 100, true, false, (const char *const[]){ "10", "20", "50", "100", NULL });
	expect_scale(1, 1e12, true, false, (const char *const[]){ "1", "1 k", "1 M", "1 G", "1 T", NULL });
	expect_scale(10, 300, true, false, (const char *const[]){ "10", "20", "50", "100", "200", NULL });
	expect_scale(1, 2, true, false, (const char *const[]){ "0.5", "1", "2", "3", NULL });
}

TEST(scale__log_with_room__more_parts)
{
	static const char *const labels[] = { "10", "20", "30", "50", "100", "200", "300" };
	struct chart_scale s = { .log = true };

	chart_scale_widen(&s, 10);
	chart_scale_widen(&s, 300);
	chart_scale_round(&s, false, 9);
	assert_int_equal(s.n_ticks, N_ELEMENTS(labels));
	for (size_t i = 0; i < s.n_ticks; i++)
		assert_string_equal(s.ticks[i].label, labels[i]);
}

TEST(scale__extremes__few_ticks)
{
	struct chart_scale s = { .log = false };

	assert_false(chart_drawable(NAN, false));
	assert_false(chart_drawable(INFINITY, false));
	assert_false(chart_drawable(1e300, false));
	assert_false(chart_drawable(0, true));
	assert_true(chart_drawable(0, false));
	chart_scale_widen(&s, -1e20);
	chart_scale_widen(&s, 1e20);
	chart_scale_round(&s, true, 5);
	assert_in_range(s.n_ticks, 3, CHART_TICKS_MAX);
	memset(&s, 0, sizeof(s));
	s.log = true;
	chart_scale_widen(&s, 1e-12);
	chart_scale_widen(&s, 1e20);
	chart_scale_round(&s, true, 5);
	assert_in_range(s.n_ticks, 3, CHART_TICKS_MAX);
}

TEST(scale__percentile__nines)
{
	static const char *const labels[] = { "0 %", "90 %", "99 %", "99.9 %", "99.99 %" };
	struct chart_scale s = { .log = true };

	chart_scale_widen(&s, 20000);
	chart_scale_round_percentile(&s);
	assert_int_equal(s.n_ticks, N_ELEMENTS(labels));
	for (size_t i = 0; i < s.n_ticks; i++)
		assert_string_equal(s.ticks[i].label, labels[i]);
	memset(&s, 0, sizeof(s));
	s.log = true;
	chart_scale_widen(&s, 1e20);
	chart_scale_round_percentile(&s);
	assert_in_range(s.n_ticks, 3, 6);
}

TEST(draw__no_point__nothing)
{
	const struct chart charts[] = {
		chart_of(CHART_LINE, NULL, NULL, 0),
		chart_of(CHART_BAND, odd, ones, 3),
		chart_of(CHART_STACK, ones, odd, 3),
		{ .x_label = "no series" },
		{ .y_log = true, .n_series = 1, .series = { { .x = ones, .y = odd, .n = N } } },
		{ .x_log = true, .n_series = 1, .series = { { .x = odd, .y = ones, .n = N } } },
	};

	for (size_t i = 0; i < N_ELEMENTS(charts); i++)
		assert_null(drawn(&charts[i]));
}

/* Checks that no number in it is NAN or infinite. */
static void expect_numbers(const char *svg)
{
	assert_null(strstr(svg, "nan"));
	assert_null(strstr(svg, "inf"));
}

TEST(draw__every_mark_and_odd_values__an_svg)
{
	const double *const values[] = { ones, rising, odd };

	for (int i = 0; i < (CHART_BARS + 1) * 3 * 3 * 4; i++) {
		const double *x = values[i / 4 % 3], *y = values[i / 12 % 3];
		struct chart c = chart_of((enum chart_mark)(i / 36), x, y, i % 3 ? N : 1);
		char *svg;

		c.series[0].low = i % 2 ? odd : NULL;
		c.series[0].high = i % 5 ? rising : NULL;
		c.series[0].right = i % 7 == 0;
		c.x_log = i & 1;
		c.y_log = i & 2;
		svg = drawn(&c);
		if (x != odd && y != odd && !svg)
			fail_msg("chart %d: none", i);
		if (svg)
			expect_numbers(svg);
		free(svg);
	}
}

TEST(draw__extremes__stay_within_the_chart)
{
	static const double huge[N] = { -1e20, 1e20, DBL_MAX, 1e300, DBL_MIN };
	struct chart c = chart_of(CHART_LINE, huge, huge, N);
	char *svg;

	c.rules[0] = (struct chart_rule){ .at = NAN, .vertical = true, .label = "nan" };
	c.rules[1] = (struct chart_rule){ .at = DBL_MAX, .vertical = true, .label = "far" };
	c.rules[2] = (struct chart_rule){ .at = -INFINITY, .label = "below" };
	c.n_rules = 3;
	svg = drawn(&c);
	expect_in(svg, ">\xe2\x86\x92 far</text>");
	expect_in(svg, ">\xe2\x86\x93 below</text>");
	expect_numbers(svg);
	free(svg);
}

TEST(draw__words__escaped)
{
	static const char hostile[] = "`touch pwned` <b>'\"&\n!touch";
	static const char shown[] = ">`touch pwned` &lt;b&gt;&#39;&quot;&amp; !touch</text>";
	struct chart c = chart_of(CHART_LINE, rising, rising, N);
	char *svg;
	size_t n = 0;

	c.x_label = c.y_label = c.series[0].label = hostile;
	c.rules[0] = (struct chart_rule){ .at = 5, .vertical = true, .bad = true, .label = hostile };
	c.n_rules = 1;
	svg = drawn(&c);
	for (const char *p = svg; (p = strstr(p, shown)); p++)
		n++;
	assert_int_equal(n, 3);
	expect_in(svg, ">`touch pwned` &lt;b&gt;&#39;&quot;&amp; !tou\xe2\x80\xa6</text>");
	expect_in(svg, "class=\"mark bad\"");
	expect_in(svg, "var(--bad)");
	assert_null(strstr(svg, "<b>"));
	free(svg);
	c.categories[0] = c.right_label = "\xff<i>";
	c.n_categories = 1;
	svg = drawn(&c);
	expect_in(svg, ">\xef\xbf\xbd&lt;i&gt;</text>");
	free(svg);
}

/* Reads up to `max` numbers from the path of the first element in this colour; returns how many. *begun: how many lines
 * the path has. */
static size_t numbers_of(const char *svg, const char *colour, double *out, size_t max, size_t *begun)
{
	const char *at = strstr(svg, colour);
	size_t n = 0;

	at = at ? strstr(at, " d=\"") : NULL;
	if (!at)
		fail_msg("no path of %s in %s", colour, svg);
	*begun = 0;
	for (at += 4; *at != '"'; ) {
		char *end;
		double v = strtod(at, &end);

		*begun += *at == 'M';
		if (end == at) {
			at++;
			continue;
		}
		assert_true(n < max);
		out[n++] = v;
		at = end;
	}
	return n;
}

/* Compares coordinates, which are written with one decimal. */
static void expect_near(double a, double b)
{
	if (fabs(a - b) > 0.15)
		fail_msg("%g is not %g", a, b);
}

TEST(draw__log_axis__powers_stand_evenly)
{
	struct chart c = chart_of(CHART_LINE_PLAIN, rising, rising, N);
	double v[2 * N];
	size_t begun;
	char *svg;

	c.x_log = c.y_log = true;
	svg = drawn(&c);
	assert_int_equal(numbers_of(svg, "stroke=\"var(--c0)\"", v, 2 * N, &begun), 2 * N);
	assert_true(v[2] > v[0] && v[3] < v[1]);
	for (size_t i = 2; i < N; i++) {
		expect_near(v[2 * i] - v[2 * i - 2], v[2] - v[0]);
		expect_near(v[2 * i + 1] - v[2 * i - 1], v[3] - v[1]);
	}
	free(svg);
}

TEST(draw__a_gap__no_line_across_it)
{
	static const double x[N] = { 0, 1, 2, 3, 4 }, y[N] = { 1, 2, NAN, 4, 5 };
	struct chart c = chart_of(CHART_LINE_PLAIN, x, y, N);
	char *svg = drawn(&c);
	double v[4 * N];
	size_t begun;

	assert_int_equal(numbers_of(svg, "stroke=\"var(--c0)\"", v, 4 * N, &begun), 8);
	assert_int_equal(begun, 2);
	free(svg);
	c.series[0].mark = CHART_BAND;
	c.series[0].low = c.series[0].high = y;
	svg = drawn(&c);
	assert_int_equal(numbers_of(svg, "fill=\"var(--c0)\"", v, 4 * N, &begun), 16);
	assert_int_equal(begun, 2);
	free(svg);
}

TEST(draw__stack__bars_stand_on_those_before)
{
	static const double x[] = { 0, 1 }, lower[] = { 4, 0 }, upper[] = { 6, 10 };
	struct chart c = chart_of(CHART_STACK, x, lower, 2);
	double one[10], other[10];
	size_t begun;
	char *svg;

	c.categories[0] = "a";
	c.categories[1] = "b";
	c.n_categories = 2;
	c.series[1] = (struct chart_series){ .label = "upper", .mark = CHART_STACK, .x = x, .y = upper, .n = 2 };
	c.n_series = 2;
	svg = drawn(&c);
	/* A path goes left, bottom, right, top, left. */
	assert_int_equal(numbers_of(svg, "fill=\"var(--c0)\"", one, 10, &begun), 5);
	assert_int_equal(numbers_of(svg, "fill=\"var(--c1)\"", other, 10, &begun), 10);
	expect_near(other[0], one[0]);
	expect_near(other[2], one[2]);
	expect_near(other[1], one[3]);
	expect_near((one[1] - one[3]) / (other[1] - other[3]), 4.0 / 6);
	/* In category b the upper bar starts at the bottom, and ends as high as in a. */
	assert_true(other[5] > other[2]);
	expect_near(other[6], one[1]);
	expect_near(other[8], other[3]);
	free(svg);
}

TEST(draw__intervals__from_low_to_high)
{
	static const double x[] = { 0, 1 }, y[] = { 5, 5 }, low[] = { 0, NAN }, high[] = { 10, 10 };
	struct chart c = chart_of(CHART_LINE, x, y, 2);
	double line[4], v[20];
	const char *rest;
	size_t begun;
	char *svg;

	c.series[0].low = low;
	c.series[0].high = high;
	svg = drawn(&c);
	assert_int_equal(numbers_of(svg, "stroke=\"var(--c0)\"", line, 4, &begun), 4);
	rest = strstr(strstr(svg, "stroke=\"var(--c0)\"") + 1, "stroke=\"var(--c0)\"");
	/* The path has x, low, 8, -4 0, high, -4 0, 8. */
	assert_int_equal(numbers_of(rest, "stroke", v, 20, &begun), 18);
	assert_int_equal(begun, 2);
	expect_near(v[0] + 4, line[0]);
	expect_near(v[1] - line[1], line[1] - v[5]);
	assert_true(v[1] > line[1]);
	/* Without a lower end, the interval begins at the point. */
	expect_near(v[10], line[3]);
	expect_near(v[14], v[5]);
	free(svg);
}

/* Labels of vertical rules are above the plot, and must not overlap. */
TEST(draw__rules_side_by_side__labels_in_rows)
{
	struct chart c = chart_of(CHART_LINE, (const double[]){ 0, 100 }, (const double[]){ 0, 100 }, 2);
	double y[3];
	char *svg;

	c.rules[0] = (struct chart_rule){ .at = 90, .vertical = true, .label = "capacity" };
	c.rules[1] = (struct chart_rule){ .at = 91, .vertical = true, .label = "failure" };
	c.rules[2] = (struct chart_rule){ .at = 10, .vertical = true, .label = "knee" };
	c.n_rules = 3;
	svg = drawn(&c);
	for (size_t i = 0; i < 3; i++) {
		char *end = strstr(svg, c.rules[i].label), *from;

		assert_non_null(end);
		*end = '\0';
		from = strrchr(svg, '<');
		assert_non_null(from);
		from = strstr(from, " y=\"");
		assert_non_null(from);
		y[i] = strtod(from + 4, NULL);
		*end = c.rules[i].label[0];
	}
	assert_true(y[0] - y[1] > 20);
	assert_true(y[2] == y[0]);
	free(svg);
}

TEST(draw__several__only_words_differ_and_no_ids)
{
	struct chart c[2] = { chart_of(CHART_STACK, ones, rising, N), chart_of(CHART_LINE, ones, ones, N) };
	char *svg[2];

	c[0].categories[0] = "none";
	c[0].categories[1] = "a name that is too long to be shown";
	c[0].n_categories = 2;
	c[1].x_percentile = true;
	for (size_t i = 0; i < 2; i++)
		svg[i] = drawn(&c[i]);
	expect_in(svg[0], ">a name that i\xe2\x80\xa6</text>");
	expect_in(svg[0], "fill=\"var(--c0)\"");
	expect_in(svg[1], ">90 %</text>");
	for (size_t i = 0; i < 2; i++) {
		assert_null(strstr(svg[i], "id="));
		assert_null(strstr(svg[i], "rgb"));
		assert_null(strstr(svg[i], "<defs"));
		assert_null(strstr(svg[i], "<?xml"));
		free(svg[i]);
	}
}
