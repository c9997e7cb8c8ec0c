/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/traffic/open_loop.c: when operations begin, by the test's own clock. */
#include "tests/unit/helpers/unit.h"

#include <ev.h>

#include "common/base/clock.h"
#include "loadgen/traffic/open_loop.h"
#include "loadgen/traffic/traffic.h"

#define BEYOND_DOUBLES ((UINT64_C(1) << 53) + 3)	/* ns; as a double, it becomes the next whole number */

static uint64_t clock_ns;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ (time_t)(clock_ns / NS_PER_S), (long)(clock_ns % NS_PER_S) };
	return 0;
}

static void start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n--)
		traffic_begin(t, wc, stream);
}

static const struct workload workload = { .streams = 1, .start = start };
static const struct loadgen_config cfg = { .inflight = 3, .wl = &workload };

/* One client, with one operation per microsecond. */
static struct stream_times ring[4];
static struct wclient client;
static struct traffic traffic;
static struct ev_loop *loop;

static int set_up(void **state)
{
	char err[256];

	(void)state;
	clock_ns = BEYOND_DOUBLES;
	client = (struct wclient){ .traffic = &traffic, .state = WCLIENT_LIVE, .streams = { { .times = ring } } };
	traffic = (struct traffic){ .cfg = &cfg, .workload = &workload, .n_workers = 1, .clients = &client, .n_clients = 1,
				    .ring_mask = N_ELEMENTS(ring) - 1,
				    .active_of_all = 1, .active = 1, .rate = 1000000, .on = true, .allowed = UINT64_MAX };
	loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(loop);
	return open_loop_new(&traffic, loop, &traffic.open_loop, err, sizeof(err));
}

static int tear_down(void **state)
{
	(void)state;
	ev_loop_destroy(loop);
	open_loop_free(traffic.open_loop);
	return 0;
}

TEST(begin__a_machine_up_for_104_days__nothing_before_it_is_due)
{
	open_loop_start_client(traffic.open_loop, &client);
	for (int i = 0; i < 5000; i++) {
		struct stream *s = &client.streams[0];

		/* Each operation ends at once. */
		for (; s->done < s->begun; s->done++) {
			const struct stream_times *at = traffic_times(&traffic, s, s->done);

			assert_true(at->due_ns >= BEYOND_DOUBLES && at->due_ns <= at->sent_ns && at->sent_ns <= clock_ns);
		}
		clock_ns++;
		open_loop_begin(traffic.open_loop, &client);
	}
	assert_in_range(client.streams[0].begun, 5, 6);
}

TEST_EACH(set_up, tear_down)
