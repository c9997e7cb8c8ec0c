/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/points.c: steps by clients and size, medians with ranges, intervals of one run. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "loadgen/analysis/points.h"
#include "loadgen/report/input/source.h"
#include "tests/unit/helpers/analysis_run.h"
#include "tests/unit/helpers/report_rig.h"

static json_t *run_of(const char *steps)
{
	json_t *a = json_loads(steps, 0, NULL);

	assert_non_null(a);
	return json_pack("{s:o}", "steps", a);
}

static struct points *points_of(const json_t *run)
{
	struct points *p;

	assert_int_equal(points_new(run, &p), 0);
	return p;
}

TEST(points__steps_in_any_order__by_size_then_clients)
{
	json_t *run = run_of("[{\"target_clients\": 20, \"message_bytes\": 64}, {\"target_clients\": 5, "
			     "\"message_bytes\": 4096},"
			     " {\"target_clients\": 5, \"message_bytes\": 64}, {\"target_clients\": 20, "
			     "\"message_bytes\": 64}]");
	struct points *p = points_of(run);

	assert_int_equal(p->n, 3);
	assert_int_equal(p->n_sizes, 2);
	assert_float_equal(p->sizes[1], 4096, 0);
	assert_float_equal(p->v[0].clients, 5, 0);
	assert_float_equal(p->v[1].clients, 20, 0);
	assert_int_equal(p->v[1].n, 2);
	/* The steps are in the order in which they ran. */
	assert_ptr_equal(p->v[1].steps[0], analysis_run_step(run, 0));
	assert_ptr_equal(p->v[1].steps[1], analysis_run_step(run, 3));
	assert_ptr_equal(points_find(p, 5, 4096), &p->v[2]);
	assert_null(points_find(p, 6, 64));
	points_free(p);
	json_decref(run);
}

TEST(points__elements_that_are_no_step__left_out)
{
	static const char *const runs[] = { "[]", "[null, 1, [], {}, {\"target_clients\": \"5\"}, {\"target_clients\": "
						  "0},"
						  " {\"target_clients\": -1}]" };

	for (size_t i = 0; i < N_ELEMENTS(runs); i++) {
		json_t *run = run_of(runs[i]);
		struct points *p = points_of(run);

		assert_int_equal(p->n, 0);
		points_free(p);
		json_decref(run);
	}
}

TEST(points__more_steps_than_any_run_has__counted_as_left_out)
{
	json_auto_t *run = run_of("[]");
	struct points *p;

	for (int i = 0; i < (int)READ_STEPS_MAX + 7; i++)
		json_array_append_new(json_object_get(run, "steps"), json_pack("{s:i}", "target_clients", 5));
	p = points_of(run);
	assert_int_equal(p->left_out, 7);
	assert_int_equal(p->v[0].n, READ_STEPS_MAX);
	points_free(p);
}

TEST(range__several_runs__median_least_and_most)
{
	json_t *run = run_of("[{\"target_clients\": 5, \"x\": 30}, {\"target_clients\": 5, \"x\": 10}, "
			     "{\"target_clients\": 5, \"x\": null},"
			     " {\"target_clients\": 5, \"x\": 20}]");
	struct points *p = points_of(run);
	struct estimate e = point_range(&p->v[0], "x");

	assert_float_equal(e.value, 20, 0);
	assert_float_equal(e.low, 10, 0);
	assert_float_equal(e.high, 30, 0);
	assert_true(isnan(point_range(&p->v[0], "y").value));
	points_free(p);
	json_decref(run);
}

TEST(range__one_run__no_range)
{
	json_auto_t *run = run_of("[{\"target_clients\": 5, \"x\": 30}]");
	struct points *p = points_of(run);
	struct estimate e = point_range(&p->v[0], "x");

	assert_float_equal(e.value, 30, 0);
	assert_true(isnan(e.low) && isnan(e.high));
	points_free(p);
}

TEST(throughput__one_run__interval_of_its_intervals)
{
	json_auto_t *run = analysis_run();
	struct points *p = points_of(run);
	struct estimate e = point_throughput(&p->v[0]);

	assert_float_equal(e.value, 1000, 1e-9);
	assert_true(e.low < 1000 && e.low > 980);
	assert_true(e.high > 1000 && e.high < 1020);
	points_free(p);
}

TEST(percentile__one_run__interval_of_its_histogram)
{
	json_t *run = run_of("[{\"target_clients\": 5, \"response_ns\": {\"p50\": 500000, \"p99\": null},"
			     " \"histograms\": {\"response\": \"h\"}}]");
	struct points *p = points_of(run);
	struct source *s;
	struct estimate e;
	char err[256];

	report_rig_file(REPORT_RIG_DIR, "run.json", "{\"schema_version\": 1}");
	report_rig_histogram(REPORT_RIG_DIR, "h", 1000, 1000);
	assert_int_equal(source_open(REPORT_RIG_DIR, &s, err, sizeof(err)), 0);
	e = point_percentile(&p->v[0], source_histogram, s, "response", 50);
	assert_float_equal(e.value, 500000, 0);
	/* Ranks 500 +- 1.96 sqrt(250). */
	assert_float_equal(e.low, 469000, 2500);
	assert_float_equal(e.high, 531000, 2500);
	/* The run says that there were too few samples: no figure then, whatever the histogram has. */
	assert_true(isnan(point_percentile(&p->v[0], source_histogram, s, "response", 99).value));
	assert_true(isnan(point_percentile(&p->v[0], source_histogram, s, "response", 42).value));
	source_close(s);
	points_free(p);
	json_decref(run);
}

TEST_EACH(report_rig_set_up, report_rig_tear_down)
