/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/pulse.c. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/worker/pulse.h"

#define BEAT (100 * NS_PER_MS)

static struct pulse p;
static uint64_t now, busy;

static void start(void)
{
	now = 7 * NS_PER_S;
	busy = 3 * NS_PER_S;
	pulse_start(&p, BEAT, &(struct pulse_moment){ now, busy, 40, 0 });
}

static void beat_after(uint64_t ns, uint64_t ended, uint64_t in_flight)
{
	now += ns;
	pulse_beat(&p, &(struct pulse_moment){ now, busy, ended, in_flight });
}

TEST(beats__in_time_and_busy__nothing_found)
{
	start();
	for (uint64_t i = 1; i <= 100; i++)
		beat_after(i % 3 ? BEAT : BEAT / 2, 40 + i, 8);
	assert_int_equal(p.late_ns, 0);
	assert_int_equal(p.stall_ns, 0);
}

TEST(beat__late__the_latest_is_kept)
{
	start();
	beat_after(BEAT + 30 * NS_PER_MS, 41, 1);
	beat_after(97 * NS_PER_S, 42, 1);
	beat_after(BEAT + 50 * NS_PER_MS, 43, 1);
	assert_int_equal(p.late_ns, 97 * NS_PER_S - BEAT);
	assert_int_equal(p.stall_ns, 0);
}

/* A thread with much to do is late, but it was running all the time. */
TEST(beat__late_and_busy__no_hole)
{
	start();
	busy += 3 * NS_PER_S;
	beat_after(BEAT + 3 * NS_PER_S, 41, 1);
	assert_int_equal(p.late_ns, 0);
	busy += NS_PER_S;
	beat_after(BEAT + 5 * NS_PER_S, 42, 1);
	assert_int_equal(p.late_ns, 4 * NS_PER_S);
}

TEST(replies__none_for_a_while__the_longest_while_is_kept)
{
	start();
	for (int i = 0; i < 30; i++)
		beat_after(BEAT, 40, 4);
	assert_int_equal(p.stall_ns, 30 * BEAT);
	beat_after(BEAT, 41, 4);
	for (int i = 0; i < 10; i++)
		beat_after(BEAT, 41, 4);
	assert_int_equal(p.stall_ns, 30 * BEAT);
	assert_int_equal(p.late_ns, 0);
}

TEST(replies__none_expected__no_stall)
{
	start();
	for (int i = 0; i < 30; i++)
		beat_after(BEAT, 40, 0);
	assert_int_equal(p.stall_ns, 0);
	/* The stall counts from the moment at which the operation may have begun. */
	beat_after(BEAT, 40, 1);
	assert_int_equal(p.stall_ns, BEAT);
}

/* A sleeping thread cannot know that nothing came. */
TEST(hole__while_operations_are_in_flight__no_stall_of_the_server)
{
	start();
	beat_after(BEAT, 41, 1);
	beat_after(60 * NS_PER_S, 41, 1);
	assert_int_equal(p.stall_ns, 0);
	beat_after(BEAT, 41, 1);
	assert_int_equal(p.stall_ns, BEAT);
	assert_int_equal(p.late_ns, 60 * NS_PER_S - BEAT);
}

TEST(stopped__beats__nothing_until_it_is_started_again)
{
	start();
	beat_after(BEAT + NS_PER_S, 41, 1);
	pulse_stop(&p);
	assert_false(pulse_is_on(&p));
	beat_after(50 * NS_PER_S, 41, 1);
	assert_int_equal(p.late_ns, NS_PER_S);
	start();
	assert_true(pulse_is_on(&p));
	assert_int_equal(p.late_ns, 0);
}
