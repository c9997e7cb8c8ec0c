/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/plan/planned.c: what was planned beside what a run used. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/plan/planned.h"
#include "loadgen/workloads/workloads.h"
#include "tests/unit/helpers/analysis_run.h"

static struct loadgen_config cfg;
static struct hosts before;
static json_t *run;

static int set_up(void **state)
{
	char *argv[] = { "performance_test", NULL }, err[512];

	(void)state;
	loadgen_config_defaults(&cfg);
	cfg.transport = TRANSPORT_TCP;
	cfg.clients = 200;
	assert_int_equal(loadgen_config_check(&cfg, 1, argv, err, sizeof(err)), 0);
	assert_int_equal(workloads_apply(&cfg, 1, argv, err, sizeof(err)), 0);
	before = (struct hosts){ .cfg = &cfg, .same_machine = true };
	run = analysis_run();
	analysis_run_set(analysis_run_step(run, 2), "connected_peak", json_integer(100));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(run);
	hosts_free(&before);
	return 0;
}

static json_t *row(const json_t *plan, const char *resource, const char *side)
{
	return analysis_run_find(json_object_get(plan, "rows"), "resource", resource, side);
}

TEST(planned__most_of_all_steps__with_the_ratio)
{
	json_t *plan, *rss;

	analysis_run_set(analysis_run_step(run, 1), "resources.server.peak",
			 json_pack("{s:i, s:i}", "rss_bytes", 30000000, "fds", 77));
	plan = planned_json(&before, NULL, run);
	rss = row(plan, "rss_bytes", "server");
	assert_true(json_number_at(plan, "clients") == 100);
	assert_true(json_number_at(rss, "used") == 30000000);
	assert_true(fabs(json_number_at(rss, "ratio") - json_number_at(rss, "needed") / 30000000) < 1e-6);
	assert_true(json_number_at(row(plan, "rss_bytes", "generator"), "used") == 13000000);
	/* Only a sample saw the descriptors at their peak. */
	assert_true(json_number_at(row(plan, "fds", "server"), "used") == 77);
	assert_true(json_is_null(json_object_get(row(plan, "fds", "generator"), "used")));
	assert_true(json_is_null(json_object_get(row(plan, "fds", "generator"), "ratio")));
	json_decref(plan);
}

/* A sample counts pages, which differ from the planned bytes by much where there are few. */
TEST(planned__registered_memory__not_of_samples)
{
	json_t *plan;

	analysis_run_set(analysis_run_step(run, 2), "resources.generator.peak",
			 json_pack("{s:i}", "pinned_bytes", 36864));
	cfg.transport = TRANSPORT_RDMA;
	plan = planned_json(&before, NULL, run);
	assert_true(json_number_at(row(plan, "pinned_bytes", "generator"), "used") == 29184);
	json_decref(plan);
}

/* Figures read at the end of the measured time are of fewer clients if the largest step did not get that far. */
TEST(planned__most_clients_not_measured__what_only_its_end_tells_is_unknown)
{
	json_t *plan, *last = analysis_run_step(run, 2);

	cfg.transport = TRANSPORT_RDMA;
	plan = planned_json(&before, NULL, run);
	assert_true(json_number_at(row(plan, "pinned_bytes", "generator"), "used") > 0);
	json_decref(plan);
	analysis_run_set(last, "measured_s", json_null());
	plan = planned_json(&before, NULL, run);
	assert_true(json_is_null(json_object_get(row(plan, "pinned_bytes", "generator"), "used")));
	assert_true(json_number_at(row(plan, "rss_bytes", "generator"), "used") > 0);
	json_decref(plan);
}

/* The queue pairs of a step's clients rest for 6 s, and the next step makes new ones meanwhile. */
TEST(planned__queue_pairs_that_rest__of_steps_that_ended_shortly_before)
{
	static const double ended_s[] = { 3.1, 2.5, 1.9 }, resting[] = { 80, 30, 0 };
	double needed[3];

	cfg.transport = TRANSPORT_RDMA;
	for (size_t i = 0; i < 3; i++) {
		json_t *step = analysis_run_step(run, i);

		analysis_run_set(step, "connected_peak", json_integer(i == 0 ? 80 : 100));
		analysis_run_set(step, "started_s", json_real(8. * (double)i));
		analysis_run_set(step, "connect_wall_s", json_real(1));
		analysis_run_set(step, "ended_s", json_real(8. * (double)i + 1.9));
	}
	for (size_t i = 0; i < 3; i++) {
		json_t *plan;

		analysis_run_set(analysis_run_step(run, 0), "ended_s", json_real(ended_s[i]));
		plan = planned_json(&before, NULL, run);
		needed[i] = json_number_at(row(plan, "qps", "both"), "needed");
		json_decref(plan);
	}
	/* Both ends have a queue pair for each client. In the second case they have rested when 50 are connected. */
	for (size_t i = 0; i < 3; i++)
		assert_true(fabs(needed[i] - needed[2] - 2 * resting[i]) < 1e-6);
}

TEST(planned__nobody_connected_or_a_server_without_a_report__null)
{
	json_t *empty = json_pack("{s:[]}", "steps");

	assert_true(json_is_null(planned_json(&before, NULL, empty)));
	cfg.server = "127.0.0.1";
	assert_true(json_is_null(planned_json(&before, NULL, run)));
	json_decref(empty);
}

TEST_EACH(set_up, tear_down)
