/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the jitter in loadgen/report/sections/steps.c: how far percentiles are above the p50, which causes the
 * figures show, and which remedies the report names; and of the histogram drawn with characters (latency.c). */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "tests/unit/helpers/analysis_run.h"
#include "tests/unit/helpers/report_rig.h"

#define D REPORT_RIG_DIR

static json_t *run;

/* Three steps: 1,000, 3,000 and 4,000 messages a second, the p95 95 % and the p99 99 % above the p50. */
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

static void set_in_step(size_t k, const char *path, json_t *v)
{
	analysis_run_set(analysis_run_step(run, k), path, v);
}

static void add_flag(size_t k, const char *flag)
{
	json_array_append_new(json_object_get(analysis_run_step(run, k), "validity"), json_string(flag));
}

TEST(rows__percentiles__per_cent_above_the_p50)
{
	set_in_step(2, "response_ns.p90", json_integer(101000));
	set_in_step(2, "response_ns.p99_9", json_integer(1250000));
	report_rig_expect_row(run, "jitter", "10,10,,95,99,");
	assert_true(report_rig_has_row(D, "jitter", "100,100,1,95,99,1150"));
}

TEST(rows__no_round_trip__no_jitter)
{
	for (size_t i = 0; i < 3; i++)
		set_in_step(i, "response_ns.p50", json_null());
	report_rig_expect_none(run, "jitter-no-cause");
	report_rig_expect_none(run, "jitter-no-figures");
}

TEST(cause__no_figure_or_a_harmless_one__none_and_no_remedy)
{
	report_rig_expect(run, "jitter-no-figures", NULL);
	/* The server's window has 2 s, so 8,000 messages: 8 switches are 1 in 1,000. */
	set_in_step(2, "resources.server.switches_involuntary", json_integer(8));
	set_in_step(2, "clock_late_ns", json_integer(99000));
	report_rig_expect(run, "jitter-no-cause", NULL);
	report_rig_expect_none(run, "jitter-cause");
	assert_true(report_rig_has_row(D, "jitter_causes", "100,4,0.099"));
}

TEST(cause__interrupted__the_remedy_that_is_not_yet_used)
{
	set_in_step(2, "resources.server.switches_involuntary", json_integer(9));
	report_rig_expect(run, "jitter-cause", "1", "3", "--cpu-list", NULL);
	analysis_run_set(run, "config.tuning.cpu_list", json_string("2-3"));
	report_rig_expect(run, "jitter-cause", "1", "3", "--realtime", "--cpu-list", NULL);
	analysis_run_set(run, "config.tuning.realtime", json_true());
	report_rig_expect(run, "jitter-cause", "1", "3", "isolcpus", NULL);
}

TEST(cause__late_by_more_than_the_tail__as_interrupted)
{
	set_in_step(1, "clock_late_ns", json_integer(49501));
	report_rig_expect(run, "jitter-cause", "1", "3", "--cpu-list", NULL);
	set_in_step(1, "clock_late_ns", json_integer(49500));
	report_rig_expect(run, "jitter-no-cause", NULL);
}

TEST(cause__several__the_three_that_add_most)
{
	add_flag(0, "cpu_stolen");
	add_flag(1, "cpu_stolen");
	add_flag(1, "cpu_throttled");
	add_flag(2, "generator_saturated");
	analysis_run_set(run, "environment.clients.cpu_governor", json_string("powersave"));
	report_rig_expect(run, "jitter-cause", "2", "3", "dedicated", NULL);
	report_rig_expect(run, "jitter-cause-2", "1", "3", "cpu.max", NULL);
	report_rig_expect(run, "jitter-cause-3", "1", "3", "--threads", NULL);
	report_rig_expect_none(run, "jitter-cause-4");
}

TEST(cause__network_and_governor__doctor_and_performance)
{
	set_in_step(0, "network", json_pack("{s:{s:i, s:f}}", "generator", "retransmits", 2, "window_s", 1.));
	analysis_run_set(run, "environment.clients.cpu_governor", json_string("powersave"));
	report_rig_expect(run, "jitter-cause", "1", "3", "doctor", NULL);
	report_rig_expect(run, "jitter-cause-2", "3", "3", "governor", "performance", NULL);
	set_in_step(0, "network.generator.retransmits", json_integer(1));
	analysis_run_set(run, "environment.clients.cpu_governor", json_string("performance"));
	report_rig_expect_none(run, "jitter-cause");
}

/* 3,000 samples from 1 us to 3 ms, equally often, so the most are in the last row, which is a full bar. */
TEST(picture__histogram__bars_where_there_is_no_chart)
{
	const char *text;

	set_in_step(2, "histograms", json_pack("{s:s}", "response", "h"));
	report_rig_histogram(D, "h", 3000, 1000);
	report_rig_expect(run, "jitter", NULL);
	assert_null(strstr(report_rig_read(D, "report.html"), "####"));
	text = report_rig_read(D, "report.md");
	assert_non_null(strstr(text, "```\n100 clients: from us, messages, share\n         1.0 |.  "));
	text = strstr(text, " |########################################  ");
	assert_non_null(text);
	assert_non_null(strstr(text, " % p90 p95 p99 p99.9\n"));
}

TEST_EACH(set_up, tear_down)
