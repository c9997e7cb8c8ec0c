/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/curve.c: which points a run gives to the knee and to the fit. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/curve.h"

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

static json_t *add(int clients, int bytes, double throughput, double p99_ns)
{
	json_t *step = json_pack("{s:i, s:i, s:i, s:f, s:{s:f}, s:n, s:[]}", "target_clients", clients, "active",
				 clients,
				 "message_bytes", bytes, "throughput_msgs_per_s", throughput, "response_ns", "p99",
				 p99_ns, "probe", "intervals");

	assert_non_null(step);
	json_array_append_new(steps, step);
	return step;
}

static void probe(json_t *step, const char *purpose)
{
	json_object_set_new(step, "probe", json_pack("{s:s}", "purpose", purpose));
}

TEST(knee_points__repetitions__their_medians_in_rising_order)
{
	struct knee_point p[CURVE_POINTS_MAX];

	add(100, 64, 900, 3e6);
	add(10, 64, 300, 1e6);
	add(10, 64, 100, 5e6);
	add(10, 64, 200, 2e6);
	/* Another size, which does not belong to this curve. */
	add(10, 4096, 1, 1);
	add(1000, 4096, 1, 1);
	assert_int_equal(curve_knee_points(steps, p), 2);
	assert_true(p[0].clients == 10 && p[0].throughput == 200 && p[0].p99_ns == 2e6);
	assert_true(p[1].clients == 100 && p[1].throughput == 900);
}

TEST(knee_points__of_a_search__doublings_alone)
{
	struct knee_point p[CURVE_POINTS_MAX];

	probe(add(10, 64, 100, 1e6), "double");
	probe(add(20, 64, 200, 1e6), "double");
	probe(add(15, 64, 1, 1e6), "bisect");
	/* A number of clients that doubling reached counts, with everything that was measured there. */
	probe(add(20, 64, 400, 1e6), "confirm");
	assert_int_equal(curve_knee_points(steps, p), 2);
	assert_true(p[1].clients == 20 && p[1].throughput == 300);
}

TEST(knee_points__close_together__thinned_out)
{
	struct knee_point p[CURVE_POINTS_MAX];

	for (int n = 10; n <= 20; n++)
		add(n, 64, n, 1e6);
	assert_int_equal(curve_knee_points(steps, p), 2);
	assert_true(p[0].clients == 10 && p[1].clients == 15);
}

TEST(points__damaged_steps__left_out)
{
	struct knee_point p[CURVE_POINTS_MAX];
	struct usl_point u[CURVE_POINTS_MAX];

	json_array_append_new(steps, json_null());
	json_array_append_new(steps, json_string("step"));
	json_array_append_new(steps, json_pack("{s:s, s:s}", "target_clients", "many", "throughput_msgs_per_s",
					       "fast"));
	json_array_append_new(steps, json_pack("{s:i, s:n}", "target_clients", 10, "throughput_msgs_per_s"));
	json_array_append_new(steps, json_pack("{s:i, s:i, s:f}", "target_clients", -5, "active", -5,
					       "throughput_msgs_per_s", 5.));
	assert_int_equal(curve_knee_points(steps, p), 0);
	assert_int_equal(curve_usl_points(steps, u), 0);
	assert_int_equal(curve_knee_points(NULL, p), 0);
	for (int i = 0; i < 2 * CURVE_POINTS_MAX; i++)
		add(10 + i, 64, 100, 1e6);
	assert_in_range(curve_usl_points(steps, u), 1, CURVE_POINTS_MAX);
	assert_in_range(curve_knee_points(steps, p), 1, CURVE_POINTS_MAX);
}

TEST(knee_json__between_the_number_before_and_beyond)
{
	json_t *o;

	add(10, 64, 1000, 1e6);
	add(20, 64, 2000, 1e6);
	add(40, 64, 2050, 1e6);
	o = curve_knee_json(steps, true);
	assert_string_equal(json_text_at(o, "reason"), "throughput");
	assert_true(json_number_at(o, "clients") == 20 && json_number_at(o, "high") == 40);
	assert_true(json_is_false(json_object_get(o, "confirmed")));
	json_decref(o);
	add(20, 64, 2000, 1e6);
	add(40, 64, 2050, 1e6);
	o = curve_knee_json(steps, true);
	assert_true(json_is_true(json_object_get(o, "confirmed")));
	json_decref(o);
}

