/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/series.c: which samples are kept, and what follows from two of them. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/measurement/series.h"

static struct series *series;
static struct sample sample;

static int set_up(void **state)
{
	(void)state;
	memset(&sample, 0, sizeof(sample));
	return series_new(&series);
}

static int tear_down(void **state)
{
	(void)state;
	series_free(series);
	series = NULL;
	return 0;
}

/* Adds one sample per second: 0.5 s of CPU time in each, with the machine a quarter busy. */
static void add(unsigned i)
{
	sample.taken_ns = (i + 7) * UINT64_C(1000000000);
	sample.v[SAMPLE_CPU_USER_S] = 100 + 0.3 * i;
	sample.v[SAMPLE_CPU_SYSTEM_S] = 50 + 0.2 * i;
	sample.v[SAMPLE_MACHINE_SOFTIRQ_S] = 0.5 * i;
	sample.v[SAMPLE_MACHINE_IDLE_S] = 1000 + 1.5 * i;
	series_add(series, SIDE_SERVER, i, &sample);
}

static double at(const json_t *o, const char *path, size_t i)
{
	const json_t *v = json_array_get(json_at(o, path), i);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

TEST(cpus__between_the_newest_two__unknown_before)
{
	assert_true(isnan(series_cpus(series, SIDE_SERVER)));
	add(0);
	assert_true(isnan(series_cpus(series, SIDE_SERVER)));
	add(1);
	assert_true(fabs(series_cpus(series, SIDE_SERVER) - 0.5) < 1e-9);
	assert_true(isnan(series_cpus(series, SIDE_GENERATOR)));
}

TEST(peak__rise_and_fall__the_most_and_of_free_memory_the_least)
{
	static const double fds[] = { 5, 700, 20 }, available[] = { 900, 100, 800 };
	const struct series_peak *p = series_peak(series, SIDE_SERVER);
	json_t *o = series_peak_json(p);

	assert_true(json_is_null(o));
	json_decref(o);
	for (unsigned i = 0; i < 3; i++) {
		sample.v[SAMPLE_FDS] = fds[i];
		sample.v[SAMPLE_AVAILABLE_BYTES] = available[i];
		sample.v[SAMPLE_QPS] = NAN;
		add(i);
	}
	o = series_peak_json(p);
	assert_true(json_number_at(o, "samples") == 3);
	assert_true(json_number_at(o, "fds") == 700);
	assert_true(json_number_at(o, "machine_available_least_bytes") == 100);
	assert_true(fabs(json_number_at(o, "cpus") - 0.5) < 1e-9);
	assert_true(fabs(json_number_at(o, "machine_busy_ratio") - 0.25) < 1e-9);
	assert_true(json_is_null(json_object_get(o, "qps")));
	assert_null(json_object_get(o, "cpu_user_s"));
	json_decref(o);
	series_begin_step(series);
	add(3);
	assert_true(p->samples == 1);
	assert_true(p->v[SAMPLE_FDS] == 20);
	/* The first sample of a step is compared with the one before it. */
	assert_true(fabs(p->cpus - 0.5) < 1e-9);
}

/* A smaller counter means another process. */
TEST(cpus__another_server__unknown)
{
	add(5);
	add(6);
	sample.taken_ns += 1000000000;
	sample.v[SAMPLE_CPU_USER_S] = 0;
	series_add(series, SIDE_SERVER, 7, &sample);
	assert_true(isnan(series_cpus(series, SIDE_SERVER)));
}

TEST(json__columns__counters_from_the_first_known)
{
	json_auto_t *o = NULL;

	sample.v[SAMPLE_COMPLETIONS] = NAN;
	sample.v[SAMPLE_FDS] = 11;
	add(0);
	sample.v[SAMPLE_COMPLETIONS] = 1000;
	add(1);
	sample.v[SAMPLE_COMPLETIONS] = 1500;
	sample.v[SAMPLE_FDS] = 12;
	add(2);
	series_phase(series, 0.5, "connecting");
	o = series_json(series, 1);
	assert_true(json_is_null(json_at(o, "generator")));
	assert_true(at(o, "server.t_s", 2) == 2);
	assert_true(at(o, "server.clock_s", 0) == 0 && at(o, "server.clock_s", 2) == 2);
	assert_true(at(o, "server.cpu_user_s", 0) == 0);
	assert_true(fabs(at(o, "server.cpu_user_s", 2) - 0.6) < 1e-9);
	assert_true(json_is_null(json_array_get(json_at(o, "server.completions"), 0)));
	assert_true(at(o, "server.completions", 1) == 0 && at(o, "server.completions", 2) == 500);
	assert_true(at(o, "server.fds", 0) == 11 && at(o, "server.fds", 2) == 12);
	assert_true(at(o, "phases.t_s", 0) == 0.5);
	for (int f = 0; f < SAMPLE_N; f++)
		assert_int_equal(json_array_size(json_object_get(json_at(o, "server"), sample_names[f])), 3);
}

static void thread(uint32_t i, const char *name, double user_s)
{
	snprintf(sample.thread[i].name, sizeof(sample.thread[i].name), "%s", name);
	sample.thread[i].user_s = user_s;
	sample.thread[i].system_s = NAN;
}

TEST(json__threads_come_and_go__a_column_for_each_name)
{
	json_t *o, *threads;

	sample.n_threads = 3;
	thread(0, "main", 1);
	thread(1, "same", 2);
	thread(2, "same", 3);
	add(0);
	sample.n_threads = 2;
	thread(0, "same", 5);
	thread(1, "new", 7);
	add(1);
	o = series_json(series, 1);
	threads = json_at(o, "server.by_thread");
	assert_int_equal(json_array_size(threads), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(json_array_size(json_at(json_array_get(threads, i), "cpu_user_s")), 2);
	assert_string_equal(json_text_at(json_array_get(threads, 1), "name"), "same");
	assert_true(at(json_array_get(threads, 1), "cpu_user_s", 1) == 3);
	assert_true(json_is_null(json_array_get(json_at(json_array_get(threads, 2), "cpu_user_s"), 1)));
	assert_true(at(json_array_get(threads, 3), "cpu_user_s", 1) == 0);
	json_decref(o);
}

/* A hostile server may send more names than there are columns. */
TEST(json__thousands_of_thread_names__bounded)
{
	char name[16];
	json_auto_t *o = NULL;

	sample.n_threads = SAMPLE_THREADS_MAX;
	for (unsigned i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < SAMPLE_THREADS_MAX; k++) {
			snprintf(name, sizeof(name), "%u %u", i, k);
			thread(k, name, 1);
		}
		add(i);
	}
	o = series_json(series, 1);
	assert_int_equal(json_array_size(json_at(o, "server.by_thread")), SAMPLE_THREADS_MAX);
}

TEST(json__a_long_run__bounded_and_evenly_thinned)
{
	json_auto_t *o = NULL;
	size_t n;

	for (unsigned i = 0; i < 5000; i++)
		add(i);
	o = series_json(series, 1);
	n = json_array_size(json_at(o, "server.t_s"));
	assert_in_range(n, SERIES_MAX / 2, SERIES_MAX);
	assert_true(at(o, "server.t_s", 0) == 0);
	for (size_t i = 0; i < n; i++)
		assert_true(at(o, "server.t_s", i) == 8. * (double)i);
	assert_true(at(o, "server.t_s", n - 1) >= 4990);
	assert_true(json_number_at(o, "server.samples") == 5000);
}

TEST_EACH(set_up, tear_down)
