/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/baseline.c and differences.c: two runs side by side. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "loadgen/analysis/baseline.h"
#include "tests/unit/helpers/analysis_run.h"

struct pair {
	json_t *base, *run;
};

static const struct baseline_options five_percent = { .min_effect = 0.05 };

static int make(void **state)
{
	static struct pair p;

	p = (struct pair){ analysis_run(), analysis_run() };
	*state = &p;
	return 0;
}

static int drop(void **state)
{
	struct pair *p = *state;

	json_decref(p->base);
	json_decref(p->run);
	return 0;
}

static json_t *compare(const struct pair *p, double min_effect)
{
	struct baseline_side base = { .run = p->base }, run = { .run = p->run };
	json_t *o = baseline_compare(&base, &run, &(struct baseline_options){ .min_effect = min_effect });

	assert_non_null(o);
	return o;
}

/* The only row of a metric at a number of clients. */
static const json_t *row(const json_t *o, int clients, const char *metric)
{
	const json_t *rows = json_object_get(o, "rows"), *found = NULL;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *r = json_array_get(rows, i);

		if ((int)json_number_at(r, "clients") != clients || strcmp(json_text_at(r, "metric"), metric) != 0)
			continue;
		assert_ptr_equal(found, NULL);
		found = r;
	}
	return found;
}

static void assert_verdict(const json_t *o, int clients, const char *metric, const char *verdict)
{
	assert_non_null(row(o, clients, metric));
	assert_string_equal(json_text_at(row(o, clients, metric), "verdict"), verdict);
}

static void set_throughput(json_t *run, size_t k, double per_s)
{
	json_t *step = analysis_run_step(run, k), *intervals = json_object_get(step, "intervals");

	json_object_set_new(step, "throughput_msgs_per_s", json_real(per_s));
	for (size_t i = 0; i < json_array_size(intervals); i++)
		json_object_set_new(json_array_get(intervals, i), "messages_per_s",
				    json_real(per_s * (i % 2 ? 1.01 : 0.99)));
}

TEST_WITH(compare__the_same_run__no_regression, make, drop)
{
	json_auto_t *o = compare(*state, 0.05);
	const json_t *r = row(o, 100, "throughput_msgs_per_s");

	assert_true(json_is_false(json_at(o, "regression")));
	assert_int_equal(json_array_size(json_at(o, "missing")), 0);
	assert_verdict(o, 100, "throughput_msgs_per_s", "same");
	assert_verdict(o, 100, "held_ratio", "same");
	/* There is one repetition and no histogram. */
	assert_verdict(o, 100, "response_p50_ns", "unknown");
	assert_verdict(o, 100, "server_rss_bytes", "unknown");
	assert_float_equal(json_number_at(r, "base.value"), 4000, 1e-6);
	assert_true(json_number_at(r, "base.low") < 4000 && json_number_at(r, "base.low") > 3900);
	assert_float_equal(json_number_at(r, "change_ratio"), 0, 1e-9);
	assert_string_equal(json_text_at(r, "better"), "higher");
	assert_string_equal(json_text_at(r, "unit"), "per_s");
	assert_float_equal(json_number_at(r, "message_bytes"), 64, 0);
}

TEST_WITH(compare__metric_neither_has__no_row, make, drop)
{
	json_auto_t *o = compare(*state, 0.05);

	assert_ptr_equal(row(o, 100, "response_p99_9_ns"), NULL);
}

TEST_WITH(compare__less_throughput__regression, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	set_throughput(p->run, 2, 3600);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "regression");
	assert_verdict(o, 50, "throughput_msgs_per_s", "same");
	assert_float_equal(json_number_at(row(o, 100, "throughput_msgs_per_s"), "change_ratio"), -0.1, 1e-9);
	assert_true(json_is_true(json_at(o, "regression")));
}

TEST_WITH(compare__more_throughput__improvement, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	set_throughput(p->run, 2, 4400);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "improvement");
	assert_true(json_is_false(json_at(o, "regression")));
}

