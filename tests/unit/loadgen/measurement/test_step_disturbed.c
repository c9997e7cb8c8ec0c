/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/step_disturbed.c: steps whose machines lost CPU time to a hypervisor or to a CPU
 * quota, and those that lost too little. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "loadgen/measurement/step.h"
#include "loadgen/measurement/step_pack.h"

#define TENTH_S (NS_PER_S / 10)

static const struct workload messages = { .streams = 1, .kind_names = { "a" } };
static struct loadgen_config cfg;
static struct step *s;

/* A server's report `uptime_s` after its start, on a machine with two CPUs. */
static json_t *report(double uptime_s, double stolen_s, double throttled_s)
{
	return json_pack("{s:f, s:{s:f, s:f, s:f}}", "uptime_s", uptime_s, "resources", "machine_cpu_s",
			 1000 + 2 * uptime_s, "machine_steal_s", 7 + stolen_s, "cgroup_throttled_s", 3 + throttled_s);
}

static void set_reports(json_t *begin, json_t *end)
{
	json_decref(s->begin.server);
	json_decref(s->end.server);
	s->begin.server = begin;
	s->end.server = end;
}

/* Ten seconds were measured on machines with two CPUs; nothing was lost. */
static int set_up(void **state)
{
	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	cfg.wl = &messages;
	cfg.inflight = 1;
	assert_int_equal(step_new(4, 64, 1, &s), 0);
	s->max_steal_ratio = 0.01;
	s->measured = true;
	s->begin.now_ns = 100 * NS_PER_S;
	s->end.now_ns = 110 * NS_PER_S;
	s->begin.machine = (struct res_machine_cpu){ .busy_ns = 50 * NS_PER_S, .idle_ns = 5 * NS_PER_S,
						     .steal_ns = 2 * NS_PER_S };
	s->end.machine = (struct res_machine_cpu){ .busy_ns = 65 * NS_PER_S, .idle_ns = 10 * NS_PER_S,
						   .steal_ns = 2 * NS_PER_S };
	s->begin.throttled_s = s->end.throttled_s = 30;
	set_reports(report(20, 0, 0), report(30, 0, 0));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	return 0;
}

static bool has_flag(const struct step *of, const char *name)
{
	json_auto_t *o = step_json(of, &cfg, NULL, 0);
	json_t *flag;
	size_t i;

	json_array_foreach(json_object_get(o, "validity"), i, flag)
		if (strcmp(json_string_value(flag), name) == 0)
			return true;
	return false;
}

static void assert_lost(bool stolen, bool throttled)
{
	assert_int_equal(has_flag(s, "cpu_stolen"), stolen);
	assert_int_equal(has_flag(s, "cpu_throttled"), throttled);
	assert_int_equal(step_is_disturbed(s), stolen || throttled);
}

TEST(disturbed__nothing_lost__no_flag)
{
	assert_lost(false, false);
}

/* 1 % of 20 s of two CPUs, and a tick of 10 ms. */
TEST(stolen__generator__above_1_per_cent_of_its_machine)
{
	s->end.machine.steal_ns += 9 * 2 * TENTH_S / 10;
	assert_lost(false, false);
	s->end.machine.steal_ns += TENTH_S / 10;
	assert_lost(false, false);
	s->end.machine.steal_ns += 3 * TENTH_S / 10;
	assert_lost(true, false);
	assert_true(step_is_stolen(s, SIDE_GENERATOR) && !step_is_stolen(s, SIDE_SERVER));
	s->max_steal_ratio = 0.02;	/* --max-steal 2 */
	assert_lost(false, false);
}

TEST(stolen__server__above_1_per_cent_of_its_machine)
{
	set_reports(report(20, 0, 0), report(30, 0.18, 0));
	assert_lost(false, false);
	set_reports(report(20, 0, 0), report(30, 0.22, 0));
	assert_lost(true, false);
	assert_true(step_is_stolen(s, SIDE_SERVER) && !step_is_stolen(s, SIDE_GENERATOR));
}

TEST(throttled__either_side__above_1_per_cent_of_the_measured_time)
{
	s->end.throttled_s += 0.09;
	set_reports(report(20, 0, 0), report(30, 0, 0.09));
	assert_lost(false, false);
	s->end.throttled_s += 0.02;
	assert_lost(false, true);
	assert_true(step_is_throttled(s, SIDE_GENERATOR) && !step_is_throttled(s, SIDE_SERVER));
	s->end.throttled_s = 30;
	set_reports(report(20, 0, 0), report(30, 0, 0.11));
	assert_lost(false, true);
	assert_true(step_is_throttled(s, SIDE_SERVER));
}

