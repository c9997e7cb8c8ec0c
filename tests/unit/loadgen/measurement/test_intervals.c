/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/intervals.c: whether a step was steady, longer intervals, and those of several
 * hosts. */
#include "tests/unit/helpers/noise.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "loadgen/measurement/intervals.h"

#define SEEDS 200

static struct intervals s, other;
static struct hist *h;

static int set_up(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	memset(&other, 0, sizeof(other));
	return hist_new(&h);
}

static int tear_down(void **state)
{
	(void)state;
	hist_free(h);
	return 0;
}

/* Adds an interval of 0.25 s in which this number of operations ended, each after `p99_ns`. */
static void add(double messages_per_s, double p99_ns, uint64_t samples)
{
	double before_s = s.n ? s.v[s.n - 1].t_s : 0;

	hist_reset(h);
	hist_record_n(h, (uint64_t)p99_ns, samples);
	intervals_add(&s, before_s + 0.25, messages_per_s, h);
}

/* Judges 11 intervals whose throughput and p99 lie on straight lines. */
static enum steadiness judge_line(double rate_step, double p99_step)
{
	s.n = 0;
	for (int i = 0; i < 11; i++)
		add(1000 + i * rate_step, 1e6 + i * p99_step, 300);
	return intervals_judge(&s);
}

TEST(steady__flat__yes)
{
	assert_int_equal(judge_line(0, 0), STEADINESS_STEADY);
}

/* 10 d / (1000 + 5 d) is 0.1 at d = 10.526 upwards and at 9.524 downwards. */
TEST(steady__throughput_drifts_more_than_10_percent__no)
{
	assert_int_equal(judge_line(10.5, 0), STEADINESS_STEADY);
	assert_int_equal(judge_line(10.6, 0), STEADINESS_NOT_STEADY);
	assert_int_equal(judge_line(-9.5, 0), STEADINESS_STEADY);
	assert_int_equal(judge_line(-9.6, 0), STEADINESS_NOT_STEADY);
}

/* 10 d / (1e6 + 5 d) is 0.5 at d = 66,667 upwards and at 40,000 downwards; a p99 is up to 3 % too high. */
TEST(steady__p99_drifts_more_than_half__no)
{
	assert_int_equal(judge_line(0, 62000), STEADINESS_STEADY);
	assert_int_equal(judge_line(0, 71000), STEADINESS_NOT_STEADY);
	assert_int_equal(judge_line(0, -38000), STEADINESS_STEADY);
	assert_int_equal(judge_line(0, -43000), STEADINESS_NOT_STEADY);
}

/* Throughput of 20 intervals with noise of 6 %, of which a part stays for the next one; p99 with noise of 25 %. */
static enum steadiness judge_noise(uint64_t *seed, double resemblance, double drift)
{
	double noise = noise_normal(seed);

	s.n = 0;
	for (int i = 0; i < 20; i++) {
		noise = resemblance * noise + sqrt(1 - resemblance * resemblance) * noise_normal(seed);
		add(1000 * (1 + drift * (i / 19. - 0.5) + 0.06 * noise), 1e6 * exp(0.25 * noise_normal(seed)), 300);
	}
	return intervals_judge(&s);
}

static int not_steady_of_seeds(double resemblance, double drift)
{
	int n = 0;

	for (uint64_t i = 1; i <= SEEDS; i++) {
		uint64_t seed = i;

		n += judge_noise(&seed, resemblance, drift) == STEADINESS_NOT_STEADY;
	}
	return n;
}

TEST(steady__noise_without_trend__at_most_5_of_100_false_alarms)
{
	assert_in_range(not_steady_of_seeds(0, 0), 0, SEEDS / 20);
	assert_in_range(not_steady_of_seeds(0.3, 0), 0, SEEDS / 20);
}

TEST(steady__drift_of_30_percent_in_noise__found_in_95_of_100)
{
	assert_in_range(not_steady_of_seeds(0, 0.3), SEEDS * 95 / 100, SEEDS);
	assert_in_range(not_steady_of_seeds(0.3, -0.3), SEEDS * 95 / 100, SEEDS);
}

/* It falls by half for the last fifth, or settles slowly: no noise, though neighbours are alike. */
TEST(steady__jump_or_bend__no)
{
	for (int i = 0; i < 20; i++)
		add(i < 16 ? 1000 : 500, 0, 0);
	assert_int_equal(intervals_judge(&s), STEADINESS_NOT_STEADY);
	s.n = 0;
	for (int i = 0; i < 20; i++)
		add(1000 - 500 * exp(-i / 4.), 0, 0);
	assert_int_equal(intervals_judge(&s), STEADINESS_NOT_STEADY);
}