TEST_WITH(compare__apart_but_little__same, make, drop)
{
	struct pair *p = *state;
	json_t *o;

	set_throughput(p->run, 2, 3840);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "same");
	json_decref(o);
	o = compare(p, 0.02);
	assert_verdict(o, 100, "throughput_msgs_per_s", "regression");
	json_decref(o);
}

TEST_WITH(compare__nothing_came_through__regression, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	set_throughput(p->run, 2, 0);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "regression");
	/* There is no message to divide by. */
	assert_true(json_is_null(json_at(row(o, 100, "server_cpu_ns_per_message"), "run.value")));
}

TEST_WITH(compare__baseline_of_zero__unknown, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	set_throughput(p->base, 2, 0);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "unknown");
	assert_true(json_is_null(json_at(row(o, 100, "throughput_msgs_per_s"), "change_ratio")));
}

TEST_WITH(compare__too_few_intervals__unknown, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	set_throughput(p->run, 2, 1000);
	while (json_array_size(json_at(analysis_run_step(p->run, 2), "intervals")) > 4)
		json_array_remove(json_at(analysis_run_step(p->run, 2), "intervals"), 0);
	o = compare(p, 0.05);
	assert_verdict(o, 100, "throughput_msgs_per_s", "unknown");
}

TEST_WITH(compare__null_percentile__unknown, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	analysis_run_set(analysis_run_step(p->run, 2), "response_ns.p99", json_null());
	o = compare(p, 0.05);
	assert_verdict(o, 100, "response_p99_ns", "unknown");
	assert_true(json_is_null(json_at(row(o, 100, "response_p99_ns"), "run.value")));
}

TEST_WITH(compare__step_in_one_only__missing_in_the_other, make, drop)
{
	struct pair *p = *state;
	json_t *o, *missing;

	analysis_run_add(p->base, 200, 100);
	analysis_run_add(p->run, 100, 100);
	analysis_run_set(analysis_run_step(p->run, 3), "message_bytes", json_integer(4096));
	o = compare(p, 0.05);
	missing = json_at(o, "missing");
	assert_int_equal(json_array_size(missing), 2);
	assert_string_equal(json_text_at(json_array_get(missing, 0), "in"), "run");
	assert_int_equal(json_number_at(json_array_get(missing, 0), "clients"), 200);
	assert_string_equal(json_text_at(json_array_get(missing, 1), "in"), "base");
	assert_int_equal(json_number_at(json_array_get(missing, 1), "message_bytes"), 4096);
	assert_ptr_equal(row(o, 200, "throughput_msgs_per_s"), NULL);
	json_decref(o);
}

TEST_WITH(compare__clients_not_held__regression, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	analysis_run_set(analysis_run_step(p->run, 2), "connected_held", json_integer(80));
	o = compare(p, 0.05);
	assert_verdict(o, 100, "held_ratio", "regression");
	assert_float_equal(json_number_at(row(o, 100, "held_ratio"), "run.value"), 0.8, 1e-9);
	/* Wilson's interval for 80 of 100. */
	assert_float_equal(json_number_at(row(o, 100, "held_ratio"), "run.low"), 0.7112, 1e-4);
	assert_float_equal(json_number_at(row(o, 100, "held_ratio"), "run.high"), 0.8666, 1e-4);
}

TEST_WITH(compare__server_cpu__per_message, make, drop)
{
	json_auto_t *o = compare(*state, 0.05);

	/* 1.6 s of CPU time in 2 s, at 4,000 messages a second. */
	assert_float_equal(json_number_at(row(o, 100, "server_cpu_ns_per_message"), "run.value"), 200000, 1e-3);
}

static void add_repetitions(json_t *run, double a, double b)
{
	analysis_run_add(run, 100, a);
	analysis_run_add(run, 100, b);
}

