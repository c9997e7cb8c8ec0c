/* Unit tests of server/shard/handover.c: what several threads put, one takes, in order and within the limit. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/tls/tls_io.h"
#include "server/shard/handover.h"

#define THREADS 4
#define ROUNDS 5000

static struct handover_queue queue;
static struct ev_loop *loop;

/* Puts a connection from `peer`; there is no TLS in it. */
static int put(const struct addr *peer)
{
	struct tls_io io;

	tls_io_init(&io, loop, NULL, NULL, NULL, NULL);
	return handover_put(&queue, &io, peer, CONTROL_STATS);
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

static void handover__several_threads__each_ones_in_order_and_never_too_many(void **state)
{
	pthread_t threads[THREADS];
	unsigned last[THREADS] = { 0 }, taken = 0;

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
	while (taken < THREADS * ROUNDS) {
		struct handover *next, *h = handover_take(&queue);
		unsigned n = 0;

		for (; h; h = next) {
			next = h->next;
			assert_int_equal(addr_port(&h->peer), ++last[thread_of(h)]);
			free(h);
			n++;
			handover_session_ended(&queue);
		}
		taken += n;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_null(handover_take(&queue));
	assert_int_equal(queue.sessions, 0);
}

static void handover__limit_reached__refused_until_a_session_ends(void **state)
{
	struct handover *next, *h;
	struct addr a;

	(void)state;
	numbered(&a, 1, 1);
	for (int i = 0; i < CONTROL_SESSIONS_MAX; i++)
		assert_int_equal(put(&a), 0);
	assert_int_equal(put(&a), -EBUSY);
	/* Taken is not ended. */
	h = handover_take(&queue);
	assert_int_equal(put(&a), -EBUSY);
	for (; h; h = next) {
		next = h->next;
		free(h);
		handover_session_ended(&queue);
	}
	assert_int_equal(put(&a), 0);
	h = handover_take(&queue);
	assert_int_equal(h->what, CONTROL_STATS);
	free(h);
	handover_session_ended(&queue);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handover__several_threads__each_ones_in_order_and_never_too_many),
		cmocka_unit_test(handover__limit_reached__refused_until_a_session_ends),
	};

	return cmocka_run_group_tests_name("server_handover", tests, set_up, tear_down);
}
