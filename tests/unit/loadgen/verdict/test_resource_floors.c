/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/verdict/resource_floors.c: when a machine's sample ends the ramp, and the text for that. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "loadgen/verdict/resource_floors.h"

#define GIB 1073741824.0
#define S UINT64_C(1000000000)

static struct floors f;
static struct sample now;
static char text[256];

static int set_up(void **state)
{
	(void)state;
	floors_init(&f, 5, 0, false);
	floors_set_limits(&f, FLOORS_SERVER, 4 * GIB, NAN);
	floors_set_limits(&f, FLOORS_GENERATOR, 8 * GIB, NAN);
	for (int i = 0; i < SAMPLE_N; i++)
		now.v[i] = NAN;
	return 0;
}

static enum stop_reason at_memory(enum floors_host host, double available)
{
	now.v[SAMPLE_AVAILABLE_BYTES] = available;
	return floors_judge(&f, host, &now, text, sizeof(text));
}

TEST(memory__at_the_floor__goes_on)
{
	assert_int_equal(at_memory(FLOORS_SERVER, 0.05 * 4 * GIB), STOP_NOT);
	assert_string_equal(text, "");
}

TEST(memory__less__stops_and_says_whose_and_how_much)
{
	assert_int_equal(at_memory(FLOORS_SERVER, 0.25 * GIB / 2), STOP_MEMORY_FLOOR);
	assert_string_equal(text, "the server's machine has 3.1 % of its memory left, 128 of 4096 MiB: less than "
			    "--memory-floor 5 %");
	assert_int_equal(at_memory(FLOORS_GENERATOR, 0.25 * GIB), STOP_MEMORY_FLOOR);
	assert_non_null(strstr(text, "the generator's machine has 3.1 %"));
}

TEST(memory__each_host_against_its_own)
{
	/* 6 % of the server's memory, 3 % of the generator's. */
	assert_int_equal(at_memory(FLOORS_SERVER, 0.24 * GIB), STOP_NOT);
	assert_int_equal(at_memory(FLOORS_GENERATOR, 0.24 * GIB), STOP_MEMORY_FLOOR);
}

TEST(memory__one_machine__said_so)
{
	f.same_machine = true;
	assert_int_equal(at_memory(FLOORS_GENERATOR, 0), STOP_MEMORY_FLOOR);
	assert_non_null(strstr(text, "the machine of server and generator has 0.0 %"));
}

TEST(memory__unknown__not_judged)
{
	assert_int_equal(at_memory(FLOORS_SERVER, NAN), STOP_NOT);
	floors_set_limits(&f, FLOORS_SERVER, NAN, NAN);
	assert_int_equal(at_memory(FLOORS_SERVER, 0), STOP_NOT);
}

TEST(memory_was_short__below_8_percent__says_whose_and_how_much)
{
	assert_false(floors_memory_was_short(&f, FLOORS_SERVER, 0.08 * 4 * GIB, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_true(floors_memory_was_short(&f, FLOORS_SERVER, 0.25 * GIB / 2, text, sizeof(text)));
	assert_string_equal(text, "the server's machine had only 3.1 % of its memory left, 128 of 4096 MiB");
	assert_false(floors_memory_was_short(&f, FLOORS_SERVER, NAN, text, sizeof(text)));
}

TEST(floors__zero__off)
{
	floors_init(&f, 0, 0, false);
	floors_set_limits(&f, FLOORS_SERVER, 4 * GIB, NAN);
	assert_int_equal(at_memory(FLOORS_SERVER, 0), STOP_NOT);
}

/* Judges CPU times of two CPUs that were idle for `idle_s` and busy for `busy_s` since the machine started. */
static enum stop_reason at_cpu(uint64_t s, double busy_s, double idle_s)
{
	now.taken_ns = 100 * S + s * S;
	now.v[SAMPLE_MACHINE_USER_S] = now.v[SAMPLE_MACHINE_SYSTEM_S] = busy_s / 4;
	now.v[SAMPLE_MACHINE_SOFTIRQ_S] = now.v[SAMPLE_MACHINE_STEAL_S] = busy_s / 4;
	now.v[SAMPLE_MACHINE_IDLE_S] = idle_s;
	return floors_judge(&f, FLOORS_GENERATOR, &now, text, sizeof(text));
}

TEST(cpu__busy_for_a_moment__goes_on)
{
	f.cpu_ratio = 0.1;
	assert_int_equal(at_cpu(0, 100, 500), STOP_NOT);
	assert_int_equal(at_cpu(1, 102, 500), STOP_NOT);	/* not idle at all, but for only a second */
	assert_int_equal(at_cpu(4, 104, 504), STOP_NOT);
	assert_int_equal(at_cpu(5, 104, 506), STOP_NOT);
}

TEST(cpu__busy_throughout__stops)
{
	f.cpu_ratio = 0.1;
	assert_int_equal(at_cpu(0, 100, 500), STOP_NOT);
	assert_int_equal(at_cpu(5, 109.5, 500.5), STOP_CPU_FLOOR);
	assert_string_equal(text,
			    "the generator's machine was idle for 5.0 % of its CPU time: less than --cpu-floor 10 %");
	/* A new interval begins here, which is idle again. */
	assert_int_equal(at_cpu(10, 109.5, 510.5), STOP_NOT);
}

TEST(cpu__unknown_or_backwards__not_judged)
{
	f.cpu_ratio = 0.5;
	assert_int_equal(at_cpu(0, NAN, 500), STOP_NOT);
	assert_int_equal(at_cpu(5, NAN, 500), STOP_NOT);
	assert_int_equal(at_cpu(10, 100, 500), STOP_NOT);
	/* The figures of another machine, because the server is another one. */
	assert_int_equal(at_cpu(1, 10, 5), STOP_NOT);
	assert_int_equal(at_cpu(6, 11, 14), STOP_NOT);
}

TEST_EACH(set_up, NULL)