TEST_WITH(compare__three_repetitions__their_mean_and_spread, make, drop)
{
	struct pair *p = *state;
	const json_t *r;
	json_auto_t *o = NULL;

	add_repetitions(p->base, 4010, 3990);
	add_repetitions(p->run, 3000, 2000);
	o = compare(p, 0.05);
	r = row(o, 100, "throughput_msgs_per_s");
	assert_float_equal(json_number_at(r, "base.value"), 4000, 1e-6);
	/* The mean plus 4.302653 x 10 / sqrt(3). */
	assert_float_equal(json_number_at(r, "base.high"), 4024.8414, 1e-3);
	/* 4000, 3000 and 2000 are too far apart for a verdict. */
	assert_float_equal(json_number_at(r, "run.value"), 3000, 1e-6);
	assert_string_equal(json_text_at(r, "verdict"), "same");
	/* With repetitions the gauges have intervals too. */
	assert_verdict(o, 100, "server_rss_bytes", "same");
}

TEST_WITH(compare__two_repetitions__both_intervals_together, make, drop)
{
	struct pair *p = *state;
	const json_t *r;
	json_auto_t *o = NULL;

	analysis_run_add(p->run, 100, 2000);
	o = compare(p, 0.05);
	r = row(o, 100, "throughput_msgs_per_s");
	assert_float_equal(json_number_at(r, "run.value"), 3000, 1e-6);
	assert_true(json_number_at(r, "run.low") < 2000 && json_number_at(r, "run.high") > 4000);
	assert_string_equal(json_text_at(r, "verdict"), "same");
}

TEST_WITH(compare__older_run_without_sizes__matched_by_clients, make, drop)
{
	struct pair *p = *state;
	json_auto_t *o = NULL;

	for (size_t i = 0; i < 3; i++) {
		json_object_del(analysis_run_step(p->base, i), "message_bytes");
		json_object_del(analysis_run_step(p->run, i), "message_bytes");
	}
	o = compare(p, 0.05);
	assert_true(json_is_null(json_at(row(o, 100, "held_ratio"), "message_bytes")));
}

/* Returns one histogram for `response`, whatever the step. */
static const struct hist *serve(void *arg, const json_t *step, const char *which)
{
	assert_non_null(step);
	return strcmp(which, "response") == 0 ? arg : NULL;
}

/* 1,000 values between `from` and twice `from`. */
static struct hist *hist_of(double from)
{
	struct hist *h;

	assert_int_equal(hist_new(&h), 0);
	for (int i = 0; i < 1000; i++)
		hist_record(h, (uint64_t)(from + from * i / 1000));
	return h;
}

static void set_percentiles(json_t *run, const struct hist *h)
{
	json_t *step = analysis_run_step(run, 2);

	analysis_run_set(step, "response_ns.p50", json_integer((json_int_t)hist_percentile(h, 50)));
	analysis_run_set(step, "response_ns.p99", json_integer((json_int_t)hist_percentile(h, 99)));
}

TEST_WITH(compare__slower_by_the_histograms__regression, make, drop)
{
	struct pair *p = *state;
	struct hist *fast = hist_of(100000), *slow = hist_of(150000);
	struct baseline_side base = { p->base, serve, fast }, run = { p->run, serve, slow };
	json_t *o;

	set_percentiles(p->base, fast);
	set_percentiles(p->run, slow);
	o = baseline_compare(&base, &run, &five_percent);
	assert_verdict(o, 100, "response_p50_ns", "regression");
	assert_verdict(o, 100, "response_p99_ns", "regression");
	/* There is no histogram for this metric. */
	assert_verdict(o, 100, "connect_p50_ns", "unknown");
	json_decref(o);
	o = baseline_compare(&run, &base, &five_percent);
	assert_verdict(o, 100, "response_p99_ns", "improvement");
	json_decref(o);
	hist_free(fast);
	hist_free(slow);
}

TEST_WITH(compare__histogram_of_something_else__unknown, make, drop)
{
	struct pair *p = *state;
	struct hist *h = hist_of(100000);
	struct baseline_side base = { p->base, serve, h }, run = { p->run, serve, h };
	json_t *o;

	set_percentiles(p->base, h);
	analysis_run_set(analysis_run_step(p->run, 2), "response_ns.p50", json_integer(900000));
	o = baseline_compare(&base, &run, &five_percent);
	assert_verdict(o, 100, "response_p50_ns", "unknown");
	json_decref(o);
	hist_free(h);
}

