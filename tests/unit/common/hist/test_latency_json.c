/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/hist/latency_json.c: which members there are, and when they are null. */
#include "tests/unit/helpers/unit.h"

#include "common/hist/hist.h"
#include "common/hist/latency_json.h"

static const char *const members[] = { "count", "min", "mean",  "max",    "p50",   "p90",
				       "p95",   "p99", "p99_9", "p99_99", "jitter" };

static int set_up(void **state)
{
	struct hist *h;
	int ret = hist_new(&h);

	*state = h;
	return ret;
}

static int tear_down(void **state)
{
	hist_free(*state);
	return 0;
}

static void record(struct hist *h, uint64_t value, int n)
{
	while (n--)
		hist_record(h, value);
}

static bool is_null(const json_t *o, const char *name)
{
	return json_is_null(json_object_get(o, name));
}

static json_int_t integer(const json_t *o, const char *name)
{
	assert_true(json_is_integer(json_object_get(o, name)));
	return json_integer_value(json_object_get(o, name));
}

TEST(latency__any__exactly_the_documented_members)
{
	json_auto_t *o = latency_json(*state);

	assert_int_equal(json_object_size(o), N_ELEMENTS(members));
	for (size_t i = 0; i < N_ELEMENTS(members); i++)
		assert_non_null(json_object_get(o, members[i]));
}

TEST(latency__empty__zero_and_nulls)
{
	json_auto_t *o = latency_json(*state);

	assert_int_equal(integer(o, "count"), 0);
	for (size_t i = 1; i < N_ELEMENTS(members); i++)
		assert_true(is_null(o, members[i]));
}

/* 1 - p^n >= 0.95 needs 5 samples for p50, 29 for p90, 59 for p95, 299 for p99, 2995 for p99.9. */
TEST(latency__few_samples__null_until_supported)
{
	static const struct {
		int samples;
		const char *name;
	} bounds[] = {
		{ 5, "p50" },   { 29, "p90" },     { 59, "p95" },
		{ 299, "p99" }, { 299, "jitter" }, { 2995, "p99_9" },
	};

	for (size_t i = 0; i < N_ELEMENTS(bounds); i++) {
		json_t *o;

		hist_reset(*state);
		record(*state, 1000, bounds[i].samples - 1);
		o = latency_json(*state);
		assert_true(is_null(o, bounds[i].name));
		json_decref(o);
		record(*state, 1000, 1);
		o = latency_json(*state);
		assert_false(is_null(o, bounds[i].name));
		json_decref(o);
	}
}

TEST(latency__two_values__the_right_ones)
{
	json_auto_t *o = NULL;

	record(*state, 1000, 9800);
	record(*state, 2000, 200);
	o = latency_json(*state);
	assert_int_equal(integer(o, "count"), 10000);
	assert_int_equal(integer(o, "min"), 1000);
	assert_int_equal(integer(o, "max"), 2000);
	assert_int_equal(integer(o, "p50"), 1000);
	assert_int_equal(integer(o, "p95"), 1000);
	assert_int_equal(integer(o, "p99"), 2000);
	assert_true(is_null(o, "p99_99"));
	assert_float_equal(json_real_value(json_object_get(o, "mean")), 1020.0, 0.001);
	assert_float_equal(json_real_value(json_object_get(o, "jitter")), 2.0, 0.001);
}

TEST(latency__all_zero__no_jitter)
{
	json_auto_t *o = NULL;

	record(*state, 0, 1000);
	o = latency_json(*state);
	assert_int_equal(integer(o, "p50"), 0);
	assert_true(is_null(o, "jitter"));
}

TEST_EACH(set_up, tear_down)