/* A short step is not flagged for one tick, which may be of the time before. */
TEST(stolen__short_step__not_for_one_tick)
{
	set_reports(report(20, 0, 0), report(20.2, 0.01, 0));
	assert_lost(false, false);
	set_reports(report(20, 0, 0), report(20.2, 0.02, 0));
	assert_lost(true, false);
}

TEST(lost__not_known__null_and_no_flag)
{
	json_auto_t *o = NULL;

	s->end.throttled_s = NAN;
	s->end.machine = (struct res_machine_cpu){ 0 };
	/* Another server, whose machine had lost less; then reports without the figures, and with damaged ones. */
	set_reports(report(20, 9, 9), report(30, 0, 0));
	assert_lost(false, false);
	set_reports(json_pack("{}"), json_pack("{s:{s:s}}", "resources", "machine_steal_s", "9"));
	assert_lost(false, false);
	set_reports(NULL, NULL);
	assert_lost(false, false);
	o = step_json(s, &cfg, NULL, 0);
	assert_true(json_is_null(json_at(o, "resources.server.machine_steal_ratio")));
	assert_true(json_is_null(json_at(o, "resources.server.cgroup_throttled_s")));
	assert_true(json_is_null(json_at(o, "resources.generator.machine_steal_ratio")));
	assert_true(json_is_null(json_at(o, "resources.generator.cgroup_throttled_s")));
}

TEST(lost__known__figures_of_both_sides)
{
	json_auto_t *o = NULL;

	s->end.machine.steal_ns += NS_PER_S;
	set_reports(report(20, 0, 0), report(30, 0.5, 2));
	o = step_json(s, &cfg, NULL, 0);
	assert_true(fabs(json_number_at(o, "resources.generator.machine_steal_ratio") - 0.05) < 1e-9);
	assert_true(fabs(json_number_at(o, "resources.generator.cgroup_throttled_s")) < 1e-9);
	assert_true(fabs(json_number_at(o, "resources.server.machine_steal_ratio") - 0.025) < 1e-9);
	assert_true(fabs(json_number_at(o, "resources.server.cgroup_throttled_s") - 2) < 1e-9);
}

/* One of several servers lost time, which the mean of all would hide. */
TEST(stolen__one_of_several_servers__flag)
{
	static const uint32_t clients[] = { 2, 2 };

	assert_int_equal(step_make_targets(s, 2, clients), 0);
	for (uint32_t i = 0; i < 2; i++) {
		s->targets[i].reports[STEP_REPORT_BEGIN] = report(20, 0, 0);
		s->targets[i].reports[STEP_REPORT_END] = report(30, i * 0.3, 0);
	}
	assert_true(step_is_stolen(s, SIDE_SERVER));
	json_decref(s->targets[1].reports[STEP_REPORT_END]);
	s->targets[1].reports[STEP_REPORT_END] = report(30, 0, 0);
	assert_false(step_is_stolen(s, SIDE_SERVER));
}

static void merge(struct step *into, uint32_t rank)
{
	json_auto_t *packed = step_pack(s, &cfg, NULL, 0);
	char err[256];

	assert_int_equal(step_merge(into, rank, packed, err, sizeof(err)), 0);
}

TEST(lost__one_of_several_hosts__flag_of_the_merged_step)
{
	json_auto_t *o = NULL;
	struct step *all;

	assert_int_equal(step_merge_begin(s, 12, &all), 0);
	merge(all, 0);
	assert_false(step_is_disturbed(all));
	s->end.machine.steal_ns += NS_PER_S;
	step_keep_lost(s);
	merge(all, 1);
	assert_true(has_flag(all, "cpu_stolen") && !has_flag(all, "cpu_throttled"));
	s->end.machine.steal_ns -= NS_PER_S;
	s->end.throttled_s += 1;
	step_keep_lost(s);
	merge(all, 2);
	assert_true(has_flag(all, "cpu_stolen") && has_flag(all, "cpu_throttled"));
	assert_true(step_is_disturbed(all));
	/* The hosts' own figures are in `hosts`. */
	o = step_json(all, &cfg, NULL, 0);
	assert_true(json_is_null(json_at(o, "resources.generator.machine_steal_ratio")));
	assert_true(json_is_null(json_at(o, "resources.generator.cgroup_throttled_s")));
	step_free(all);
}

TEST_EACH(set_up, tear_down)
