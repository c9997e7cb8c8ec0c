/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/probe.c: who is probed, when, and who is dropped. */
#include "tests/unit/helpers/unit.h"

#include "common/base/clock.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

#define SLICES 64

/* As many connection objects as an interval has slices. */
static int set_up(void **state)
{
	int ret = server_rig_init(state);

	srv.cfg.max_handshakes = SLICES - 4;
	return ret;
}

/* The timer itself is stopped: slices come when the test says so. */
static void start_without_probe(void)
{
	server_rig_start();
	ev_timer_stop(srv.shard->loop, &srv.shard->probe);
}

static void start_live(struct peer *p)
{
	start_without_probe();
	peer_go_live(p, 0);
}

static void probe_slice(void)
{
	ev_invoke(srv.shard->loop, &srv.shard->probe, EV_TIMER);
	ev_timer_stop(srv.shard->loop, &srv.shard->probe);
}

static void probe_interval(void)
{
	assert_int_equal(srv.cfg.shard_conns, SLICES);
	for (int i = 0; i < SLICES; i++)
		probe_slice();
}

static uint64_t probes(void)
{
	return counter_get(&srv.shard->stats.probes);
}

TEST(probe__silent_client__written_to_and_dropped_if_nothing_comes)
{
	struct peer p;
	struct conn *c;
	uint32_t n;

	start_live(&p);
	c = server_only(CONN_ST_LIVE);
	fake_posts_forget();
	for (unsigned i = 0; i < 3; i++) {
		/* First it was heard of, then it is probed and its host answers. */
		probe_interval();
		assert_int_equal(probes(), i);
		assert_int_equal(c->state, CONN_ST_LIVE);
		probe_interval();
		assert_int_equal(probes(), i + 1);
		assert_int_equal(fake_posts(&n)[n - 1].opcode, IBV_WR_RDMA_WRITE);
		assert_int_equal(n, i + 1);
		fake_complete_sends(p.qp, 1, IBV_WC_SUCCESS);
		server_turn();
		assert_true(c->acked);
	}
	probe_interval();
	probe_interval();
	fake_complete_sends(p.qp, 1, IBV_WC_RETRY_EXC_ERR);
	server_turn();
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR), 1);
	peer_leave(&p);
}

TEST(probe__still_under_way_after_an_interval__dropped)
{
	struct peer p;

	start_live(&p);
	for (int i = 0; i < 2; i++)
		probe_interval();
	assert_int_equal(probes(), 1);
	assert_int_equal(server_n(CONN_ST_LIVE), 1);
	probe_interval();
	assert_int_equal(probes(), 1);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_TIMEOUT, 0), 1);
	peer_leave(&p);
}

TEST(probe__client_that_talks__left_alone)
{
	struct peer p;

	start_live(&p);
	for (int i = 0; i < 5; i++) {
		assert_true(peer_message(&p, 64));
		server_turns(2);
		fake_complete_sends(p.qp, 1, IBV_WC_SUCCESS);
		server_turns(2);
		probe_interval();
	}
	assert_int_equal(probes(), 0);
	peer_leave(&p);
}

/* It sends, but its device takes nothing: its own messages are no sign that it does. */
TEST(probe__client_that_sends_and_does_not_receive__dropped)
{
	struct peer p;
	int intervals = 0;

	start_live(&p);
	for (; intervals < 10 && server_n(CONN_ST_LIVE); intervals++) {
		assert_true(peer_message(&p, 64));
		server_turns(2);
		probe_interval();
	}
	/* The interval it went live in, two of doubt, that of the probe. */
	assert_in_range(intervals, 3, 4);
	assert_int_equal(probes(), 1);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_NOT_RECEIVING), 1);
	peer_leave(&p);
}

/* One that talks so seldom that its answers have no completion of their own is asked now and then, and stays. */
TEST(probe__client_that_talks_seldom__stays)
{
	struct peer p;

	srv.cfg.credits = srv.peers_depth = 64;
	srv.cfg.tuning.inline_bytes = 220;
	start_live(&p);
	for (int i = 0; i < 20; i++) {
		assert_true(peer_message(&p, 64));
		server_turns(2);
		probe_interval();
		fake_complete_sends(p.qp, 2, IBV_WC_SUCCESS);
		server_turns(2);
	}
	server_only(CONN_ST_LIVE);
	assert_in_range(probes(), 1, 10);
	peer_leave(&p);
}

