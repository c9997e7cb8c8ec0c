/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/mailbox.c: no order is lost, whichever thread is faster. */
#include "tests/unit/helpers/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "loadgen/worker/mailbox.h"

#define ORDERS 1000

static struct mailbox mailbox;

static int set_up(void **state)
{
	(void)state;
	mailbox_init(&mailbox);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mailbox_release(&mailbox);
	return 0;
}

static bool put(uint64_t number)
{
	struct order o = { .what = ORDER_STAGE, .number = number, .task.bytes = 7 * number };

	return mailbox_put(&mailbox, &o);
}

TEST(take__several__in_their_sequence_with_their_tasks)
{
	struct order out[MAILBOX_MAX];

	assert_int_equal(mailbox_take(&mailbox, out), 0);
	for (uint64_t i = 1; i <= MAILBOX_MAX; i++)
		assert_true(put(i));
	assert_int_equal(mailbox_take(&mailbox, out), MAILBOX_MAX);
	for (uint64_t i = 0; i < MAILBOX_MAX; i++) {
		assert_int_equal(out[i].what, ORDER_STAGE);
		assert_int_equal(out[i].number, i + 1);
		assert_int_equal(out[i].task.bytes, 7 * (i + 1));
	}
	assert_int_equal(mailbox_take(&mailbox, out), 0);
}

static void *put_all(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= ORDERS; i++)
		if (!put(i))
			return (void *)(uintptr_t)i;
	return NULL;
}

/* Many more orders than there is room for, while the worker is busy with something else. */
TEST(put__full__waits_and_loses_none)
{
	struct order out[MAILBOX_MAX];
	uint64_t taken = 0;
	bool ended = false;
	pthread_t thread;
	void *lost;

	assert_int_equal(pthread_create(&thread, NULL, put_all, NULL), 0);
	for (;;) {
		bool all_put = ended;
		uint32_t n = mailbox_take(&mailbox, out);

		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(out[i].number, ++taken);
		if (all_put)
			break;
		ended = pthread_tryjoin_np(thread, &lost) == 0;
		sched_yield();
	}
	assert_int_equal(taken, ORDERS);
	assert_null(lost);
}

static atomic_bool refused;

static void *fill(void *arg)
{
	(void)arg;
	while (put(1))
		;
	atomic_store(&refused, true);
	return NULL;
}

/* A broken worker takes no orders, and nobody waits for it. */
TEST(close__full__whoever_waits_is_told)
{
	pthread_t thread;

	atomic_store(&refused, false);
	assert_int_equal(pthread_create(&thread, NULL, fill, NULL), 0);
	mailbox_close(&mailbox);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&refused));
	assert_false(put(2));
}

TEST_EACH(set_up, tear_down)