TEST_WITH(differences__none__empty, make, drop)
{
	struct pair *p = *state;
	json_auto_t *a = baseline_differences(p->base, p->run);

	assert_int_equal(json_array_size(a), 0);
}

static void assert_difference(const struct pair *p, const char *field)
{
	json_auto_t *a = baseline_differences(p->base, p->run);

	assert_int_equal(json_array_size(a), 1);
	assert_string_equal(json_text_at(json_array_get(a, 0), "field"), field);
	assert_non_null(json_at(json_array_get(a, 0), "base"));
	assert_non_null(json_at(json_array_get(a, 0), "run"));
}

TEST_WITH(differences__another_value__named, make, drop)
{
	struct pair *p = *state;

	analysis_run_set(p->run, "environment.server.cpu_model", json_string("B"));
	assert_difference(p, "environment.server.cpu_model");
	analysis_run_set(p->base, "environment.server.cpu_model", json_string("B"));
	analysis_run_set(p->run, "environment.clients.hypervisor", json_string("KVM"));
	assert_difference(p, "environment.clients.hypervisor");
	analysis_run_set(p->base, "environment.clients.hypervisor", json_string("KVM"));
	analysis_run_set(p->run, "config.inflight", json_integer(2));
	assert_difference(p, "config.inflight");
}

TEST_WITH(differences__memory__by_more_than_a_tenth, make, drop)
{
	struct pair *p = *state;
	json_t *a;

	analysis_run_set(p->run, "environment.server.memory_bytes", json_integer(4390000000));
	a = baseline_differences(p->base, p->run);
	assert_int_equal(json_array_size(a), 0);
	json_decref(a);
	analysis_run_set(p->run, "environment.server.memory_bytes", json_integer(4410000000));
	assert_difference(p, "environment.server.memory_bytes");
}

TEST_WITH(differences__server_elsewhere__named_but_not_where, make, drop)
{
	struct pair *p = *state;
	json_auto_t *a = NULL;

	analysis_run_set(p->run, "config.server", json_string("10.0.0.1"));
	assert_difference(p, "config.server");
	analysis_run_set(p->base, "config.server", json_string("10.0.0.2"));
	a = baseline_differences(p->base, p->run);
	assert_int_equal(json_array_size(a), 0);
}

TEST_WITH(differences__one_does_not_say__none, make, drop)
{
	struct pair *p = *state;
	json_auto_t *a = NULL;

	json_object_del(json_at(p->run, "config"), "inflight");
	analysis_run_set(p->base, "environment.server", json_null());
	a = baseline_differences(p->base, p->run);
	assert_int_equal(json_array_size(a), 0);
}

TEST_WITH(differences__rails__named, make, drop)
{
	struct pair *p = *state;

	analysis_run_set(analysis_run_step(p->base, 0), "rails", json_pack("{s:i}", "available", 1));
	analysis_run_set(analysis_run_step(p->run, 0), "rails", json_pack("{s:i}", "available", 2));
	assert_difference(p, "rails");
}

/* A run of rounds; in each, 10 clients did `per_s` operations a second with a p50 of 1e8 / `per_s` ns. */
static json_t *run_of_rounds(const double *per_s, size_t n)
{
	json_t *run = analysis_run();

	json_array_clear(json_object_get(run, "steps"));
	for (size_t i = 0; i < n; i++) {
		analysis_run_add(run, 10, per_s[i]);
		analysis_run_set(analysis_run_step(run, i), "repetition", json_integer((json_int_t)i + 1));
		analysis_run_set(analysis_run_step(run, i), "response_ns.p50", json_real(1e8 / per_s[i]));
	}
	return run;
}

static json_t *compare_rounds(const double *base_per_s, const double *run_per_s, size_t n)
{
	struct pair p = { run_of_rounds(base_per_s, n), run_of_rounds(run_per_s, n) };
	struct baseline_side base = { .run = p.base }, run = { .run = p.run };
	json_t *o = baseline_compare(&base, &run, &(struct baseline_options){ .min_effect = 0.05, .rounds = true });

	assert_non_null(o);
	json_decref(p.base);
	json_decref(p.run);
	return o;
}

