/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the analyses with a damaged run.json: they must not crash or produce anything that is not JSON. Run
 * them under sanitizers. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>

#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/limits.h"
#include "loadgen/analysis/growth.h"
#include "tests/unit/helpers/analysis_run.h"

static const char *const bad_values[] = {
	"null", "\"x\"", "-1", "1e308", "[]", "{}", "0", "true", "9e15", "9223372036854775807", "5e-324",
};

static json_t *bad(size_t i)
{
	json_t *v = json_loads(bad_values[i], JSON_DECODE_ANY, NULL);

	assert_non_null(v);
	return v;
}

/* Takes ownership of `o`, which must exist and contain only finite numbers, because JSON has no others. */
static void assert_writable(json_t *o)
{
	char *text;

	assert_non_null(o);
	text = json_dumps(o, JSON_ENCODE_ANY);
	assert_non_null(text);
	free(text);
	json_decref(o);
}

static void assert_survives(const json_t *good, const json_t *run)
{
	static const double clients[] = { 1, 100, 1e6, 1e300 };
	struct growth_options given = { .headroom = 0.3, .growth = 0.5, .clients = clients,
				      .n_clients = N_ELEMENTS(clients) };
	struct growth_options chosen = { 0 };
	struct baseline_side a = { .run = good }, b = { .run = run };

	assert_writable(limits_analysis(run));
	assert_writable(growth_analysis(run, &given));
	assert_writable(growth_analysis(run, &chosen));
	assert_writable(baseline_compare(&a, &b, &(struct baseline_options){ .min_effect = 0.05 }));
	assert_writable(baseline_differences(good, run));
}

/* Replaces each value below `o` in turn by each bad value. Returns how many values there are. */
static size_t spoil(const json_t *good, json_t *run, json_t *o)
{
	size_t n = 0, i;
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe(o, next, key, v) {
		json_incref(v);
		for (size_t k = 0; k < N_ELEMENTS(bad_values); k++) {
			json_object_set_new(o, key, bad(k));
			assert_survives(good, run);
		}
		json_object_set_new(o, key, v);
		n += 1 + spoil(good, run, v);
	}
	json_array_foreach(o, i, v) {
		json_incref(v);
		for (size_t k = 0; k < N_ELEMENTS(bad_values); k++) {
			json_array_set_new(o, i, bad(k));
			assert_survives(good, run);
		}
		json_array_set_new(o, i, v);
		n += 1 + spoil(good, run, v);
	}
	return n;
}

/* A run with few intervals, to save time. */
static json_t *small_run(void)
{
	json_t *run = analysis_run();

	for (size_t i = 0; i < 3; i++)
		while (json_array_size(json_object_get(analysis_run_step(run, i), "intervals")) > 5)
			json_array_remove(json_object_get(analysis_run_step(run, i), "intervals"), 0);
	analysis_run_set(run, "environment.server.rlimits.memlock.soft", json_integer(8388608));
	analysis_run_set(run, "environment.clients.rlimits.memlock.soft", json_integer(8388608));
	return run;
}

TEST(damaged__each_value_of_a_run_of_its_own_server__survives)
{
	json_auto_t *good = small_run(), *run = json_deep_copy(good);

	assert_true(spoil(good, run, run) > 200);
	assert_true(json_equal(good, run));
}

TEST(damaged__each_value_of_a_run_with_capacity__survives)
{
	json_auto_t *good = small_run(), *run = NULL;

	analysis_run_set(good, "config.server", json_string("10.0.0.1"));
	analysis_run_set(good, "config.phased", json_true());
	analysis_run_set(good, "analysis.capacity.slo_capacity.clients", json_integer(80));
	json_array_remove(json_object_get(good, "steps"), 0);
	for (size_t i = 0; i < 2; i++)
		analysis_run_set(analysis_run_step(good, i), "validity", json_array());
	run = json_deep_copy(good);
	assert_true(spoil(good, run, run) > 150);
}

TEST(damaged__no_run_at_all__survives)
{
	json_auto_t *good = small_run();

	for (size_t k = 0; k < N_ELEMENTS(bad_values); k++) {
		json_t *run = bad(k);

		assert_survives(good, run);
		json_decref(run);
	}
}

TEST(damaged__thousands_of_steps__survives)
{
	json_auto_t *run = small_run(), *good = small_run();

	for (int i = 0; i < 3000; i++)
		json_array_append_new(json_object_get(run, "steps"), json_pack("{s:i, s:i, s:i, s:f}", "target_clients",
			i + 1, "connected_held", i + 1, "message_bytes", 64, "measured_s", 1.0));
	assert_survives(good, run);
	assert_survives(run, good);
}

TEST(damaged__thousands_of_repetitions__survives)
{
	json_auto_t *run = small_run(), *good = small_run();

	for (int i = 0; i < 3000; i++)
		json_array_append(json_object_get(run, "steps"), analysis_run_step(good, 2));
	assert_survives(good, run);
}
