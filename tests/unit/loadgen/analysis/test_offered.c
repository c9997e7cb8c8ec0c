/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/offered.c, and of points.c with a sweep: curves whose results are known. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/offered.h"
#include "loadgen/analysis/points.h"

static json_t *steps;

static int set_up(void **state)
{
	(void)state;
	steps = json_array();
	return steps ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(steps);
	return 0;
}

static void add(double offered, double achieved, double p99_us, const char *flag)
{
	json_t *flags = json_array();

	if (flag)
		json_array_append_new(flags, json_string(flag));
	json_array_append_new(steps, json_pack("{s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:{s:f, s:f}, s:o}", "target_clients", 4, "connected_held", 4,
		"repetition", 1, "message_bytes", 64, "offered_per_s", offered, "measured_s", 1., "throughput_msgs_per_s", achieved,
		"response_ns", "p50", 500 * p99_us, "p99", 1e3 * p99_us, "validity", flags));
}

TEST(points__repetitions_in_any_order__medians_in_rising_order)
{
	struct offered_point p[OFFERED_MAX];

	add(2000, 2000, 20, NULL);
	add(1000, 1000, 10, NULL);
	add(2000, 1990, 40, NULL);
	add(2000, 1000, 30, "behind_schedule");
	add(4000, 2000, 900, "generator_saturated");
	assert_int_equal(offered_points(steps, 4, 64, p), 3);
	assert_float_equal(p[0].per_s, 1000, 1e-9);
	assert_float_equal(p[1].per_s, 2000, 1e-9);
	assert_float_equal(p[1].achieved_per_s, 1990, 1e-9);
	assert_float_equal(p[1].p99_ns, 30e3, 1e-6);
	assert_float_equal(p[1].p50_ns, 15e3, 1e-6);
	assert_true(isnan(p[1].lag_p99_ns));
	assert_true(p[1].behind && !p[1].saturated && p[2].saturated && !p[0].behind);
	assert_int_equal(offered_points(steps, 5, 64, p), 0);
	assert_int_equal(offered_points(NULL, 4, 64, p), 0);
}

static struct knee knee_of_steps(void)
{
	struct offered_point p[OFFERED_MAX];
	size_t n = offered_points(steps, 4, 64, p);
	struct knee k;

	offered_knee(p, n, &k);
	return k;
}

TEST(knee__what_is_achieved_stops_growing__before_it)
{
	struct knee k;

	add(1000, 1000, 10, NULL);
	add(2000, 2000, 11, NULL);
	add(4000, 4000, 12, NULL);
	assert_int_equal(knee_of_steps().reason, KNEE_NONE);
	add(8000, 4200, 13, "behind_schedule");
	k = knee_of_steps();
	assert_int_equal(k.reason, KNEE_THROUGHPUT);
	assert_float_equal(k.clients, 4000, 1e-9);
	assert_float_equal(k.beyond, 8000, 1e-9);
}

TEST(knee__p99_doubles__before_it)
{
	struct knee k;

	add(1000, 1000, 10, NULL);
	add(2000, 2000, 19, NULL);
	add(4000, 4000, 21, NULL);
	k = knee_of_steps();
	assert_int_equal(k.reason, KNEE_P99);
	assert_float_equal(k.clients, 2000, 1e-9);
}

TEST(knee__generator_at_its_limit__left_out)
{
	struct offered_point p[OFFERED_MAX];
	char text[256];
	size_t n;

	add(1000, 1000, 10, NULL);
	add(2000, 2000, 10, NULL);
	add(4000, 2100, 10, "generator_saturated");
	assert_int_equal(knee_of_steps().reason, KNEE_NONE);
	n = offered_points(steps, 4, 64, p);
	assert_non_null(strstr(offered_knee_text(p, n, text, sizeof(text)), " 2000 "));
}

/* y = 10 at every rate, and a line from 5 at 1,000 to 20 at 4,000: on logarithmic axes they cross at 2,000. */
TEST(crossings__between_points__where_the_lines_meet)
{
	const struct offered_point flat[] = { { .per_s = 1000, .p99_ns = 10 }, { .per_s = 4000, .p99_ns = 10 } };
	const struct offered_point steep[] = { { .per_s = 1000, .p99_ns = 5 }, { .per_s = 4000, .p99_ns = 20 } };
	struct offered_crossing at[OFFERED_CROSSINGS_MAX];

	assert_int_equal(offered_crossings(flat, 2, steep, 2, at), 1);
	assert_float_equal(at[0].per_s, 2000, 1e-6);
	assert_false(at[0].faster_beyond);
	assert_int_equal(offered_crossings(steep, 2, flat, 2, at), 1);
	assert_true(at[0].faster_beyond);
	assert_int_equal(offered_crossings(flat, 2, flat, 2, at), 0);
	assert_int_equal(offered_crossings(flat, 0, steep, 2, at), 0);
}

/* The curves have different rates, and one point is unknown. */
TEST(crossings__different_rates__only_where_both_are_known)
{
	const struct offered_point base[] = { { .per_s = 1000, .p99_ns = 10 }, { .per_s = 2000, .p99_ns = NAN },
					      { .per_s = 4000, .p99_ns = 10 }, { .per_s = 8000, .p99_ns = 100 } };
	const struct offered_point run[] = { { .per_s = 500, .p99_ns = 900 }, { .per_s = 2000, .p99_ns = 20 },
					     { .per_s = 8000, .p99_ns = 20 }, { .per_s = 16000, .p99_ns = 900 } };
	struct offered_crossing at[OFFERED_CROSSINGS_MAX];

	assert_int_equal(offered_crossings(base, 4, run, 4, at), 1);
	assert_float_equal(at[0].per_s, 4000 * pow(2, log(2) / log(10)), 1e-6);
	assert_true(at[0].faster_beyond);
}

/* The report's other sections show the steps of one rate only. */
TEST(main_rate__a_sweep__the_highest_that_was_kept_up_with)
{
	json_auto_t *run = json_pack("{s:O}", "steps", steps);
	struct points *p;

	add(1000, 1000, 10, NULL);
	assert_true(isnan(points_main_rate(steps)));
	add(2000, 2000, 10, NULL);
	add(4000, 2100, 10, "behind_schedule");
	assert_float_equal(points_main_rate(steps), 2000, 1e-9);
	assert_int_equal(points_new(run, &p), 0);
	assert_int_equal(p->n, 1);
	assert_int_equal(p->v[0].n, 1);
	assert_float_equal(json_number_at(p->v[0].steps[0], "offered_per_s"), 2000, 1e-9);
	points_free(p);
}

TEST(json__two_rates__a_curve_with_its_knee)
{
	json_t *curves;

	add(1000, 1000, 10, NULL);
	curves = offered_curves_json(steps);
	assert_true(json_is_null(curves));
	json_decref(curves);
	add(2000, 1010, 10, "behind_schedule");
	curves = offered_curves_json(steps);
	assert_int_equal(json_array_size(curves), 1);
	assert_float_equal(json_number_at(json_array_get(curves, 0), "knee.per_s"), 1000, 1e-9);
	assert_float_equal(json_number_at(json_array_get(curves, 0), "knee.high"), 2000, 1e-9);
	json_decref(curves);
}

TEST_EACH(set_up, tear_down)
