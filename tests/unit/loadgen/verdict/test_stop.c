/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/verdict/breaking.c, stop_judge_step: after which step the ramp ends, and the stated reason. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/wire/frame.h"
#include "loadgen/measurement/step.h"
#include "loadgen/verdict/breaking.h"
#include "loadgen/worker/worker.h"

const struct worker_stats *worker_stats(const struct worker *w)
{
	fail_msg("asks a worker (%p)", (const void *)w);
	return NULL;
}

static struct step *s;
static char text[256];

static int set_up(void **state)
{
	(void)state;
	strcpy(text, "old");
	return step_new(1000, 64, 1, &s);
}

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	return 0;
}

static void count_failures(enum stage stage, enum fail_kind kind, int code, int n)
{
	const struct fail f = { .stage = stage, .kind = kind, .code = code };

	while (n--)
		fail_table_count(&s->failures, &f);
}

static enum stop_reason judge(uint32_t held)
{
	s->connected_held = held;
	return stop_judge_step(s, text, sizeof(text));
}

TEST(judge__host_lost_and_the_others_held_theirs__goes_on)
{
	s->hosts.host_lost = true;
	s->hosts.clients = s->target / 2;
	assert_int_equal(judge(s->target / 2), STOP_NOT);
	assert_int_equal(judge(s->target / 2 - s->target / 100 - 1), STOP_ERROR_RATE);
	s->hosts.host_lost = false;
	assert_int_equal(judge(s->target / 2), STOP_ERROR_RATE);
}

TEST(names__every_reason__its_own)
{
	for (int i = 0; i < STOP_N; i++) {
		assert_non_null(stop_reason_names[i]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(stop_reason_names[i], stop_reason_names[k]);
	}
	assert_string_equal(stop_reason_names[STOP_ERROR_RATE], "error_rate");
	assert_string_equal(stop_reason_names[STOP_RESOURCE_EXHAUSTED], "resource_exhausted");
}

TEST(judge__one_percent_lost__goes_on)
{
	count_failures(STAGE_TCP_CONNECT, FAIL_ERRNO, ENOMEM, 10);
	assert_int_equal(judge(1000), STOP_NOT);
	assert_int_equal(judge(990), STOP_NOT);
	assert_string_equal(text, "");
	assert_int_not_equal(judge(989), STOP_NOT);
}

TEST(judge__more_lost__most_frequent_failure_named)
{
	count_failures(STAGE_TCP_CONNECT, FAIL_TIMEOUT, 0, 3);
	count_failures(STAGE_TRAFFIC, FAIL_CLOSED, 0, 17);
	assert_int_equal(judge(980), STOP_ERROR_RATE);
	assert_int_equal(strncmp(text, "1000 clients: 20 not held; closed_by_peer at traffic: ", 54), 0);
}

TEST(judge__lost_without_a_failure__still_stops)
{
	assert_int_equal(judge(0), STOP_ERROR_RATE);
	assert_string_equal(text, "1000 clients: 1000 of them were not held");
}

TEST(judge__step_timeout__stops_even_if_enough_are_held)
{
	s->step_timeout = true;
	assert_int_equal(judge(995), STOP_STEP_TIMEOUT);
	count_failures(STAGE_TCP_CONNECT, FAIL_TIMEOUT, 0, 1);
	assert_int_equal(judge(500), STOP_STEP_TIMEOUT);
}

TEST(judge__a_resource_used_up__that_is_the_reason)
{
	static const struct { enum fail_kind kind; int code; enum stop_reason reason; } cases[] = {
		{ FAIL_ERRNO, ENOMEM, STOP_RESOURCE_EXHAUSTED }, { FAIL_ERRNO, EMFILE, STOP_RESOURCE_EXHAUSTED },
		{ FAIL_ERRNO, EAGAIN, STOP_RESOURCE_EXHAUSTED }, { FAIL_ERRNO, ENOSPC, STOP_RESOURCE_EXHAUSTED },
		{ FAIL_ERRNO, EADDRNOTAVAIL, STOP_RESOURCE_EXHAUSTED },
		{ FAIL_REFUSED, REFUSE_NO_RESOURCES, STOP_RESOURCE_EXHAUSTED },
		{ FAIL_ERRNO, ECONNREFUSED, STOP_ERROR_RATE }, { FAIL_REFUSED, REFUSE_BAD_HMAC, STOP_ERROR_RATE },
		{ FAIL_TLS, ENOMEM, STOP_ERROR_RATE },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		fail_table_reset(&s->failures);
		/* More frequent failures must not hide the one that decides. */
		count_failures(STAGE_FIRST_REPLY, FAIL_TIMEOUT, 0, 100);
		count_failures(STAGE_QP_SETUP, cases[i].kind, cases[i].code, 1);
		assert_int_equal(judge(800), cases[i].reason);
	}
}

TEST_EACH(set_up, tear_down)
