/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/tuning.c: what the options of the data path mean, and where threads run. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rdma/tuning.h"

static struct tuning t;
static char err[256];

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	tuning_defaults(&t);
	err[0] = '\0';
	return 0;
}

TEST(inline__words_and_numbers__bytes)
{
	static const struct { const char *text; uint32_t bytes; } cases[] = {
		{ "auto", TUNING_INLINE_AUTO }, { "off", 0 }, { "0", 0 }, { "1", 1 }, { "512", 512 }, { "4096", 4096 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		t.inline_text = cases[i].text;
		assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
		assert_int_equal(t.inline_bytes, cases[i].bytes);
	}
}

TEST(inline__anything_else__refused_by_name)
{
	static const char *const bad[] = { "on", "-1", "4097", "64k", " 64", "1e3", "99999999999999999999" };

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		t.inline_text = bad[i];
		assert_int_equal(tuning_check(&t, err, sizeof(err)), -EINVAL);
		assert_says(err, "--inline: '");
		assert_says(err, bad[i]);
		assert_says(err, "allowed: auto, off");
	}
}

TEST(cpu_list__numbers_and_ranges__in_their_order)
{
	static const uint16_t expected[] = { 3, 0, 1, 2, 7 };

	t.cpu_list = "3,0-2,7";
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(t.n_cpus, N_ELEMENTS(expected));
	assert_memory_equal(t.cpus, expected, sizeof(expected));
	/* Checked again, it is the same. */
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(t.n_cpus, N_ELEMENTS(expected));
}

TEST(cpu_list__bad__refused_by_name)
{
	static const char *const bad[] = { "", ",", "1,", ",1", "a", "1-", "-1", "2-1", "1 ,2", "1024", "0-5000",
					   "1--2" };

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		t.cpu_list = bad[i];
		if (tuning_check(&t, err, sizeof(err)) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_says(err, "--cpu-list: '");
	}
}

TEST(mtu__names__as_verbs_have_them)
{
	static const enum ibv_mtu mtus[] = { 0, IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096 };

	for (t.path_mtu = 0; tuning_mtu_names[t.path_mtu]; t.path_mtu++)
		assert_int_equal(tuning_mtu(&t), mtus[t.path_mtu]);
	assert_int_equal(t.path_mtu, N_ELEMENTS(mtus));
}

TEST(ack_timeout__any__rounded_up_to_the_devices_steps)
{
	static const struct { uint64_t asked; uint8_t exponent; } cases[] = {
		{ NS_PER_MS, 8 }, { 67 * NS_PER_MS, 14 }, { 67108864, 14 }, { 67108865, 15 }, { 10 * NS_PER_S, 22 },
	};

	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(t.retry.ack_timeout, CM_ACK_TIMEOUT);
	assert_int_equal(t.retry.count, CM_RETRIES);
	t.retry_count = 3;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		t.ack_timeout_ns = cases[i].asked;
		assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
		assert_int_equal(t.retry.ack_timeout, cases[i].exponent);
		assert_int_equal(tuning_ack_timeout_ns(&t), UINT64_C(4096) << cases[i].exponent);
		assert_int_equal(t.retry.count, 3);
	}
}

TEST(rnr_timer__any__rounded_up_to_the_devices_times)
{
	static const struct { uint64_t asked; uint8_t code; } cases[] = {
		{ 10000, 1 }, { 10001, 2 }, { 5120000, 18 }, { 5 * NS_PER_MS, 18 }, { 491520000, 31 }, { 491520001, 0 },
		{ 655360000, 0 },
	};

	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(t.retry.rnr_timer_plus_1 - 1, CM_RNR_TIMER);
	assert_int_equal(t.retry.rnr_count_plus_1 - 1, CM_RNR_RETRIES);
	t.rnr_retry = 0;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		t.rnr_timer_ns = cases[i].asked;
		assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
		assert_int_equal(t.retry.rnr_timer_plus_1 - 1, cases[i].code);
		assert_true(cm_rnr_timer_ns(cases[i].code) >= cases[i].asked);
		assert_int_equal(t.retry.rnr_count_plus_1, 1);
	}
}

TEST(fabric__dscp__four_times_as_traffic_class)
{
	json_t *o;

	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_false(t.fabric.has_traffic_class || t.fabric.has_service_level || t.fabric.has_gid_index);
	o = tuning_json(&t);
	assert_true(json_is_null(json_object_get(o, "traffic_class")));
	assert_true(json_is_null(json_object_get(o, "gid_index")));
	json_decref(o);
	t.dscp = 46;
	t.service_level = 0;
	t.gid_index = 3;
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_true(t.fabric.has_traffic_class && t.fabric.has_service_level && t.fabric.has_gid_index);
	assert_int_equal(t.fabric.traffic_class, 184);
	o = tuning_json(&t);
	assert_int_equal(json_integer_value(json_object_get(o, "traffic_class")), 184);
	assert_int_equal(json_integer_value(json_object_get(o, "service_level")), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "gid_index")), 3);
	json_decref(o);
}

static void *tell_cpu(void *arg)
{
	*(int *)arg = sched_getcpu();
	return NULL;
}

TEST(thread__list_of_one_cpu__runs_there)
{
	cpu_set_t set;
	char text[16];
	pthread_t thread;
	int cpu = 0, ran = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	snprintf(text, sizeof(text), "%d", cpu);
	t.cpu_list = text;
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(tuning_start_thread(&t, "test", i, NULL, &thread, tell_cpu, &ran, err, sizeof(err)),
				 0);
		pthread_join(thread, NULL);
		assert_int_equal(ran, cpu);
	}
}

TEST(thread__cpu_that_is_not_there__einval_and_advice)
{
	pthread_t thread;
	int ran;

	t.cpu_list = "1023";
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(tuning_start_thread(&t, "test", 0, NULL, &thread, tell_cpu, &ran, err, sizeof(err)), -EINVAL);
	assert_says(err, "--cpu-list");
}

static void *tell_cpus(void *arg)
{
	return (void *)(intptr_t)sched_getaffinity(0, sizeof(cpu_set_t), arg);
}

static void thread_gets(const cpu_set_t *beside, const cpu_set_t *expected)
{
	pthread_t thread;
	cpu_set_t got;

	CPU_ZERO(&got);
	assert_int_equal(tuning_check(&t, err, sizeof(err)), 0);
	assert_int_equal(tuning_start_thread(&t, "test", 1, beside, &thread, tell_cpus, &got, err, sizeof(err)), 0);
	pthread_join(thread, NULL);
	assert_true(CPU_EQUAL(&got, expected));
}

TEST(thread__numa__cpus_beside_the_device_if_any_and_if_asked)
{
	cpu_set_t all, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	thread_gets(&one, &all);
	t.numa = TUNING_NUMA_AUTO;
	thread_gets(&one, &one);
	thread_gets(NULL, &all);
}

TEST_EACH(setup, NULL)