TEST(knee_json__none_yet__at_least_the_most)
{
	json_auto_t *o = NULL;

	add(10, 64, 1000, 1e6);
	add(20, 64, 2000, 1e6);
	o = curve_knee_json(steps, true);
	assert_string_equal(json_text_at(o, "reason"), "none");
	assert_true(json_is_null(json_object_get(o, "clients")));
	assert_true(json_number_at(o, "low") == 20);
	assert_true(json_is_true(json_object_get(o, "at_least")));
}

/* Sets how much of two CPUs was used in a step. */
static json_t *use_cpus(json_t *step, double busy_s, double server_cpus)
{
	json_object_set_new(step, "resources", json_pack("{s:{s:f, s:f}, s:{s:f}}", "machine", "busy_s", busy_s,
							 "idle_s", 2 - busy_s, "server", "cpus", server_cpus));
	json_object_set_new(step, "effective", json_pack("{s:{s:[{}]}}", "server", "threads"));
	return step;
}

static const char *knee_reason(bool threads_sleep)
{
	static char reason[32];
	json_auto_t *o = curve_knee_json(steps, threads_sleep);

	snprintf(reason, sizeof(reason), "%s", json_text_at(o, "reason"));
	return reason;
}

TEST(knee_json__cpus_full_from_the_first_step__proposes_rates)
{
	json_t *first = use_cpus(add(10, 64, 18913, 1e6), 1.9, 0.5);
	json_auto_t *o = NULL;

	add(100, 64, 19000, 10e6);
	o = curve_knee_json(steps, true);
	assert_string_equal(json_text_at(o, "reason"), "saturated");
	assert_true(json_is_null(json_at(o, "clients")) && json_is_null(json_at(o, "low")));
	assert_true(json_is_false(json_at(o, "at_least")) && json_is_false(json_at(o, "confirmed")));
	assert_string_equal(json_text_at(o, "text"), "saturated from the first step: the CPUs were full with 10 "
			    "clients already, so their throughput shows no knee; that of offered load does: "
			    "--rate 1900-23000");
	/* The server's only thread may be full while the machine is not. */
	use_cpus(first, 1, 0.95);
	assert_string_equal(knee_reason(true), "saturated");
}

TEST(knee_json__cpus_not_full_or_not_known_or_open_loop__a_knee)
{
	json_t *first = use_cpus(add(10, 64, 18913, 1e6), 1.7, 0.5);

	add(100, 64, 19000, 10e6);
	assert_string_equal(knee_reason(true), "throughput");
	use_cpus(first, 2, 1);
	assert_string_equal(knee_reason(true), "saturated");
	assert_string_equal(knee_reason(false), "throughput");
	json_object_set_new(first, "offered_per_s", json_integer(18913));
	json_object_set_new(json_array_get(steps, 1), "offered_per_s", json_integer(18913));
	assert_string_equal(knee_reason(true), "throughput");
	json_object_del(first, "offered_per_s");
	json_object_del(json_array_get(steps, 1), "offered_per_s");
	json_object_del(first, "resources");
	assert_string_equal(knee_reason(true), "throughput");
}

TEST(usl_json__exact_curve__parameters_and_peak)
{
	json_auto_t *o = NULL;

	for (int n = 1; n <= 256; n *= 2)
		add(n, 64, 1000. * n / (1 + 0.02 * (n - 1) + 0.0005 * n * (n - 1)), 1e6);
	o = curve_usl_json(steps);
	assert_string_equal(json_text_at(o, "status"), "fitted");
	assert_true(fabs(json_number_at(o, "lambda.value") - 1000) < 0.1);
	assert_true(fabs(json_number_at(o, "sigma.value") - 0.02) < 1e-5);
	assert_true(fabs(json_number_at(o, "kappa.value") - 0.0005) < 1e-6);
	assert_true(json_is_true(json_object_get(o, "passes_peak")));
	assert_true(fabs(json_number_at(o, "peak_clients.value") - sqrt(0.98 / 0.0005)) < 0.1);
}

TEST(usl_json__few_points__says_so)
{
	json_auto_t *o = NULL;

	add(10, 64, 1000, 1e6);
	o = curve_usl_json(steps);
	assert_string_equal(json_text_at(o, "status"), "few_points");
	assert_true(json_is_null(json_object_get(o, "peak_clients")));
}

TEST_EACH(set_up, tear_down)
