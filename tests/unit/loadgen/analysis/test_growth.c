/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/growth.c: the planning table. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/growth.h"
#include "tests/unit/helpers/analysis_run.h"

static int make(void **state)
{
	*state = analysis_run();
	return 0;
}

static int drop(void **state)
{
	json_decref(*state);
	return 0;
}

static json_t *plan_for(json_t *run, double headroom, double growth, double clients)
{
	struct growth_options o = { .headroom = headroom, .growth = growth, .clients = &clients, .n_clients = 1 };
	json_t *plan = growth_analysis(run, &o);

	assert_non_null(plan);
	return plan;
}

static const json_t *first(const json_t *plan)
{
	const json_t *row = json_array_get(json_object_get(plan, "rows"), 0);

	assert_non_null(row);
	return row;
}

static void assert_number(const json_t *o, const char *path, double expected)
{
	double v = json_number_at(o, path);

	assert_true(isfinite(v));
	assert_float_equal(v, expected, 1e-9 * fmax(expected, 1));
}

static void assert_unknown(const json_t *o, const char *path)
{
	assert_true(json_is_null(json_at(o, path)));
}

static void set_capacity(json_t *run, const char *which, int clients, bool at_least)
{
	json_t *c = json_at(json_at(run, "analysis.capacity"), which);

	json_object_set_new(c, "clients", json_integer(clients));
	json_object_set_new(c, "at_least", json_boolean(at_least));
}

TEST_WITH(capacity__no_slo_and_nothing_broke__most_held_at_least, make, drop)
{
	json_t *plan = plan_for(*state, 0, 0, 100);

	assert_number(plan, "capacity_clients", 100);
	assert_string_equal(json_text_at(plan, "capacity_source"), "largest_step_held");
	assert_true(json_is_true(json_at(plan, "at_least")));
	assert_number(plan, "message_bytes", 64);
	json_decref(plan);
}

TEST_WITH(capacity__what_did_not_break__unless_there_is_an_slo, make, drop)
{
	json_t *plan;

	json_object_set_new(json_at(*state, "analysis.capacity"), "first_hard_failure",
			    json_pack("{s:i, s:i, s:b}", "clients", 51, "low", 50, "at_least", 0));
	plan = plan_for(*state, 0, 0, 100);
	assert_number(plan, "capacity_clients", 50);
	assert_string_equal(json_text_at(plan, "capacity_source"), "first_hard_failure");
	assert_true(json_is_false(json_at(plan, "at_least")));
	json_decref(plan);
	set_capacity(*state, "slo_capacity", 80, true);
	plan = plan_for(*state, 0, 0, 100);
	assert_number(plan, "capacity_clients", 80);
	assert_string_equal(json_text_at(plan, "capacity_source"), "slo_capacity");
	assert_true(json_is_true(json_at(plan, "at_least")));
	json_decref(plan);
}

TEST_WITH(capacity__beyond_what_was_held__what_was_held, make, drop)
{
	json_t *plan;

	set_capacity(*state, "slo_capacity", 100000, false);
	plan = plan_for(*state, 0, 0, 100);
	assert_number(plan, "capacity_clients", 100);
	json_decref(plan);
}

TEST_WITH(capacity__step_not_measured__does_not_count, make, drop)
{
	json_t *plan;

	analysis_run_set(analysis_run_step(*state, 2), "measured_s", json_null());
	plan = plan_for(*state, 0, 0, 100);
	assert_number(plan, "capacity_clients", 50);
	json_decref(plan);
}

