/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the server's TLS sessions: tickets granted, connections resumed, both counted. */
#include "tests/unit/helpers/unit.h"

#include "common/hist/hist.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static int set_up(void **state)
{
	int ret = server_rig_init(state);

	srv.peers_resume = true;
	return ret;
}

static int tear_down(void **state)
{
	tls_session_free(srv.offer);
	return server_rig_stop(state);
}

static uint64_t stage_count(enum server_stage stage)
{
	return hist_count(srv.shard->stats.stages[stage]);
}

static void assert_counts(uint64_t full, uint64_t resumed, uint64_t tickets)
{
	const struct stats *st = &srv.shard->stats;

	assert_int_equal(counter_get(&st->handshakes_full), full);
	assert_int_equal(counter_get(&st->handshakes_resumed), resumed);
	assert_int_equal(counter_get(&st->tickets), tickets);
	assert_int_equal(stage_count(SS_TLS_ACCEPT), full);
	assert_int_equal(stage_count(SS_TLS_ACCEPT_RESUMED), resumed);
}

/* Up to the GRANT, and the session of later peers is the one that came. */
static void granted_with_ticket(struct peer *p, uint16_t features)
{
	peer_ask_grant(p, features | FRAME_FEATURE_TICKET);
	assert_int_equal(p->grant.features, features | FRAME_FEATURE_TICKET);
	tls_session_free(srv.offer);
	srv.offer = tls_take_session(p->tls);
	assert_non_null(srv.offer);
}

/* The rest of the way, with proofs of the keys that both ends derived, to its end. */
static void go_live(struct peer *p)
{
	peer_close(p);
	peer_finish(p);
	peer_leave(p);
}

/* A client that comes and goes is granted these features; a ticket comes with the GRANT if it is one of them. */
static void assert_granted(uint16_t asked, uint16_t granted)
{
	struct peer p;

	if (granted & FRAME_FEATURE_TICKET) {
		granted_with_ticket(&p, granted & (uint16_t)~FRAME_FEATURE_TICKET);
	} else {
		peer_ask_grant(&p, asked);
		assert_int_equal(p.grant.features, granted);
		assert_null(tls_take_session(p.tls));
	}
	assert_int_equal(p.grant.region_bytes, granted & FRAME_FEATURE_REGION ? 4096 : 0);
	go_live(&p);
}

TEST(hello__ticket_asked_for__granted_and_sent)
{
	server_rig_start();
	assert_granted(FRAME_FEATURE_TICKET, FRAME_FEATURE_TICKET);
	assert_counts(1, 0, 1);
}

TEST(hello__ticket_not_asked_for__none)
{
	server_rig_start();
	assert_granted(FRAME_FEATURE_REGION, FRAME_FEATURE_REGION);
	assert_counts(1, 0, 0);
}

TEST(hello__region_and_ticket__both)
{
	server_rig_start();
	assert_granted(FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET, FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET);
}

/* An offer, which the server may ignore. */
TEST(hello__tickets_switched_off__granted_without)
{
	srv.cfg.tls_resume = 0;
	server_rig_start();
	assert_granted(FRAME_FEATURE_TICKET, 0);
	assert_counts(1, 0, 0);
	assert_granted(FRAME_FEATURE_TICKET | FRAME_FEATURE_REGION, FRAME_FEATURE_REGION);
}

TEST(hello__refused__no_ticket)
{
	struct peer p;

	srv.cfg.region_bytes = 0;
	server_rig_start();
	assert_int_equal(peer_ask(&p, FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET), FRAME_REFUSE);
	assert_null(tls_take_session(p.tls));
	assert_counts(1, 0, 0);
	peer_close(&p);
	server_assert_all_back();
}

TEST(session__offered__resumed_and_as_good_as_a_full_one)
{
	struct peer p;

	server_rig_start();
	granted_with_ticket(&p, 0);
	go_live(&p);
	for (unsigned i = 1; i <= 3; i++) {
		granted_with_ticket(&p, FRAME_FEATURE_REGION);
		assert_true(tls_is_resumed(p.tls));
		assert_counts(1, i, i + 1);
		go_live(&p);
	}
	assert_int_equal(counter_get(&srv.shard->stats.established), 4);
	server_assert_all_back();
}

TEST(session__offered_to_a_server_started_anew__full)
{
	struct tls_session *before;
	struct peer p;

	server_rig_start();
	granted_with_ticket(&p, 0);
	peer_close(&p);
	before = srv.offer;
	server_rig_stop(state);
	assert_int_equal(set_up(state), 0);
	srv.offer = before;
	server_rig_start();
	granted_with_ticket(&p, 0);
	assert_false(tls_is_resumed(p.tls));
	assert_counts(1, 0, 1);
	go_live(&p);
}

TEST(session__client_certificates_required__resumed_too)
{
	struct peer p;

	srv.cfg.client_auth = CLIENT_AUTH_REQUIRE;
	srv.peers_certified = true;
	server_rig_start();
	granted_with_ticket(&p, 0);
	go_live(&p);
	granted_with_ticket(&p, 0);
	assert_true(tls_is_resumed(p.tls));
	assert_counts(1, 1, 2);
	go_live(&p);
}

TEST(stages__not_finished_handshake__in_neither)
{
	struct peer p;

	server_rig_start();
	peer_connect(&p);
	peer_abort(&p);
	assert_counts(0, 0, 0);
	server_assert_all_back();
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
