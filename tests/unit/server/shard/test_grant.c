/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/grant.c: what a client gets, when it has to wait, and what it is refused for want of. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/rdma/region.h"
#include "common/rdma/registrar.h"
#include "common/wire/psn.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

/* Fewer receive buffers than clients times credits: each that may still come gets at least one. */
TEST(hello__few_receive_buffers__shared_fairly)
{
	static const uint32_t expected[] = { 2, 2, 2, 3 };
	uint32_t sum = 0;

	fake_device.attr.max_srq_wr = 64 + 9;
	server_rig_start();
	assert_int_equal(srv.cfg.recv_depth, 9);
	for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
		struct peer p;

		peer_get_grant(&p, 0);
		assert_int_equal(p.grant.credits, expected[i]);
		sum += p.grant.credits;
	}
	assert_true(sum <= srv.cfg.recv_depth);
}

/* A client that needs more than its share gets it as long as each that may still come is left one of the two that it
 * would have; who does not need all that it asks for gets its share. */
TEST(hello__needs_all_its_credits__all_or_a_refusal)
{
	static const struct { uint16_t features, credits; /* 0: refused */ } cases[] = {
		{ FRAME_FEATURE_ALL_CREDITS, 4 }, { FRAME_FEATURE_ALL_CREDITS, 0 }, { 0, 1 },
		{ FRAME_FEATURE_ALL_CREDITS, 0 }, { 0, 2 }, { 0, 2 },
	};

	fake_device.attr.max_srq_wr = 64 + 9;
	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;

		if (!cases[i].credits) {
			peer_refused_hello(64, 4, cases[i].features, 1, REFUSE_NO_RESOURCES,
					   "9 receive buffers (--srq-depth, "
					   "--cq-depth, --threads) for up to 4 clients: this client needs 4");
			continue;
		}
		peer_get_grant(&p, cases[i].features);
		assert_int_equal(p.grant.credits, cases[i].credits);
		assert_int_equal(p.grant.features, cases[i].features);
	}
	assert_int_equal(srv.shard->credits_granted, 9);
}

SERVED_TEST(hello__needs_more_credits_than_any_client_gets__unsupported_with_both_numbers)
{
	peer_refused_hello(64, 5, FRAME_FEATURE_ALL_CREDITS, 1, REFUSE_UNSUPPORTED, "--credits 4: the client needs 5");
}

TEST(hello__needs_a_region__of_that_size_or_a_refusal)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 4, .features = FRAME_FEATURE_REGION };
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	server_start_hello(&p);
	h.psn = p.psn;
	h.region_bytes = 4097;
	peer_assert_refused(&p, buf, frame_encode_hello(&h, buf), REFUSE_UNSUPPORTED,
			    "--region-size 4096: the client needs 4097");
	peer_shake_hands(&p);
	h.psn = p.psn;
	h.region_bytes = 4096;
	peer_send(&p, buf, frame_encode_hello(&h, buf));
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	assert_int_equal(p.grant.region_bytes, 4096);
	peer_close(&p);
}

SERVED_TEST(hello__larger_than_the_server_takes__unsupported)
{
	peer_refused_hello(1025, 4, 0, 1, REFUSE_UNSUPPORTED, "--message-size 1024: the client needs 1025");
}

TEST(hello__region_not_offered__unsupported)
{
	srv.cfg.region_bytes = 0;
	server_rig_start();
	peer_refused_hello(64, 4, FRAME_FEATURE_REGION, 1, REFUSE_UNSUPPORTED,
		      "--region-size 0: the client needs a region");
	server_assert_all_back();
}

TEST(hello__window__unless_offered_unsupported)
{
	const uint16_t features = FRAME_FEATURE_REGION | FRAME_FEATURE_WINDOW;
	struct peer p;
	struct conn *c;

	srv.cfg.windows = 0;
	server_rig_start();
	assert_int_equal(peer_ask(&p, features), FRAME_REFUSE);
	peer_close(&p);
	assert_int_equal(p.refuse.code, REFUSE_UNSUPPORTED);
	assert_says(p.refuse.text, "--windows off");
	server_assert_all_back();
	server_rig_again(state);
	srv.cfg.windows = 1;
	c = server_start_granted(&p, features);
	assert_int_equal(p.grant.features, features);
	assert_true(c->window.addr == PEER_WINDOW_ADDR);
	assert_int_equal(c->window.bytes, PEER_WINDOW_BYTES);
	assert_int_equal(c->window.rkey, PEER_WINDOW_RKEY);
}

TEST(hello__no_memory_for_a_region__no_resources)
{
	static const char *const calls[] = { "ibv_reg_mr", "ibv_alloc_mw" };

	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
		fake_fail_next(calls[i], ENOMEM);
		peer_refused_hello(64, 4, FRAME_FEATURE_REGION, 1, REFUSE_NO_RESOURCES, "region");
		server_assert_all_back();
	}
}