TEST_WITH(row__a_step_on_one_host__its_figures, make, drop)
{
	json_t *plan = plan_for(*state, 0, 0, 50);
	const json_t *row = first(plan);

	assert_number(row, "clients", 50);
	assert_number(row, "with_growth", 50);
	assert_number(row, "hosts", 1);
	assert_number(row, "clients_per_host", 50);
	/* 0.8 cores of the process, and half of the 0.2 in softirqs. */
	assert_number(row, "cores", 0.9);
	/* 20e6 + 40000 N resident, and half of the kernel's 20000 N. */
	assert_number(row, "memory_bytes", 22.5e6);
	assert_number(row, "pinned_bytes", 44800);
	assert_number(row, "qps", 250);
	assert_number(row, "fds", 21);
	assert_number(row, "messages_per_s", 3000);
	assert_string_equal(json_text_at(row, "source"), "measured");
	assert_unknown(row, "beyond");
	assert_number(plan, "base.memory_bytes", 20e6);
	assert_number(plan, "per_client.memory_bytes", 50000);
	assert_number(plan, "base.fds", 21);
	assert_number(plan, "per_client.fds", 0);
	json_decref(plan);
}

TEST_WITH(row__between_steps__interpolated, make, drop)
{
	json_t *plan = plan_for(*state, 0, 0, 75);

	assert_number(first(plan), "messages_per_s", 3500);
	assert_string_equal(json_text_at(first(plan), "source"), "interpolated");
	json_decref(plan);
}

TEST_WITH(row__below_the_smallest_step__in_proportion, make, drop)
{
	json_t *plan = plan_for(*state, 0, 0, 5);

	assert_number(first(plan), "messages_per_s", 500);
	assert_string_equal(json_text_at(first(plan), "source"), "extrapolated");
	assert_unknown(first(plan), "beyond");
	json_decref(plan);
}

TEST_WITH(row__beyond_a_host__more_hosts_never_more_of_each, make, drop)
{
	json_t *plan = plan_for(*state, 0, 0, 1000);
	const json_t *row = first(plan);

	assert_number(row, "hosts", 10);
	assert_number(row, "clients_per_host", 100);
	assert_number(row, "messages_per_s", 40000);
	assert_number(row, "cores", 9);
	assert_number(row, "qps", 3000);
	assert_string_equal(json_text_at(row, "source"), "extrapolated");
	assert_number(row, "beyond", 10);
	json_decref(plan);
}

TEST_WITH(row__headroom_and_growth__more_hosts, make, drop)
{
	json_t *plan = plan_for(*state, 0.2, 0.1, 100);
	const json_t *row = first(plan);

	/* 110 clients, spread over hosts that take 80 each. */
	assert_number(row, "clients", 100);
	assert_number(row, "with_growth", 110);
	assert_number(row, "hosts", 2);
	assert_number(row, "clients_per_host", 55);
	assert_number(row, "messages_per_s", 6200);
	assert_string_equal(json_text_at(row, "source"), "extrapolated");
	assert_number(row, "beyond", 1.1);
	json_decref(plan);
}

TEST_WITH(row__headroom_of_ninety_per_cent__a_tenth_exactly, make, drop)
{
	json_t *plan = plan_for(*state, 0.9, 0, 100);

	assert_number(first(plan), "hosts", 10);
	assert_number(first(plan), "clients_per_host", 10);
	assert_string_equal(json_text_at(first(plan), "source"), "interpolated");
	json_decref(plan);
}

TEST_WITH(row__throughput_that_fell__as_measured_there, make, drop)
{
	json_t *plan;

	analysis_run_set(analysis_run_step(*state, 2), "throughput_msgs_per_s", json_real(2000));
	plan = plan_for(*state, 0, 0, 100);
	assert_number(first(plan), "messages_per_s", 2000);
	json_decref(plan);
}

TEST_WITH(row__repetitions__their_median, make, drop)
{
	json_t *plan;

	analysis_run_add(*state, 100, 4100);
	analysis_run_add(*state, 100, 9000);
	plan = plan_for(*state, 0, 0, 100);
	assert_number(first(plan), "messages_per_s", 4100);
	json_decref(plan);
}

TEST_WITH(row__several_sizes__the_largest, make, drop)
{
	json_t *plan;

	analysis_run_add(*state, 100, 700);
	analysis_run_set(analysis_run_step(*state, 3), "message_bytes", json_integer(4096));
	plan = plan_for(*state, 0, 0, 100);
	assert_number(plan, "message_bytes", 4096);
	assert_number(first(plan), "messages_per_s", 700);
	json_decref(plan);
}

