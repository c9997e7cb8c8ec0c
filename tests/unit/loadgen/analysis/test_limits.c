/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/limits.c: the number of clients that limits allow. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/limits.h"
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

static void assert_number(const json_t *o, const char *name, double expected)
{
	json_t *v = json_object_get(o, name);

	assert_true(json_is_number(v));
	assert_float_equal(json_number_value(v), expected, 1e-6 * (expected > 1 ? expected : 1));
}

static void assert_unknown(const json_t *o, const char *name)
{
	assert_true(json_is_null(json_object_get(o, name)));
}

/* One limit of the run; the caller releases *all, which contains it. */
static json_t *limit(json_t *run, const char *resource, const char *side, json_t **all)
{
	*all = limits_analysis(run);
	assert_non_null(*all);
	return analysis_run_find(*all, "resource", resource, side);
}

static void set_foreign_server(json_t *run)
{
	analysis_run_set(run, "config.server", json_string("10.0.0.1"));
	for (size_t i = 0; i < 3; i++)
		analysis_run_set(analysis_run_step(run, i), "validity", json_array());
}

TEST_WITH(limits__queue_pairs_of_a_shared_device__of_both_ends, make, drop)
{
	json_t *all, *l = limit(*state, "max_qp", "both", &all);

	/* 300 + 2 N queue pairs of 10,000. */
	assert_number(l, "used", 500);
	assert_number(l, "limit", 10000);
	assert_number(l, "clients", 100);
	assert_number(l, "base", 300);
	assert_number(l, "per_client", 2);
	assert_number(l, "projected_clients", 4850);
	assert_true(json_is_false(json_object_get(l, "measured")));
	assert_ptr_equal(analysis_run_find(all, "resource", "max_qp", "server"), NULL);
	json_decref(all);
}

TEST_WITH(limits__machines_apart__each_its_own, make, drop)
{
	json_t *all, *l;

	set_foreign_server(*state);
	l = limit(*state, "max_qp", "server", &all);
	assert_number(l, "projected_clients", 9800);
	l = analysis_run_find(all, "resource", "max_qp", "generator");
	assert_number(l, "projected_clients", 9900);
	/* The server uses 20e6 + 60000 N bytes, the generator 10e6 + 30000 N. */
	l = analysis_run_find(all, "resource", "memory", "server");
	assert_number(l, "used", 26e6);
	l = analysis_run_find(all, "resource", "memory", "generator");
	assert_number(l, "used", 13e6);
	json_decref(all);
}

TEST_WITH(limits__descriptors_do_not_grow__no_projection, make, drop)
{
	json_t *all, *l = limit(*state, "nofile", "server", &all);

	assert_number(l, "used", 21);
	assert_number(l, "per_client", 0);
	assert_unknown(l, "projected_clients");
	json_decref(all);
}

TEST_WITH(limits__phased__a_descriptor_for_each_client, make, drop)
{
	json_t *all, *l;

	analysis_run_set(*state, "config.phased", json_true());
	l = limit(*state, "nofile", "server", &all);
	assert_number(l, "used", 121);
	assert_number(l, "base", 21);
	assert_number(l, "projected_clients", 1003);
	json_decref(all);
}

static void set_network(json_t *run, size_t k, const char *side, double used)
{
	json_t *step = analysis_run_step(run, k), *o = json_object_get(step, "network");

	if (!o) {
		o = json_object();
		json_object_set_new(step, "network", o);
	}
	json_object_set_new(o, side, json_pack("{s:f, s:f, s:[{},{}]}", "used_ratio", used, "line_bits_per_s", 200e9, "ports"));
}

TEST_WITH(limits__network__the_busiest_ports_line, make, drop)
{
	json_t *all, *l;

	set_network(*state, 0, "server", 0.01);
	set_network(*state, 1, "server", 0.05);
	set_network(*state, 2, "server", 0.10);
	l = limit(*state, "network", "server", &all);
	/* Two ports of 100 Gbit/s. */
	assert_number(l, "limit", 12.5e9);
	assert_number(l, "used", 1.25e9);
	assert_number(l, "per_client", 12.5e6);
	assert_number(l, "projected_clients", 1000);
	assert_null(analysis_run_find(all, "resource", "network", "generator"));
	json_decref(all);
	/* Without a line rate there is no limit. */
	json_object_set_new(json_at(analysis_run_step(*state, 0), "network.server"), "line_bits_per_s", json_null());
	json_object_set_new(json_at(analysis_run_step(*state, 1), "network.server"), "line_bits_per_s", json_null());
	json_object_set_new(json_at(analysis_run_step(*state, 2), "network.server"), "line_bits_per_s", json_string("x"));
	all = limits_analysis(*state);
	assert_null(analysis_run_find(all, "resource", "network", "server"));
	json_decref(all);
}

TEST_WITH(limits__growth_within_noise__no_projection, make, drop)
{
	json_t *all, *l;

	analysis_run_set(analysis_run_step(*state, 0), "resources.server.fds", json_integer(20));
	analysis_run_set(analysis_run_step(*state, 1), "resources.server.fds", json_integer(25));
	l = limit(*state, "nofile", "server", &all);
	assert_number(l, "per_client", 0);
	assert_unknown(l, "projected_clients");
	json_decref(all);
}

TEST_WITH(limits__noisy_memory__still_grows, make, drop)
{
	json_t *all, *l;

	/* Three points off the line cannot exclude a slope of 0. */
	analysis_run_set(analysis_run_step(*state, 1), "resources.server.rss_bytes", json_integer(24000000));
	l = limit(*state, "memory", "both", &all);
	assert_true(json_number_at(l, "per_client") > 80000);
	assert_true(json_number_at(l, "projected_clients") < 50000);
	json_decref(all);
}