TEST(steady__nine_intervals__cannot_tell)
{
	for (int i = 0; i < 9; i++)
		add(1000, 50000, 300);
	assert_int_equal(intervals_judge(&s), STEADINESS_UNKNOWN);
	assert_true(isnan(intervals_drift(&s, false).value) && isnan(intervals_drift(&s, true).value));
	add(1000, 50000, 300);
	assert_int_equal(intervals_judge(&s), STEADINESS_STEADY);
	s.n = 0;
	assert_int_equal(intervals_judge(&s), STEADINESS_UNKNOWN);
}

/* No operation ended; or so few that a drift of 30 % would not show. */
TEST(steady__few_operations__cannot_tell)
{
	uint64_t seed = 1;

	for (int i = 0; i < 20; i++)
		add(0, 0, 0);
	assert_int_equal(intervals_judge(&s), STEADINESS_UNKNOWN);
	s.n = 0;
	for (int i = 0; i < 20; i++)
		add(unit_random(&seed) % 3 == 0 ? 4 : 0, 0, 0);
	assert_int_equal(intervals_judge(&s), STEADINESS_UNKNOWN);
}

/* With 100 samples an interval has no p99, but four together have one; with 50 there is only throughput. */
TEST(p99__few_samples__neighbours_put_together)
{
	for (int i = 0; i < 20; i++)
		add(1000, 1e6 * (1 + i / 10.), 100);
	assert_true(isnan(interval_p99_ns(&s.v[0])));
	assert_near(intervals_drift(&s, true).value, 0.9, 0.1);
	assert_int_equal(intervals_judge(&s), STEADINESS_NOT_STEADY);
	s.n = 0;
	for (int i = 0; i < 20; i++)
		add(1000, 1e6 * (1 + i / 10.), 50);
	assert_true(isnan(intervals_drift(&s, true).value));
	assert_int_equal(intervals_judge(&s), STEADINESS_STEADY);
}

/* An interval in which nothing ended has no p99, which must not count as a p99 of 0. */
TEST(p99__an_interval_without_samples__left_out)
{
	for (int i = 0; i < 12; i++)
		add(1000, 50000, i == 3 || i == 11 ? 0 : 300);
	assert_near(intervals_drift(&s, true).value, 0, 0);
}

TEST(p99__any_time__at_most_3_percent_above)
{
	uint64_t seed = 3;

	for (int i = 0; i < 1000; i++) {
		uint64_t ns = 1000 + (unit_random(&seed) >> (28 + unit_random(&seed) % 26));
		double p99;

		s.n = 0;
		hist_reset(h);
		hist_record_n(h, 1000, 990 - 1);
		hist_record_n(h, ns, 11);
		intervals_add(&s, 1, 1000, h);
		p99 = interval_p99_ns(&s.v[0]);
		assert_true(p99 >= (double)ns && p99 <= (double)ns * 1.032);
	}
}

TEST(length__any_measured_time__10_intervals_and_more)
{
	static const double seconds[] = { 0.1, 0.2, 0.5, 1, 2, 5, 60, 86400 };

	for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
		uint64_t ns = (uint64_t)(seconds[i] * 1e9), length = intervals_length_ns(ns);

		assert_in_range(ns / length, 16, 20);
	}
	assert_int_equal(intervals_length_ns(NS_PER_S), 50 * NS_PER_MS);
	assert_int_equal(intervals_length_ns(5 * NS_PER_S), 250 * NS_PER_MS);
}

TEST(add__full__neighbours_merged)
{
	uint32_t merged = 0;

	hist_record_n(h, 70000, 200);
	for (int i = 0; i < INTERVALS_MAX; i++)
		merged += intervals_add(&s, i % 2 ? 0.4 * (i / 2 + 1) : 0.4 * (i / 2) + 0.1, i % 2 ? 100 : 500, h);
	assert_int_equal(merged, 1);
	assert_int_equal(s.n, INTERVALS_MAX / 2);
	for (uint32_t i = 0; i < s.n; i++) {
		/* A quarter of the time at 500, the rest at 100; 400 samples are enough for a p99. */
		assert_near(s.v[i].messages_per_s, 200, 1e-9);
		assert_near(s.v[i].t_s, 0.4 * (i + 1), 1e-9);
		assert_near(interval_p99_ns(&s.v[i]), 71000, 1200);
	}
}

static void both(struct intervals *v, double t_s, double messages_per_s, uint64_t seed)
{
	hist_reset(h);
	for (int i = 0; i < 400; i++)
		hist_record(h, unit_random(&seed) >> (30 + unit_random(&seed) % 20));
	intervals_add(v, t_s, messages_per_s, h);
}

