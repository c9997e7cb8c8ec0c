/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/memory.c: memory against clients held, over the steps of a run. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/analysis/read.h"

static void add(json_t *steps, int held, json_t *rss, int pinned)
{
	json_array_append_new(steps, json_pack("{s:i, s:{s:{s:o, s:i}}}", "connected_held", held, "resources",
					       "server", "rss_bytes", rss, "pinned_bytes", pinned));
}

TEST(analysis__points_on_a_line__its_slope)
{
	json_auto_t *steps = json_array(), *o = NULL;

	add(steps, 10, json_integer(1000100), 5);
	add(steps, 100, json_integer(1001000), 5);
	add(steps, 1000, json_integer(1010000), 5);
	o = read_memory_growth_json(steps);
	assert_float_equal(json_number_value(json_object_get(o, "server_rss_bytes_per_client")), 10, 1e-6);
	assert_float_equal(json_number_value(json_object_get(o, "server_pinned_bytes_per_client")), 0, 1e-6);
	assert_true(json_is_null(json_object_get(o, "machine_kernel_bytes_per_client")));
}

TEST(analysis__points_off_the_line__least_squares)
{
	json_auto_t *steps = json_array(), *o = NULL;

	/* Mean of clients 2, mean of memory 20: slope (-1 x -11 + 1 x 10) / 2. */
	add(steps, 1, json_integer(9), 0);
	add(steps, 2, json_integer(21), 0);
	add(steps, 3, json_integer(30), 0);
	o = read_memory_growth_json(steps);
	assert_float_equal(json_number_value(json_object_get(o, "server_rss_bytes_per_client")), 10.5, 1e-6);
}

TEST(analysis__fewer_than_two_numbers_of_clients__null)
{
	json_t *steps = json_array(), *o;

	o = read_memory_growth_json(steps);
	assert_true(json_is_null(o));
	json_decref(o);
	add(steps, 100, json_integer(1000), 0);
	add(steps, 100, json_integer(2000), 0);
	add(steps, 0, json_integer(500), 0);
	add(steps, 200, json_null(), 0);
	o = read_memory_growth_json(steps);
	assert_true(json_is_null(o));
	json_decref(o);
	json_decref(steps);
}
