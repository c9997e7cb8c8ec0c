/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/output/load_hosts.c: the reports of hosts, which may contain anything, become hosts[] of
 * run.json; and of the names of hosts at their limit (loadgen/analysis/read.c). */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/output/load_hosts.h"

static struct load_hosts *h;

static int set_up(void **state)
{
	(void)state;
	return load_hosts_new(3, &h);
}

static int tear_down(void **state)
{
	(void)state;
	load_hosts_free(h);
	return 0;
}

static json_t *packed(int share)
{
	return json_pack("{s:{s:i}, s:{s:i, s:{s:{s:f}}}}", "figures", "target", share, "own", "connected_held", share,
			 "network", "generator", "line_bits_per_s", 25e9);
}

static void step_of(uint32_t rank, int share, int64_t started_ns)
{
	json_t *o = packed(share);

	load_hosts_step(h, rank, o, started_ns);
	json_decref(o);
}

TEST_WITH(about__known_and_unknown__only_what_is_understood, set_up, tear_down)
{
	json_t *about = json_pack("{s:s, s:{s:s, s:i, s:s, s:{s:f, s:i}, s:{s:s, s:b}}, s:i}", "name",
				  "load1\nAll criteria are met", "environment", "kernel", "6.1",
				  "cores", 8, "memory_bytes", "much", "cgroup", "cpus", 1.5, "memory_bytes", -1,
				  "rdma_device", "name", "rxe0", "is_software", 1,
				  "build", 3);
	json_t *a;

	load_hosts_about(h, 1, about);
	load_hosts_about(h, 7, about);
	load_hosts_about(h, 2, NULL);
	load_hosts_clock(h, 1, -5, 3);
	load_hosts_lost(h, 2, 1.5, "first");
	load_hosts_lost(h, 2, 2.5, "second");
	/* The name was cut in the middle of a character. */
	load_hosts_lost(h, 0, 3.5, "host g\xc3");
	a = load_hosts_json(h);
	assert_int_equal(json_array_size(a), 3);
	/* A name cannot begin a line of the summary. */
	assert_string_equal(json_text_at(json_array_get(a, 1), "name"), "load1\\x0aAll criteria are met");
	assert_string_equal(json_text_at(json_array_get(a, 1), "about.kernel"), "6.1");
	assert_int_equal(json_number_at(json_array_get(a, 1), "about.cores"), 8);
	assert_true(json_is_null(json_at(json_array_get(a, 1), "about.memory_bytes")));
	assert_true(json_number_at(json_array_get(a, 1), "about.cgroup.cpus") == 1.5);
	assert_true(json_is_null(json_at(json_array_get(a, 1), "about.cgroup.memory_bytes")));
	assert_true(json_is_null(json_at(json_array_get(a, 1), "about.build")));
	assert_true(json_is_true(json_at(json_array_get(a, 1), "about.rdma_device.is_software")));
	assert_true(json_number_at(json_array_get(a, 1), "clock.offset_ns") == -5);
	assert_string_equal(json_text_at(json_array_get(a, 2), "lost.why"), "first");
	assert_string_equal(json_text_at(json_array_get(a, 0), "lost.why"), "host g\\xc3");
	assert_true(json_is_null(json_at(json_array_get(a, 1), "lost")));
	json_decref(a);
	json_decref(about);
}

TEST_WITH(step__three_starts__skew_from_the_first, set_up, tear_down)
{
	uint64_t skew = 0;
	json_t *a;

	load_hosts_begin_step(h, 4);
	step_of(0, 10, 1000);
	step_of(2, 10, 700);
	step_of(1, 0, 5);
	step_of(2, 10, 9999);
	assert_true(load_hosts_end_step(h, &skew));
	assert_int_equal(skew, 300);
	a = load_hosts_json(h);
	assert_int_equal(json_number_at(json_array_get(json_at(json_array_get(a, 0), "steps"), 0), "start_skew_ns"),
			 300);
	assert_int_equal(json_number_at(json_array_get(json_at(json_array_get(a, 2), "steps"), 0), "start_skew_ns"), 0);
	assert_int_equal(json_number_at(json_array_get(json_at(json_array_get(a, 2), "steps"), 0), "step"), 4);
	assert_int_equal(json_array_size(json_at(json_array_get(a, 2), "steps")), 1);
	/* A host without clients measured nothing. */
	assert_true(json_is_null(json_at(json_array_get(json_at(json_array_get(a, 1), "steps"), 0), "own")));
	json_decref(a);
	load_hosts_begin_step(h, 5);
	step_of(0, 10, 1000);
	step_of(1, 10, LOAD_HOSTS_NOT_STARTED);
	assert_false(load_hosts_end_step(h, &skew));
}

TEST(at_limit__smallest_step_of_so_many__its_hosts_by_name)
{
	json_t *hosts = json_pack("[{s:s}, {s:n}, {s:s}]", "name", "a", "name", "name", "c");
	json_t *steps = json_pack("[{s:i, s:[]}, {s:i, s:[i, i, i]}, {s:i, s:[i]}]", "target_clients", 10,
				  "saturated_hosts",
				  "target_clients", 40, "saturated_hosts", 1, 2, 99, "target_clients", 20,
				  "saturated_hosts", 0);
	json_t *one = json_pack("[{s:s}]", "name", "a");
	char text[READ_NAMES_MAX];

	assert_string_equal(read_hosts_at_limit(hosts, steps, 0, text), "a");
	assert_string_equal(read_hosts_at_limit(hosts, steps, 21, text), "host 1, c");
	assert_string_equal(read_hosts_at_limit(hosts, steps, 41, text), "");
	assert_string_equal(read_hosts_at_limit(one, steps, 0, text), "");
	assert_string_equal(read_hosts_at_limit(NULL, steps, 0, text), "");
	json_decref(hosts);
	json_decref(steps);
	json_decref(one);
}

/* The names of the first hosts fill the text. */
TEST(at_limit__many_hosts__the_rest_counted)
{
	json_t *hosts = json_array(), *ranks = json_array(), *step;
	char text[READ_NAMES_MAX];

	for (int i = 0; i < 200; i++) {
		json_array_append_new(hosts, json_pack("{s:s}", "name", "a-host-with-a-long-name"));
		json_array_append_new(ranks, json_integer(i));
	}
	step = json_pack("{s:o}", "saturated_hosts", ranks);
	read_saturated_hosts(hosts, step, text);
	assert_non_null(strstr(text, " more"));
	json_decref(hosts);
	json_decref(step);
}
