/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the report's section on the machines: its figures, and damaged or missing series. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/report.h"
#include "tests/unit/helpers/analysis_run.h"
#include "tests/unit/helpers/report_rig.h"

#define D REPORT_RIG_DIR

static json_t *run;

static int set_up(void **state)
{
	run = analysis_run();
	return report_rig_set_up(state);
}

static int tear_down(void **state)
{
	json_decref(run);
	return report_rig_tear_down(state);
}

/* n samples, one per second of the side's clock: 0.25 and 0.5 CPUs, 3 context switches a second, 10 descriptors plus
 * one for each sample. */
static json_t *side(int n)
{
	json_t *o = json_pack("{s:i, s:[], s:[], s:[], s:[], s:[], s:[], s:[], s:[{s:s, s:[f, n], s:[f, f]}]}", "samples", n,
			      "t_s", "clock_s", "cpu_user_s", "cpu_system_s", "switches_voluntary", "fds", "rss_bytes", "by_thread",
			      "name", "shard 0", "cpu_user_s", 1.5, "cpu_system_s", 0.5, 2.5);

	assert_non_null(o);
	for (int i = 0; i < n; i++) {
		json_array_append_new(json_object_get(o, "t_s"), json_real(100 + 2 * i));
		json_array_append_new(json_object_get(o, "clock_s"), json_real(i));
		json_array_append_new(json_object_get(o, "cpu_user_s"), json_real(0.25 * i));
		json_array_append_new(json_object_get(o, "cpu_system_s"), json_real(0.5 * i));
		json_array_append_new(json_object_get(o, "switches_voluntary"), json_integer(3 * i));
		json_array_append_new(json_object_get(o, "fds"), json_integer(10 + i));
		json_array_append_new(json_object_get(o, "rss_bytes"), i % 2 ? json_null() : json_integer(1 << 20));
	}
	return o;
}

static void set_series(json_t *server, json_t *generator)
{
	json_object_set_new(run, "resources_series", json_pack("{s:f, s:{s:[f, f], s:[s, s]}, s:o, s:o}", "interval_s", 1.,
		"phases", "t_s", 99., 103., "name", "connecting", "measuring", "server", server, "generator", generator));
}

TEST(machines__no_samples__said)
{
	report_rig_expect(run, "machines-none", NULL);
	set_series(json_null(), json_null());
	report_rig_expect(run, "machines-none", NULL);
	report_rig_expect_none(run, "machines-said");
}

TEST(machines__samples_of_the_server__rates_phases_and_threads)
{
	set_series(side(4), json_null());
	report_rig_expect(run, "machines-said", "1", NULL);
	assert_true(report_rig_has_row(D, "resources", "server,100,connecting,,,"));
	assert_true(report_rig_has_row(D, "resources", "server,102,connecting,0.25,0.5,"));
	assert_true(report_rig_has_row(D, "resources", "server,104,measuring,0.25,0.5,"));
	assert_true(report_rig_has_row(D, "threads", "server,shard 0,1.5,2.5"));
}

TEST(machines__peaks__beside_what_was_at_rest)
{
	json_t *server = json_at(analysis_run_step(run, 2), "resources.server");

	set_series(side(4), side(2));
	json_object_set_new(server, "fds", json_integer(120));
	json_object_set_new(server, "cpu_ns_per_op", json_real(2500));
	json_object_set_new(server, "peak", json_pack("{s:f, s:i, s:i}", "cpus", 1.5, "fds", 260,
						      "machine_available_least_bytes", 1 << 30));
	report_rig_expect(run, "machines-peak", "100", "260", "120", "1.50", NULL);
	assert_true(report_rig_has_row(D, "peaks", "100,server,1.5,,,260,120,"));
	assert_true(report_rig_has_row(D, "resources", "generator,102,connecting,0.25,0.5,"));
}

/* The second server began with less CPU time than the first one had used. */
TEST(machines__another_server__its_time_is_added)
{
	json_t *server = side(4);

	json_object_set_new(server, "by_thread", json_pack("[{s:s, s:[f, f, f, f], s:[n, n, n, n]}]", "name", "shard 0",
			    "cpu_user_s", 0., 4., -3., 1., "cpu_system_s"));
	set_series(server, json_null());
	report_rig_expect(run, "machines-said", NULL);
	assert_true(report_rig_has_row(D, "threads", "server,shard 0,8,"));
}

/* A single sample gives no CPU time. */
TEST(machines__one_sample__no_cpus_and_no_nan)
{
	json_t *server = json_at(analysis_run_step(run, 2), "resources.server");

	set_series(side(1), json_null());
	json_object_set_new(server, "fds", json_integer(120));
	json_object_set_new(server, "peak", json_pack("{s:n, s:i, s:n}", "cpus", "fds", 260, "machine_available_least_bytes"));
	report_rig_expect(run, "machines-peak", "260", "120", NULL);
	assert_null(strstr(report_rig_read(D, "report.md"), "nan "));
}

TEST(machines__many_samples__two_hundred_rows)
{
	const char *text;
	int rows = 0;

	set_series(side(1000), json_null());
	report_rig_expect(run, "machines-said", NULL);
	text = report_rig_read(D, "tables/resources.csv");
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		rows++;
	assert_int_equal(rows, 201);
	assert_true(report_rig_has_row(D, "resources", "server,2098,"));
}

TEST(machines__damaged_series__no_crash)
{
	static const char *const texts[] = {
		"7", "[]", "{}", "{\"server\": []}", "{\"server\": {\"t_s\": 5}}", "{\"server\": {\"t_s\": []}}",
		"{\"server\": {\"t_s\": [null, \"x\", 3, 1e308, -1e308]}}",
		"{\"phases\": 3, \"server\": {\"t_s\": [1, 2, 3], \"clock_s\": [3, 2, 1], \"cpu_user_s\": [1], \"fds\": [-5, 1e308, {}],"
		" \"by_thread\": [1, {}, {\"name\": 7}, {\"name\": \"x\", \"cpu_user_s\": 9}]}}",
		"{\"phases\": {\"t_s\": [], \"name\": [1, null, \"connecting\", \"connecting\", \"measuring\"]}, \"interval_s\": \"x\","
		" \"generator\": {\"t_s\": [1], \"by_thread\": {}}}",
	};

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		json_object_set_new(run, "resources_series", json_loads(texts[i], JSON_DECODE_ANY, NULL));
		assert_int_equal(report_rig_make(run), REPORT_MADE);
	}
}

TEST_EACH(set_up, tear_down)