/* Two hosts, and one that has the samples of both. */
TEST(merge__two_hosts__as_one_with_all_samples)
{
	static struct intervals one;
	struct hist *second;

	assert_int_equal(hist_new(&second), 0);
	memset(&one, 0, sizeof(one));
	for (uint64_t i = 0; i < 20; i++) {
		both(&other, 0.05 * (double)(i + 1), 300 + (double)i, 2 * i + 1);
		hist_reset(second);
		hist_add(second, h);
		both(&s, 0.05 * (double)(i + 1), 200, 2 * i + 2);
		hist_add(second, h);
		intervals_add(&one, 0.05 * (double)(i + 1), 500 + (double)i, second);
	}
	intervals_merge(&s, &other);
	assert_int_equal(s.n, 20);
	for (uint32_t i = 0; i < s.n; i++) {
		assert_near(s.v[i].messages_per_s, one.v[i].messages_per_s, 1e-9);
		assert_memory_equal(s.v[i].cells, one.v[i].cells, sizeof(one.v[i].cells));
	}
	assert_near(intervals_drift(&s, true).value, intervals_drift(&one, true).value, 0);
	hist_free(second);
}

/* The other host measured a little longer, so its intervals became twice as long. */
TEST(merge__longer_intervals__neighbours_merged_first)
{
	for (int i = 0; i < 39; i++)
		add(100, 50000, 10);
	memcpy(&other, &s, sizeof(s));
	add(100, 50000, 10);
	assert_int_equal(s.n, 20);
	intervals_merge(&other, &s);
	assert_int_equal(other.n, 19);
	for (uint32_t i = 0; i < other.n; i++) {
		assert_near(other.v[i].t_s, 0.5 * (i + 1), 1e-9);
		assert_near(other.v[i].messages_per_s, 200, 1e-9);
	}
}

TEST(merge__a_host_without_any__none)
{
	for (int i = 0; i < 20; i++)
		add(100, 50000, 10);
	intervals_merge(&s, &other);
	assert_int_equal(s.n, 0);
}

TEST(pack__then_unpack__the_same)
{
	json_auto_t *packed = NULL;

	for (uint64_t i = 0; i < 20; i++)
		both(&s, 0.05 * (double)(i + 1), 300 + (double)i / 3, i + 1);
	add(0, 0, 0);
	packed = intervals_pack(&s);
	assert_null(intervals_unpack(packed, &other));
	assert_int_equal(other.n, 21);
	for (uint32_t i = 0; i < s.n; i++)
		assert_memory_equal(&s.v[i], &other.v[i], sizeof(s.v[i]));
}

static void assert_refused(json_t *packed)
{
	assert_non_null(packed);
	if (!intervals_unpack(packed, &other))
		fail_msg("accepted %s", json_dumps(packed, JSON_ENCODE_ANY));
	json_decref(packed);
}

TEST(unpack__hostile__refused)
{
	static const char *const cells[] = { "1", "-", "- ", "-1", " 1 ", "1  1 ", "1,1 ", "+1 ", "1.5 ", "0x1 ",
					     "--1 ", "1\t1 ", "-896 1 ", "-897 ", "-895 1 1 ", "-895 1 -1 ",
					     "17592186044417 ", "17592186044416 1 ", "99999999999999999999 ",
					     "-99999999999999999999 " };
	json_t *many = json_array();

	for (size_t i = 0; i < N_ELEMENTS(cells); i++)
		assert_refused(json_pack("[[f, f, s]]", 1., 1., cells[i]));
	for (int i = 0; i <= INTERVALS_MAX; i++)
		json_array_append_new(many, json_pack("[f, f, s]", 1. + i, 1., ""));
	assert_refused(many);
	assert_refused(json_object());
	assert_refused(json_pack("[i]", 1));
	assert_refused(json_pack("[[f, f]]", 1., 1.));
	assert_refused(json_pack("[[f, f, i]]", 1., 1., 1));
	assert_refused(json_pack("[[f, f, s]]", 0., 1., ""));
	assert_refused(json_pack("[[f, f, s]]", 1., -1., ""));
	assert_refused(json_pack("[[f, f, s]]", 1e31, 1., ""));
	assert_refused(json_pack("[[s, f, s]]", "1", 1., ""));
	/* Times that do not rise would make an interval of no length. */
	assert_refused(json_pack("[[f, f, s], [f, f, s]]", 1., 1., "", 1., 1., ""));
}

TEST_EACH(set_up, tear_down)
