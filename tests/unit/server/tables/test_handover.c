/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/tables/handover.c: what several threads put, one takes, in order and within the limit. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tls/tls_io.h"
#include "server/tables/handover.h"

#define THREADS 4
#define ROUNDS 5000

static const struct frame_control stats = { .what = CONTROL_STATS }, info = { .what = CONTROL_INFO };
static struct handover_queue queue;
static struct ev_loop *loop;

/* Puts a connection from `peer`; there is no TLS in it. */
static int put(const struct addr *peer)
{
	struct tls_io io;

	tls_io_init(&io, loop, NULL, NULL, NULL, NULL);
	return handover_put(&queue, &io, peer, &stats, UINT32_MAX);
}

static void numbered(struct addr *a, unsigned thread, unsigned n)
{
	char text[20];

	snprintf(text, sizeof(text), "127.0.0.%u", thread);
	assert_int_equal(addr_parse(text, (uint16_t)n, a), 0);
}

static void *put_many(void *arg)
{
	struct addr a;

	numbered(&a, (unsigned)(uintptr_t)arg, 0);
	for (uint16_t n = 1; n <= ROUNDS; n++) {
		addr_set_port(&a, n);
		while (put(&a))
			;
	}
	return NULL;
}

static unsigned thread_of(const struct handover *h)
{
	char text[ADDR_TEXT_MAX];

	return (unsigned)(addr_host_text(&h->peer, text)[8] - '0');
}

TEST(handover__several_threads__each_ones_in_order_and_never_too_many)
{
	pthread_t threads[THREADS];
	unsigned last[THREADS] = { 0 }, taken = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
	while (taken < THREADS * ROUNDS) {
		struct handover *next, *h = handover_take(&queue);
		unsigned n = 0;

		for (; h; h = next) {
			next = h->next;
			assert_int_equal(addr_port(&h->peer), ++last[thread_of(h)]);
			handover_session_ended(&queue, h->seat);
			free(h);
			n++;
		}
		taken += n;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_null(handover_take(&queue));
	assert_int_equal(handover_sessions(&queue), 0);
}

static void end_all(void)
{
	struct handover *next, *h = handover_take(&queue);

	for (; h; h = next) {
		next = h->next;
		handover_session_ended(&queue, h->seat);
		free(h);
	}
}

TEST(handover__limit_reached__refused_until_a_session_ends)
{
	struct addr a[CONTROL_SESSIONS_SEATS + 1];
	struct handover *h, *rest;

	for (unsigned i = 0; i < CONTROL_SESSIONS_SEATS + 1; i++) {
		assert_int_equal(addr_parse("10.0.0.0", 1, &a[i]), 0);
		((struct sockaddr_in *)&a[i].ss)->sin_addr.s_addr = htonl(0x0a000000 + i);
	}
	for (uint32_t i = 0; i < CONTROL_SESSIONS_SEATS; i++)
		assert_int_equal(put(&a[i]), 0);
	assert_int_equal(put(&a[CONTROL_SESSIONS_SEATS]), -EBUSY);
	/* Taken is not ended. */
	h = handover_take(&queue);
	assert_int_equal(put(&a[CONTROL_SESSIONS_SEATS]), -EBUSY);
	assert_int_equal(handover_sessions(&queue), CONTROL_SESSIONS_SEATS);
	rest = h->next;
	handover_session_ended(&queue, h->seat);
	assert_int_equal(put(&a[CONTROL_SESSIONS_SEATS]), 0);
	assert_int_equal(put(&a[0]), -EBUSY);
	end_all();
	free(h);
	for (; rest; rest = h) {
		h = rest->next;
		handover_session_ended(&queue, rest->seat);
		free(rest);
	}
	assert_int_equal(handover_sessions(&queue), 0);
}

TEST(handover__one_address_has_all_it_may__others_get_one_each)
{
	struct addr greedy, other;

	numbered(&greedy, 1, 1);
	for (uint32_t i = 0; i < CONTROL_SESSIONS_MAX - CONTROL_SESSIONS_RESERVED; i++)
		assert_int_equal(put(&greedy), 0);
	assert_int_equal(put(&greedy), -EBUSY);
	for (unsigned i = 0; i < CONTROL_SESSIONS_RESERVED / 4; i++) {
		numbered(&other, 2 + i, 1);
		assert_int_equal(put(&other), 0);
		assert_int_equal(put(&other), -EBUSY);
	}
	end_all();
}

TEST(handover__limit_of_an_address__holds_for_each)
{
	struct addr a, b;
	struct tls_io io;

	numbered(&a, 1, 1);
	numbered(&b, 2, 1);
	tls_io_init(&io, loop, NULL, NULL, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(handover_put(&queue, &io, &a, &stats, 3), 0);
		assert_int_equal(handover_put(&queue, &io, &b, &info, 3), 0);
	}
	assert_int_equal(handover_put(&queue, &io, &a, &stats, 3), -EBUSY);
	assert_int_equal(handover_sessions(&queue), 6);
	end_all();
}

static int set_up(void **state)
{
	(void)state;
	loop = ev_loop_new(EVFLAG_AUTO);
	return loop == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	ev_loop_destroy(loop);
	return 0;
}

TEST_GROUP(set_up, tear_down)
