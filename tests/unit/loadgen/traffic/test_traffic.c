/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/traffic/traffic.c: whose turn it is with --total-inflight. */
#include "tests/unit/helpers/unit.h"

#include "client/client.h"
#include "common/rdma/ep.h"
#include "loadgen/traffic/traffic.h"

#define CLIENTS 4

/* In the place of the endpoint: nothing is deferred, as no batch of completions is handled. */
void ep_hold(struct ep *ep)
{
	(void)ep;
}

void ep_unhold(struct ep *ep)
{
	(void)ep;
}

bool ep_is_held(const struct ep *ep)
{
	(void)ep;
	return false;
}

uint64_t ep_batch(const struct ep *ep)
{
	(void)ep;
	return 0;
}

void ep_defer(struct ep *ep, struct ep_deferred *d)
{
	(void)ep;
	fail_msg("%p deferred", (void *)d);
}

void client_close(struct client_conn *c)
{
	(void)c;
}

static void start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	assert_int_equal(wc->state, WCLIENT_LIVE);
	while (n--)
		traffic_begin(t, wc, stream);
}

static const struct workload workload = { .streams = 1, .start = start };
static struct loadgen_config cfg;
static struct worker_stats stats;
static struct traffic traffic;

static void set_up(uint64_t total, uint64_t inflight, uint32_t active, uint32_t before, uint32_t active_of_all)
{
	cfg = (struct loadgen_config){ .inflight = inflight, .total_inflight = total, .wl = &workload };
	traffic = (struct traffic){ .cfg = &cfg, .workload = &workload, .stats = &stats, .n_workers = 1,
				    .n_clients = CLIENTS };
	assert_int_equal(traffic_init(&traffic), 0);
	for (uint32_t i = 0; i < CLIENTS; i++)
		traffic.clients[i].state = WCLIENT_LIVE;
	traffic_begin_step(&traffic, 64, active, before, active_of_all, 0);
	traffic.on = true;
	for (uint32_t i = 0; i < CLIENTS; i++)
		traffic_start_client(&traffic.clients[i]);
}

/* Checks how many operations each client has in flight. */
static void assert_in_flight(int a, int b, int c, int d)
{
	const int expected[CLIENTS] = { a, b, c, d };

	for (uint32_t i = 0; i < CLIENTS; i++) {
		const struct stream *s = &traffic.clients[i].streams[0];

		assert_int_equal(s->begun - s->done, expected[i]);
	}
}

static void end_one(uint32_t client)
{
	traffic_end(&traffic, &traffic.clients[client], 0, 1);
}

TEST(total__more_than_the_clients__dealt_in_turn)
{
	set_up(5, 8, CLIENTS, 0, CLIENTS);
	assert_in_flight(2, 1, 1, 1);
	end_one(0);
	assert_in_flight(1, 2, 1, 1);
	end_one(1);
	assert_in_flight(1, 1, 2, 1);
	traffic_release(&traffic);
}

TEST(total__more_than_they_may_have__inflight_of_each)
{
	set_up(100, 2, 3, 0, 3);
	assert_in_flight(2, 2, 2, 0);
	traffic_release(&traffic);
}

TEST(total__other_workers_have_clients_too__a_part_but_at_least_one)
{
	/* The three workers' parts of 8 are 2, 3 and 3. */
	set_up(8, 8, CLIENTS, 0, 3 * CLIENTS);
	assert_in_flight(1, 1, 0, 0);
	traffic_release(&traffic);
	set_up(8, 8, CLIENTS, CLIENTS, 3 * CLIENTS);
	assert_in_flight(1, 1, 1, 0);
	traffic_release(&traffic);
	set_up(8, 8, CLIENTS, 2 * CLIENTS, 3 * CLIENTS);
	assert_in_flight(1, 1, 1, 0);
	traffic_release(&traffic);
	set_up(1, 8, CLIENTS, 0, 3 * CLIENTS);
	assert_in_flight(1, 0, 0, 0);
	traffic_release(&traffic);
}

TEST(total__client_leaves__the_next_begins_at_once)
{
	set_up(1, 8, CLIENTS, 0, CLIENTS);
	traffic.clients[0].state = WCLIENT_LEAVING;
	end_one(0);
	assert_in_flight(0, 1, 0, 0);
	traffic_release(&traffic);
}

TEST(total__client_lost_with_operations_in_flight__the_others_begin_as_many)
{
	set_up(2, 8, CLIENTS, 0, CLIENTS);
	assert_in_flight(1, 1, 0, 0);
	traffic.clients[0].state = traffic.clients[1].state = WCLIENT_LOST;
	traffic_reset(&traffic.clients[0]);
	traffic_reset(&traffic.clients[1]);
	assert_in_flight(0, 0, 1, 1);
	/* Nobody is left. */
	traffic.clients[2].state = traffic.clients[3].state = WCLIENT_LOST;
	traffic_reset(&traffic.clients[2]);
	traffic_reset(&traffic.clients[3]);
	assert_in_flight(0, 0, 0, 0);
	traffic_release(&traffic);
}
