/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/falls.c: with how many clients throughput falls, and which counters grew. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/suites/falls.h"

/* A step of one second. Its counter `misses` grows as given on each side; the devices of `loopback` are one. */
static json_t *step(double per_s, int misses, bool loopback)
{
	json_t *side = json_pack("{s:i, s:b, s:[{s:{s:i, s:i}}]}", "window_s", 1, "loopback", loopback, "ports",
				 "counters", "misses", misses, "sent", isfinite(per_s) ? (int)per_s : 0);

	return json_pack("{s:o, s:{s:o, s:O}}", "throughput_msgs_per_s", json_number(per_s), "network", "generator",
			 side, "server", side);
}

static void add(json_t *points, int clients, double per_s, int misses, bool loopback)
{
	json_array_append_new(points, json_pack("{s:i, s:i, s:n, s:[{s:s, s:o}], s:[{s:[o, o]}]}", "clients", clients,
		"message_bytes", 64, "offered_per_s", "figures", "name", "all", "throughput_msgs_per_s",
		json_number(per_s), "runs", "steps", step(per_s, misses, loopback), step(per_s, misses, loopback)));
}

static json_t *only(const json_t *points)
{
	json_t *all = falls_json(points), *one;

	assert_int_equal(json_array_size(all), 1);
	one = json_incref(json_array_get(all, 0));
	json_decref(all);
	return one;
}

TEST(falls__below_90_percent_for_good__the_first_such_number)
{
	json_t *points = json_array(), *fall, *counter;

	/* Not in order. The dip at 4 clients is no fall, because 8 are above 90 % again. */
	add(points, 16, 800, 40, false);
	add(points, 1, 500, 1, false);
	add(points, 2, 1000, 2, false);
	add(points, 4, 850, 2, false);
	add(points, 8, 950, 2, false);
	add(points, 32, 890, 80, false);
	fall = only(points);
	assert_string_equal(json_text_at(fall, "name"), "all");
	assert_int_equal(json_number_at(fall, "message_bytes"), 64);
	assert_int_equal(json_number_at(fall, "best_clients"), 2);
	assert_int_equal(json_number_at(fall, "best_msgs_per_s"), 1000);
	assert_int_equal(json_number_at(fall, "above_clients"), 8);
	assert_int_equal(json_number_at(fall, "below_clients"), 16);
	assert_int_equal(json_number_at(fall, "below_msgs_per_s"), 800);
	/* Both sides count. The counter `sent` is left out, as it grows by 2 for each operation at either point. */
	assert_int_equal(json_array_size(json_object_get(fall, "counters")), 1);
	counter = json_array_get(json_object_get(fall, "counters"), 0);
	assert_string_equal(json_text_at(counter, "name"), "misses");
	assert_float_equal(json_number_at(counter, "best_per_op"), 0.004, 1e-9);
	assert_float_equal(json_number_at(counter, "below_per_op"), 0.1, 1e-9);
	json_decref(fall);
	json_decref(points);
}

TEST(falls__loopback__the_device_counts_once)
{
	json_t *points = json_array(), *fall;

	add(points, 1, 1000, 0, true);
	add(points, 2, 500, 5, true);
	add(points, 4, 400, 8, true);
	fall = only(points);
	assert_float_equal(json_number_at(json_array_get(json_object_get(fall, "counters"), 0), "below_per_op"), 0.01,
			   1e-9);
	json_decref(fall);
	json_decref(points);
}

TEST(falls__best_is_last_or_recovers__null)
{
	json_t *points = json_array(), *fall;

	add(points, 1, 1000, 0, false);
	add(points, 2, 500, 0, false);
	add(points, 4, 1001, 0, false);
	fall = only(points);
	assert_int_equal(json_number_at(fall, "best_clients"), 4);
	assert_true(json_is_null(json_object_get(fall, "below_clients")));
	assert_true(json_is_null(json_object_get(fall, "above_clients")));
	assert_true(json_is_null(json_object_get(fall, "below_msgs_per_s")));
	assert_int_equal(json_array_size(json_object_get(fall, "counters")), 0);
	json_decref(fall);
	json_decref(points);
}

TEST(falls__two_sizes_and_a_sweep__each_size_without_the_sweep)
{
	json_t *points = json_array(), *all;

	for (int i = 1; i <= 4; i++) {
		add(points, i, 1000, 0, false);
		add(points, i, 1000 / i, 0, false);
		json_object_set_new(json_array_get(points, json_array_size(points) - 1), "message_bytes",
				    json_integer(128));
		add(points, i, 1000 / i, 0, false);
		json_object_set_new(json_array_get(points, json_array_size(points) - 1), "offered_per_s",
				    json_integer(100));
	}
	all = falls_json(points);
	assert_int_equal(json_array_size(all), 2);
	assert_true(json_is_null(json_object_get(json_array_get(all, 0), "below_clients")));
	assert_int_equal(json_number_at(json_array_get(all, 1), "message_bytes"), 128);
	assert_int_equal(json_number_at(json_array_get(all, 1), "below_clients"), 2);
	json_decref(all);
	json_decref(points);
}

TEST(falls__two_points_or_nothing_measured__none)
{
	json_t *points = json_array(), *all;

	add(points, 1, 1000, 0, false);
	add(points, 2, 500, 0, false);
	add(points, 4, NAN, 0, false);
	all = falls_json(points);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	json_decref(points);
}