static const double machine_that_changes[] = { 1000, 3000, 500, 2000, 800 };

/* The figures of both sides overlap widely; their ratios do not. */
TEST(rounds__better_in_each__improvement_with_the_range_of_ratios)
{
	static const double run[] = { 1200, 3300, 600, 2600, 960 };
	json_auto_t *o = compare_rounds(machine_that_changes, run, 5);
	const json_t *r = row(o, 10, "throughput_msgs_per_s");

	assert_verdict(o, 10, "throughput_msgs_per_s", "improvement");
	assert_float_equal(json_number_at(r, "base.value"), 1000, 1e-9);
	assert_float_equal(json_number_at(r, "base.low"), 500, 1e-9);
	assert_float_equal(json_number_at(r, "run.value"), 1200, 1e-9);
	assert_float_equal(json_number_at(r, "run.high"), 3300, 1e-9);
	assert_float_equal(json_number_at(r, "round_ratio.value"), 1.2, 1e-9);
	assert_float_equal(json_number_at(r, "round_ratio.low"), 1.1, 1e-9);
	assert_float_equal(json_number_at(r, "round_ratio.high"), 1.3, 1e-9);
	/* For a time, lower is better. */
	assert_verdict(o, 10, "response_p50_ns", "improvement");
	assert_float_equal(json_number_at(row(o, 10, "response_p50_ns"), "round_ratio.value"), 1.2, 1e-9);
}

TEST(rounds__one_the_other_way__same)
{
	static const double run[] = { 1200, 3300, 600, 1900, 960 };
	json_auto_t *o = compare_rounds(machine_that_changes, run, 5);

	assert_verdict(o, 10, "throughput_msgs_per_s", "same");
	assert_true(json_is_false(json_at(o, "regression")));
}

TEST(rounds__connecting_without_messages__cpu_of_both_ends)
{
	static const char *const names[] = { "server_cpu_ns_per_connection", "generator_cpu_ns_per_connection" };
	static const double rates[] = { 1, 1, 1, 1, 1 };
	struct pair p = { run_of_rounds(rates, 5), run_of_rounds(rates, 5) };
	struct baseline_side base = { .run = p.base }, run = { .run = p.run };
	const struct baseline_options options = { .min_effect = 0.05, .rounds = true };
	json_t *o;

	for (int messages = 1; messages >= 0; messages--) {
		for (size_t i = 0; i < 10; i++) {
			json_t *step = analysis_run_step(i < 5 ? p.base : p.run, i % 5);

			json_object_set_new(step, "connect_cpu_ns_per_client", json_pack("{s:i, s:i}", "server",
					    i < 5 ? 100 : 80, "generator", i < 5 ? 100 : 125));
			if (!messages)
				json_object_set_new(step, "throughput_msgs_per_s", json_null());
		}
		o = baseline_compare(&base, &run, &options);
		assert_non_null(o);
		for (int i = 0; i < 2; i++)
			if (messages)
				assert_null(row(o, 10, names[i]));
			else
				assert_verdict(o, 10, names[i], i ? "regression" : "improvement");
		json_decref(o);
	}
	json_decref(p.base);
	json_decref(p.run);
}

TEST(rounds__worse_in_each_by_little__same)
{
	static const double run[] = { 970, 2900, 490, 1950, 760 }, worse[] = { 900, 2800, 440, 1900, 700 };
	json_t *o = compare_rounds(machine_that_changes, run, 5);

	assert_verdict(o, 10, "throughput_msgs_per_s", "same");
	json_decref(o);
	o = compare_rounds(machine_that_changes, worse, 5);
	assert_verdict(o, 10, "throughput_msgs_per_s", "regression");
	json_decref(o);
}

TEST(rounds__fewer_than_five__unknown)
{
	static const double run[] = { 2000, 6000, 1000, 4000 };
	json_auto_t *o = compare_rounds(machine_that_changes, run, 4);

	assert_verdict(o, 10, "throughput_msgs_per_s", "unknown");
	assert_float_equal(json_number_at(row(o, 10, "throughput_msgs_per_s"), "round_ratio.value"), 2, 1e-9);
}