/* The work of an interval is spread over it: never more than one connection in a slice, and each in its own. */
TEST(probe__several_clients__each_once_in_an_interval)
{
	struct conn *c[4];
	struct peer p[4];
	unsigned looks[4] = { 0 };

	start_without_probe();
	peers_go_live(p, 4);
	for (int i = 0; i < 4; i++)
		c[i] = p[i].id->context;
	for (int slice = 0; slice < 3 * SLICES; slice++) {
		unsigned in_slice = 0;

		for (int i = 0; i < 4; i++)
			c[i]->heard = true;
		probe_slice();
		for (int i = 0; i < 4; i++) {
			in_slice += !c[i]->heard;
			looks[i] += !c[i]->heard;
		}
		assert_true(in_slice <= 1);
		if (slice % SLICES != SLICES - 1)
			continue;
		for (int i = 0; i < 4; i++)
			assert_int_equal(looks[i], slice / SLICES + 1);
	}
	assert_int_equal(probes(), 0);
	/* And all of them when all are silent. */
	probe_interval();
	probe_interval();
	assert_int_equal(probes(), 4);
	for (int i = 0; i < 4; i++)
		assert_true(c[i]->link.rc.special_busy);
}

/* However many connection objects there are. */
TEST(probe__any_number_of_objects__each_once_in_an_interval)
{
	static const uint64_t handshakes[] = { 1, 16, 45, 100, 512 };

	for (size_t i = 0; i < N_ELEMENTS(handshakes); i++) {
		struct peer p[4];
		unsigned looks = 0;

		srv.cfg.max_handshakes = handshakes[i];
		start_without_probe();
		peers_go_live(p, 4);
		for (int slice = 0; slice < 2 * SLICES; slice++) {
			for (int k = 0; k < 4; k++)
				((struct conn *)p[k].id->context)->heard = true;
			probe_slice();
			for (int k = 0; k < 4; k++)
				looks += !((struct conn *)p[k].id->context)->heard;
			if (slice % SLICES == SLICES - 1)
				assert_int_equal(looks, 4 * (slice / SLICES + 1));
		}
		server_rig_stop(state);
		assert_int_equal(set_up(state), 0);
	}
}

TEST(probe__not_connected_or_closing__left_alone)
{
	struct peer handshake, grant, live;

	start_without_probe();
	peer_connect(&handshake);
	peer_get_grant(&grant, 0);
	peer_go_live(&live, 0);
	conn_close(server_only(CONN_ST_LIVE), CLOSE_DRAINING);
	fake_posts_forget();
	for (int i = 0; i < 4; i++)
		probe_interval();
	assert_int_equal(probes(), 0);
	assert_int_equal(server_n(CONN_ST_TLS_ACCEPT), 1);
	assert_int_equal(server_n(CONN_ST_GRANTED), 1);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 0);
	peer_abort(&handshake);
}

TEST(probe__timer__a_slice_of_the_interval)
{
	static const struct { uint64_t interval_ns; double slice_s; } cases[] = {
		{ 60 * NS_PER_S, 60. / SLICES }, { 640 * NS_PER_MS, 0.01 },
		/* Not more often than every 10 ms. */
		{ 100 * NS_PER_MS, 0.01 }, { 1, 0.01 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		srv.cfg.probe_interval_ns = cases[i].interval_ns;
		server_rig_start();
		assert_true(ev_is_active(&srv.shard->probe));
		assert_true(srv.shard->probe.repeat > cases[i].slice_s * 0.999);
		assert_true(srv.shard->probe.repeat < cases[i].slice_s * 1.001);
		server_rig_stop(state);
		assert_int_equal(set_up(state), 0);
	}
	srv.cfg.probe_interval_ns = 0;
	server_rig_start();
	assert_false(ev_is_active(&srv.shard->probe));
}

/* With fewer slices, more connections in each. */
TEST(probe__short_interval__all_looked_at_in_it)
{
	struct peer p[4];

	srv.cfg.probe_interval_ns = 80 * NS_PER_MS;
	start_without_probe();
	peers_go_live(p, 4);
	for (int i = 0; i < 8; i++)
		probe_slice();
	assert_int_equal(probes(), 0);
	for (int i = 0; i < 8; i++)
		probe_slice();
	assert_int_equal(probes(), 4);
}

TEST_EACH(set_up, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