TEST_WITH(cores__hardware__no_softirqs, make, drop)
{
	json_t *plan;

	analysis_run_set(*state, "environment.server.rdma_device.is_software", json_false());
	plan = plan_for(*state, 0, 0, 50);
	assert_number(first(plan), "cores", 0.8);
	json_decref(plan);
}

TEST_WITH(cores__machines_apart__as_many_softirqs_as_the_generators, make, drop)
{
	json_t *plan;

	for (size_t i = 0; i < 3; i++)
		analysis_run_set(analysis_run_step(*state, i), "validity", json_array());
	plan = plan_for(*state, 0, 0, 50);
	assert_number(first(plan), "cores", 1);
	/* All of the kernel's memory is the server's, too. */
	assert_number(first(plan), "memory_bytes", 23e6);
	json_decref(plan);
}

TEST_WITH(cores__machine_not_that_busy__no_more_than_it_was, make, drop)
{
	json_t *plan;

	analysis_run_set(analysis_run_step(*state, 1), "resources.machine.busy_s", json_real(1.65));
	plan = plan_for(*state, 0, 0, 50);
	assert_number(first(plan), "cores", 0.85);
	json_decref(plan);
}

TEST_WITH(cores__between_steps__of_the_nearest, make, drop)
{
	json_t *plan;

	analysis_run_set(analysis_run_step(*state, 2), "resources.server.cpu_user_s", json_real(0.2));
	plan = plan_for(*state, 0, 0, 76);
	assert_number(first(plan), "cores", 0.8);
	json_decref(plan);
}

TEST_WITH(needs__one_number_of_clients__unknown, make, drop)
{
	json_t *plan;

	json_array_remove(json_object_get(*state, "steps"), 0);
	json_array_remove(json_object_get(*state, "steps"), 0);
	plan = plan_for(*state, 0, 0, 100);
	assert_unknown(plan, "base.memory_bytes");
	assert_unknown(first(plan), "memory_bytes");
	assert_number(first(plan), "messages_per_s", 4000);
	json_decref(plan);
}

TEST_WITH(needs__kernel_memory_not_known__unknown, make, drop)
{
	json_t *plan;

	for (size_t i = 0; i < 3; i++)
		analysis_run_set(analysis_run_step(*state, i), "server_before", json_null());
	plan = plan_for(*state, 0, 0, 100);
	assert_unknown(first(plan), "memory_bytes");
	assert_number(first(plan), "qps", 300);
	json_decref(plan);
}

TEST_WITH(rows__chosen__steps_capacity_and_round_numbers, make, drop)
{
	static const double expected[] = { 10, 50, 80, 100, 160, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000 };
	struct growth_options o = { 0 };
	json_t *plan, *rows;

	set_capacity(*state, "slo_capacity", 80, false);
	plan = growth_analysis(*state, &o);
	rows = json_object_get(plan, "rows");
	assert_int_equal(json_array_size(rows), N_ELEMENTS(expected));
	for (size_t i = 0; i < N_ELEMENTS(expected); i++)
		assert_number(json_array_get(rows, i), "clients", expected[i]);
	json_decref(plan);
}

TEST(rows__nothing_measured__none)
{
	struct growth_options o = { 0 };
	json_t *run = json_object(), *plan = growth_analysis(run, &o);

	assert_non_null(plan);
	assert_unknown(plan, "capacity_clients");
	assert_unknown(plan, "capacity_source");
	assert_int_equal(json_array_size(json_object_get(plan, "rows")), 0);
	json_decref(plan);
	json_decref(run);
}

TEST_WITH(rows__numbers_that_are_none__left_out, make, drop)
{
	const double clients[] = { -1, 0, NAN, 7, INFINITY };
	struct growth_options o = { .headroom = NAN, .growth = -1, .clients = clients, .n_clients = N_ELEMENTS(clients) };
	json_t *plan = growth_analysis(*state, &o);

	assert_int_equal(json_array_size(json_object_get(plan, "rows")), 1);
	assert_number(first(plan), "with_growth", 7);
	json_decref(plan);
}