TEST_WITH(limits__memory_that_shrank__not_known, make, drop)
{
	json_t *all, *l;

	analysis_run_set(analysis_run_step(*state, 2), "resources.server.rss_bytes", json_integer(1000000));
	l = limit(*state, "memory", "both", &all);
	assert_unknown(l, "per_client");
	assert_unknown(l, "projected_clients");
	json_decref(all);
}

TEST_WITH(limits__after_a_larger_step__not_in_the_line, make, drop)
{
	json_t *all, *l;

	analysis_run_add(*state, 20, 1000);
	analysis_run_set(analysis_run_step(*state, 3), "resources.server.qps", json_integer(300));
	l = limit(*state, "max_qp", "both", &all);
	assert_number(l, "base", 300);
	assert_number(l, "per_client", 2);
	json_decref(all);
}

TEST_WITH(limits__memory_of_a_shared_machine__of_both_ends, make, drop)
{
	json_t *all, *l = limit(*state, "memory", "both", &all);

	/* 30e6 + 90000 N up to the slabs' 126 and 100 clients, then 128 and 291.84 bytes more for each. */
	assert_number(l, "used", 39e6);
	assert_number(l, "per_client", 90000 + 128 + 291.84);
	assert_number(l, "base", 30e6 - 128 * 126 - 291.84 * 100);
	assert_number(l, "projected_clients", 43906);
	json_decref(all);
}

TEST_WITH(limits__unlimited_memlock__left_out, make, drop)
{
	json_t *all;

	assert_ptr_equal(limit(*state, "memlock", NULL, &all), NULL);
	json_decref(all);
}

TEST_WITH(limits__memlock__slab_grows_with_max_clients, make, drop)
{
	json_t *all, *l;

	analysis_run_set(*state, "environment.server.rlimits.memlock.soft", json_integer(1000000));
	l = limit(*state, "memlock", "server", &all);
	assert_number(l, "used", 44800);
	assert_number(l, "per_client", 128);
	assert_number(l, "base", 44800 - 128 * 126);
	assert_number(l, "projected_clients", 7588);
	json_decref(all);
}

TEST_WITH(limits__memlock_used_beyond_it__not_enforced, make, drop)
{
	json_t *all;

	analysis_run_set(*state, "environment.server.rlimits.memlock.soft", json_integer(44799));
	assert_ptr_equal(limit(*state, "memlock", "server", &all), NULL);
	json_decref(all);
}

TEST_WITH(limits__completion_queue__as_the_server_shares_out, make, drop)
{
	json_t *all, *l = limit(*state, "cqe", "server", &all);

	/* 32,767 - 64 receives per shard: m + 6 sqrt(m) clients, with a mean m of 31,635.5. */
	assert_number(l, "used", 175);
	assert_number(l, "limit", 32767);
	assert_number(l, "projected_clients", 63271);
	json_decref(all);
}

TEST_WITH(limits__receives_held_down__queue_does_not_grow, make, drop)
{
	json_t *all, *l;

	analysis_run_set(*state, "server_config.credits", json_integer(8));
	l = limit(*state, "cqe", "server", &all);
	assert_number(l, "used", 175);
	assert_unknown(l, "projected_clients");
	json_decref(all);
}

TEST_WITH(limits__max_clients__only_of_a_server_not_our_own, make, drop)
{
	json_t *all, *l;

	assert_ptr_equal(limit(*state, "max_clients", NULL, &all), NULL);
	json_decref(all);
	set_foreign_server(*state);
	l = limit(*state, "max_clients", "server", &all);
	assert_number(l, "projected_clients", 126);
	assert_true(json_is_false(json_object_get(l, "measured")));
	json_decref(all);
}

TEST_WITH(limits__ninety_per_cent__measured, make, drop)
{
	json_t *all, *l;

	set_foreign_server(*state);
	analysis_run_set(*state, "server_config.max_clients", json_integer(111));
	l = limit(*state, "max_clients", "server", &all);
	assert_true(json_is_true(json_object_get(l, "measured")));
	json_decref(all);
}

TEST_WITH(limits__ports__one_for_each_connection, make, drop)
{
	json_t *all, *l = limit(*state, "ports", "generator", &all);

	assert_number(l, "used", 100);
	assert_number(l, "limit", 28232);
	assert_number(l, "projected_clients", 28232);
	json_decref(all);
}

TEST_WITH(limits__order__of_where_they_end_unknown_last, make, drop)
{
	json_t *all = limits_analysis(*state);
	double last = 0;
	bool ended = false;

	assert_true(json_array_size(all) > 5);
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *at = json_object_get(json_array_get(all, i), "projected_clients");

		if (json_is_null(at)) {
			ended = true;
			continue;
		}
		assert_false(ended);
		assert_true(json_number_value(at) >= last);
		last = json_number_value(at);
	}
	assert_true(ended);
	assert_string_equal(json_text_at(json_array_get(all, 0), "resource"), "max_qp");
	json_decref(all);
}

TEST_WITH(limits__more_held_than_projected__what_was_held, make, drop)
{
	json_t *all, *l;

	analysis_run_set(*state, "environment.server.rdma_device.limits.max_qp", json_integer(400));
	l = limit(*state, "max_qp", "both", &all);
	assert_number(l, "projected_clients", 100);
	json_decref(all);
}

TEST(limits__nothing_there__empty)
{
	json_t *run = json_object(), *all = limits_analysis(run);

	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	all = limits_analysis(NULL);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	json_decref(run);
}