/* `n` clients got their sessions a second ago, and have not used them. */
static void get_grants(struct peer *p, int n)
{
	for (int i = 0; i < n; i++) {
		peer_get_grant(&p[i], 0);
		TAILQ_LAST(&srv.shard->lists[CONN_ST_GRANTED], conn_list)->admitted_ns -= NS_PER_S;
	}
}

static void assert_granted_from(const char *address)
{
	struct peer p;

	srv.peers_from = address;
	peer_get_grant(&p, 0);
}

static void assert_refused_from(const char *address, uint16_t features, enum refuse_code code, const char *word)
{
	struct peer p;

	srv.peers_from = address;
	assert_int_equal(peer_ask(&p, features), FRAME_REFUSE);
	assert_int_equal(p.refuse.code, code);
	assert_says(p.refuse.text, word);
	peer_close(&p);
}

TEST(hello__all_places_granted_and_unused__the_oldest_is_taken_back)
{
	struct peer p[4];

	server_rig_start();
	get_grants(p, 4);
	/* Its own address has most. */
	assert_refused_from("127.0.0.1", 0, REFUSE_FULL, "--max-clients");
	for (int i = 0; i < 2; i++) {
		assert_granted_from("127.0.0.12");
		assert_int_equal(server_closed(CLOSE_CROWDED_OUT), i + 1);
		assert_int_equal(server_n(CONN_ST_GRANTED), 4);
	}
	/* Now each has as much as the other. */
	assert_refused_from("127.0.0.12", 0, REFUSE_FULL, "--max-clients");
	peer_prove(&p[0]);
	assert_int_equal(server_refused(REFUSE_BAD_SESSION), 1);
	peer_prove(&p[3]);
	assert_int_equal(server_n(CONN_ST_ACCEPTING), 1);
}

/* The client is in a shard of the same rail that has nothing to give. */
TEST(relieve__asked_by_another_shard__gives_to_who_has_less)
{
	struct peer p[3];
	struct addr same = unit_addr("127.0.0.1", 0), other = unit_addr("127.0.0.12", 0);

	server_rig_start();
	get_grants(p, 3);
	srv.shard->relieve_for = addr_network(&same);
	ev_async_send(srv.shard->loop, &srv.shard->relieve);
	server_turns(2);
	assert_int_equal(server_n(CONN_ST_GRANTED), 3);
	srv.shard->relieve_for = addr_network(&other);
	ev_async_send(srv.shard->loop, &srv.shard->relieve);
	ev_async_send(srv.shard->loop, &srv.shard->relieve);
	server_turns(2);
	assert_int_equal(server_n(CONN_ST_GRANTED), 2);
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 1);
	assert_int_equal(srv.server.admitted[0], 2);
}

/* Two shards, of which the other one has the sessions. */
TEST(hello__full_by_sessions_of_another_shard__busy_and_that_one_is_asked)
{
	struct shard idle = { .relieve_for = 0 };
	struct peer p[4];

	server_start_full(p);
	idle.loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(idle.loop);
	counter_set(&idle.stats.sessions, 2);
	srv.cfg.threads = 2;
	srv.shards[1] = &idle;
	assert_refused_from("127.0.0.12", 0, REFUSE_BUSY, "");
	assert_true(idle.relieve_for != 0);
	/* With one there is nothing to share. */
	idle.relieve_for = 0;
	counter_set(&idle.stats.sessions, 1);
	assert_refused_from("127.0.0.12", 0, REFUSE_FULL, "");
	assert_true(idle.relieve_for == 0);
	srv.cfg.threads = 1;
	ev_loop_destroy(idle.loop);
}

TEST(hello__all_places_granted_just_now__busy)
{
	struct peer p[4];

	server_rig_start();
	for (int i = 0; i < 4; i++)
		peer_get_grant(&p[i], 0);
	/* They may still be on their way, however slow this test is. */
	TAILQ_FIRST(&srv.shard->lists[CONN_ST_GRANTED])->admitted_ns = clock_now_ns() + 60 * NS_PER_S;
	assert_refused_from("127.0.0.12", 0, REFUSE_BUSY, "");
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 0);
	assert_int_equal(server_n(CONN_ST_GRANTED), 4);
}

TEST(hello__all_places_live__full)
{
	struct peer p[4];

	server_start_full(p);
	assert_refused_from("127.0.0.12", 0, REFUSE_FULL, "");
	assert_int_equal(server_n(CONN_ST_LIVE), 4);
}

TEST(hello__max_per_address__full_for_that_address)
{
	struct peer p[2];

	srv.cfg.max_per_address = 2;
	server_start_live(&p[0], 0);
	peer_get_grant(&p[1], 0);
	assert_refused_from("127.0.0.1", 0, REFUSE_FULL, "--max-per-address");
	assert_granted_from("127.0.0.12");
	/* A place is free again when its client has gone. */
	conn_close(TAILQ_FIRST(&srv.shard->lists[CONN_ST_GRANTED]), CLOSE_DRAINING);
	assert_granted_from("127.0.0.1");
}

