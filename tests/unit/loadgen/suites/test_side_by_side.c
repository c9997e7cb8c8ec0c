/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/side_by_side.c and suite_results.c: medians of rounds, and which alternative is ahead at
 * which sizes. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/suites/side_by_side.h"
#include "loadgen/suites/suite_results.h"

static json_t *made(const char *text)
{
	char quoted[4096];
	json_t *o;

	assert_true(snprintf(quoted, sizeof(quoted), "%s", text) < (int)sizeof(quoted));
	for (char *p = quoted; (p = strchr(p, '\'')); p++)
		*p = '"';
	o = json_loads(quoted, 0, NULL);
	assert_non_null(o);
	return o;
}

TEST(figures__three_rounds__medians)
{
	json_t *run = made("{'steps': ["
			   "{'response_ns': {'p50': 30, 'jitter': 2.5}, 'throughput_msgs_per_s': 10,"
			   " 'connect_ns': {'tcp_connect': {'p50': 7}, 'socket_connect': null, 'total': {'p50': 50}},"
			   " 'memory': {'server_rss_bytes_per_client': 4096},"
			   " 'connect_cpu_ns_per_client': {'server': 5, 'generator': 5}},"
			   "{'response_ns': {'p50': 10}, 'throughput_msgs_per_s': 30, 'connect_ns': {'tcp_connect': "
			   "{'p50': 9}}},"
			   "{'response_ns': {'p50': 20}, 'throughput_msgs_per_s': null, 'connect_ns': null,"
			   " 'connect_cpu_ns_per_client': {'server': 8, 'generator': null}}]}");
	json_t *o = suite_results_figures(json_object_get(run, "steps"));

	assert_true(json_number_at(o, "response_p50_ns") == 20);
	assert_true(json_number_at(o, "jitter_ratio") == 2.5);
	assert_true(json_number_at(o, "throughput_msgs_per_s") == 20);
	assert_true(json_number_at(o, "connect_stages.tcp_connect") == 8);
	assert_true(json_is_null(json_at(o, "connect_stages.socket_connect")));
	assert_true(json_number_at(o, "connect_p50_ns") == 50);
	assert_true(json_number_at(o, "server_rss_bytes_per_client") == 4096);
	/* Only the last step sent no messages, so only its figures count. */
	assert_true(json_number_at(o, "server_cpu_ns_per_connection") == 8);
	assert_true(json_is_null(json_at(o, "generator_cpu_ns_per_connection")));
	assert_true(json_is_null(json_at(o, "response_p99_ns")));
	json_decref(o);
	json_decref(run);
}

/* Times of rdma and tcp, in this order; 0: unknown. */
static json_t *sizes_of(const double times[][3], size_t n)
{
	json_t *points = json_array(), *sizes;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(points, json_pack("{s:i, s:f, s:n, s:[{s:s, s:o}, {s:s, s:o}]}", "clients", 1,
			"message_bytes", times[i][0], "offered_per_s", "figures", "name", "rdma", "response_p50_ns",
			times[i][1] > 0 ? json_real(times[i][1]) : json_null(), "name", "tcp", "response_p50_ns",
			times[i][2] > 0 ? json_real(times[i][2]) : json_null()));
	sizes = side_by_side_sizes(points);
	json_decref(points);
	return sizes;
}

static const json_t *ahead_at(const json_t *sizes, size_t i)
{
	return json_array_get(json_object_get(json_array_get(sizes, 0), "ahead"), i);
}

TEST(sizes__curves_that_cross__the_size_in_between)
{
	/* Unordered sizes. tcp's lead is log(1/2) at 100 bytes and log(2) at 10,000, so the curves meet at 1,000. */
	static const double times[][3] = { { 10000, 40, 20 }, { 100, 10, 20 } };
	json_t *sizes = sizes_of(times, 2);

	assert_int_equal(json_array_size(sizes), 1);
	assert_string_equal(json_text_at(json_array_get(sizes, 0), "metric"), "response_p50_ns");
	assert_string_equal(json_text_at(ahead_at(sizes, 0), "name"), "rdma");
	assert_true(json_is_null(json_object_get(ahead_at(sizes, 0), "from_bytes")));
	assert_string_equal(json_text_at(ahead_at(sizes, 1), "name"), "tcp");
	assert_true(fabs(json_number_at(ahead_at(sizes, 1), "from_bytes") - 1000) < 1e-6);
	assert_null(ahead_at(sizes, 2));
	json_decref(sizes);
}

TEST(sizes__equal_or_unknown_in_between__the_others_count)
{
	static const double times[][3] = { { 64, 5, 5 }, { 100, 10, 20 }, { 500, 0, 9 }, { 1000, 10, 10 },
					   { 10000, 20, 40 } };
	json_t *sizes = sizes_of(times, 5);

	assert_string_equal(json_text_at(ahead_at(sizes, 0), "name"), "rdma");
	assert_null(ahead_at(sizes, 1));
	json_decref(sizes);
}

TEST(sizes__one_size_or_a_sweep__nothing)
{
	static const double times[][3] = { { 64, 5, 6 } };
	json_t *sizes = sizes_of(times, 1);
	json_t *sweep = made("[{'clients': 1, 'message_bytes': 64, 'offered_per_s': 100, 'figures': ["
			     "{'name': 'a', 'response_p50_ns': 1}, {'name': 'b', 'response_p50_ns': 2}]},"
			     "{'clients': 1, 'message_bytes': 64, 'offered_per_s': 200, 'figures': ["
			     "{'name': 'a', 'response_p50_ns': 2}, {'name': 'b', 'response_p50_ns': 1}]}]");

	assert_int_equal(json_array_size(sizes), 0);
	json_decref(sizes);
	sizes = side_by_side_sizes(sweep);
	assert_int_equal(json_array_size(sizes), 0);
	json_decref(sizes);
	json_decref(sweep);
}

TEST(sizes__three_alternatives__each_two)
{
	json_t *points = made("[{'clients': 9, 'message_bytes': 64, 'figures': [{'name': 'a', "
			      "'throughput_bytes_per_s': 3},"
			      "{'name': 'b', 'throughput_bytes_per_s': 2}, {'name': 'c', 'throughput_bytes_per_s': "
			      "1}]},"
			      "{'clients': 9, 'message_bytes': 128, 'figures': [{'name': 'a', "
			      "'throughput_bytes_per_s': 3},"
			      "{'name': 'b', 'throughput_bytes_per_s': 2}, {'name': 'c', 'throughput_bytes_per_s': "
			      "9}]}]");
	json_t *sizes = side_by_side_sizes(points);

	assert_int_equal(json_array_size(sizes), 3);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(sizes, 2), "clients")), 9);
	assert_string_equal(json_text_at(ahead_at(sizes, 0), "name"), "a");
	assert_int_equal(json_array_size(json_at(json_array_get(sizes, 1), "ahead")), 2);
	assert_int_equal(json_array_size(json_at(json_array_get(sizes, 2), "ahead")), 2);
	json_decref(points);
	json_decref(sizes);
}