/* A registered region stays pinned, so a HELLO that finds no place is refused before its region is registered. */
TEST(hello__refused__no_region_registered_for_it)
{
	struct peer p[4];

	server_start_full(p);
	assert_refused_from("127.0.0.1", FRAME_FEATURE_REGION, REFUSE_FULL, "");
	server_turns(3);
	assert_int_equal(fake_mrs(), 1);	/* the slab's */
}

/* Its HELLO waits for a region until srv.registrar_stands is false. */
static struct conn *wait_for_region(struct peer *p)
{
	server_start_hello(p);
	srv.registrar_stands = true;
	peer_hello(p, FRAME_FEATURE_REGION);
	server_turns(3);
	return server_only(CONN_ST_HELLO);
}

/* The registration that failed was for somebody who did not wait: the next one's is tried again. */
TEST(hello__region_failed_for_one_who_left__the_next_gets_one)
{
	struct peer p, next;

	server_expire(wait_for_region(&p));
	fake_fail_next("ibv_reg_mr", ENOMEM);
	srv.registrar_stands = false;
	server_turns(3);
	assert_string_equal(fake_failed(), "ibv_reg_mr");
	peer_get_grant(&next, FRAME_FEATURE_REGION);
	peer_abort(&p);
}

/* Registering takes as long as it takes: until then the HELLO waits and others are served. */
TEST(hello__region_not_registered_yet__waits_while_others_are_served)
{
	struct peer p, other;
	struct conn *c = wait_for_region(&p);

	assert_true(c->awaits_region);
	assert_true(ev_is_active(&c->deadline));
	assert_int_equal(fake_mrs(), 1);	/* the slab's */
	/* It has all the rest, so nothing is registered in vain. */
	assert_int_equal(psn_in_use(srv.server.psns), 2);
	assert_int_equal(srv.server.admitted[0], 1);
	peer_go_live(&other, 0);
	assert_int_equal(c->state, CONN_ST_HELLO);
	srv.registrar_stands = false;
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	assert_int_equal(p.grant.region_bytes, 4096);
	assert_int_equal(srv.shard->regions_awaited, 0);
	peer_close(&p);
}

/* The region comes when the deadline has passed, but before the turn in which that ends the connection. */
TEST(hello__region_comes_at_the_deadline__granted_and_tls_is_handed_on)
{
	struct peer p;
	struct conn *c;

	server_start_hello(&p);
	srv.registrar_stands = true;
	peer_hello(&p, FRAME_FEATURE_REGION | FRAME_FEATURE_MORE);
	server_turns(3);
	c = server_only(CONN_ST_HELLO);
	while (registrar_run_next(srv.server.registrar))
		;
	c->overdue = true;
	conn_queue(c);
	ev_feed_event(srv.shard->loop, &srv.shard->registered, EV_ASYNC);
	server_turns(3);
	assert_int_equal(peer_answer(&p), FRAME_GRANT);
	assert_int_equal(c->state, CONN_ST_GRANTED);
	assert_null(c->io);
	peer_abort(&p);
}

TEST(hello__deadline_while_a_region_is_registered__fails_and_it_is_the_nexts)
{
	struct peer p, next;

	server_expire(wait_for_region(&p));
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0), 1);
	assert_int_equal(srv.shard->regions_awaited, 0);
	srv.registrar_stands = false;
	server_turns(3);
	peer_get_grant(&next, FRAME_FEATURE_REGION);
	assert_int_equal(fake_mrs(), 2);
	peer_abort(&p);
}

TEST(hello__server_full__refused_until_one_leaves)
{
	struct peer p[4], late;

	server_start_full(p);
	peer_refused_hello(64, 4, 0, 1, REFUSE_FULL, "--max-clients");
	peer_disconnect(&p[0]);
	peer_go_live(&late, 0);
	assert_int_equal(server_n(CONN_ST_LIVE), 4);
}

/* --max-clients is for each rail, whatever the others hold. */
TEST(hello__several_rails__full_when_its_own_is)
{
	struct peer p;

	srv.cfg.n_rails = 3;
	server_rig_start();
	srv.server.admitted[1] = srv.server.admitted[2] = 4;
	srv.server.admitted[0] = 3;
	peer_go_live(&p, 0);
	peer_refused_hello(64, 4, 0, 1, REFUSE_FULL, "--max-clients");
	srv.server.admitted[0] = 1;
}

/* The shard alone: its rail failed, and the server serves on. */
SERVED_TEST(hello__shard_drains__draining)
{
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	peer_shake_hands(&p);
	/* Before the connection is there the loop of a shard that drains would end, as nobody is left. */
	srv.shard->drain_deadline_ns = UINT64_MAX;
	peer_assert_refused(&p, buf, peer_encode_hello(buf, 64, 4, 0, 1), REFUSE_DRAINING, "stopping");
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
