/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/oob.c: clients without rdmacm, their proofs, how many they may be, and their goodbyes. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/rdma/qp_pool.h"
#include "common/rdma/region.h"
#include "common/tls/tls.h"
#include "common/wire/msg.h"
#include "server/tables/session.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

#define OOB FRAME_FEATURE_OOB

static void hmac(const struct peer *p, const uint8_t *key, uint8_t out[AUTH_HMAC_BYTES])
{
	const struct frame_qp client = peer_qp(p);
	const struct auth_pair pair = { .session = p->grant.session, .client = &client, .server = &p->grant.qp,
					.client_psn = p->psn, .server_psn = p->grant.psn };

	assert_int_equal(auth_hmac_pair(NULL, key, &pair, out), 0);
}

static struct ibv_qp *qp_of(const struct peer *p)
{
	return fake_qp_of(p->grant.qp.qpn);
}

static void deliver(const struct peer *p, enum msg_type type, const uint8_t *rest, uint32_t bytes)
{
	struct msg_header h = { .type = type, .length = MSG_HEADER_BYTES + bytes };
	uint8_t data[MSG_PROOF_BYTES] = { 0 };

	msg_encode(&h, data);
	if (bytes)
		memcpy(data + MSG_HEADER_BYTES, rest, bytes);
	assert_true(fake_deliver(qp_of(p), data, h.length));
	server_turn();
}

static void deliver_with_immediate(const struct peer *p, const uint8_t proof[AUTH_HMAC_BYTES])
{
	const struct msg_header h = { .type = MSG_PROOF, .length = MSG_PROOF_BYTES };
	uint8_t data[MSG_PROOF_BYTES];

	msg_encode(&h, data);
	memcpy(data + MSG_HEADER_BYTES, proof, AUTH_HMAC_BYTES);
	assert_true(fake_deliver_imm(qp_of(p), data, sizeof(data), 1));
	server_turn();
}

static void prove(const struct peer *p)
{
	uint8_t proof[AUTH_HMAC_BYTES];

	hmac(p, p->keys.client, proof);
	deliver(p, MSG_PROOF, proof, sizeof(proof));
}

static const struct fake_post *last_post(void)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(n > 0);
	return &p[n - 1];
}

static void go_live(struct peer *p, uint16_t features)
{
	peer_get_grant(p, OOB | features);
	prove(p);
	server_only(CONN_ST_LIVE);
}

static void acknowledge(const struct peer *p)
{
	fake_complete_sends(qp_of(p), 9, IBV_WC_SUCCESS);
	server_turn();
}

SERVED_TEST(hello__queue_pair_programmed_before_the_grant)
{
	const struct fake_modify *rtr, *rts;
	struct peer p;

	peer_get_grant(&p, OOB);
	rtr = fake_modified_to(p.grant.qp.qpn, IBV_QPS_RTR);
	rts = fake_modified_to(p.grant.qp.qpn, IBV_QPS_RTS);
	assert_int_equal(rtr->attr.dest_qp_num, p.qpn);
	assert_int_equal(rtr->attr.path_mtu, IBV_MTU_512);
	assert_int_equal(rtr->attr.rq_psn, p.psn);
	assert_memory_equal(rtr->attr.ah_attr.grh.dgid.raw, peer_qp(&p).gid, FRAME_GID_BYTES);
	assert_int_equal(rtr->attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(rts->attr.sq_psn, p.grant.psn);
	assert_int_equal(p.grant.qp.mtu, IBV_MTU_1024);
	assert_int_equal(p.grant.qp.reads, 0);
	assert_int_equal(session_count(srv.shard->sessions), 1);
	assert_int_equal(session_qps(srv.shard->sessions), 0);
	server_expire(server_only(CONN_ST_GRANTED));
}

SERVED_TEST(proof__right__answered_and_live)
{
	uint8_t expected[AUTH_HMAC_BYTES];
	const struct fake_post *post;
	struct peer p;

	peer_get_grant(&p, OOB);
	prove(&p);
	hmac(&p, p.keys.server, expected);
	post = last_post();
	assert_int_equal(post->length, MSG_PROOF_BYTES);
	assert_int_equal(post->head[0], MSG_PROOF);
	assert_memory_equal(post->head + MSG_HEADER_BYTES, expected, sizeof(post->head) - MSG_HEADER_BYTES);
	assert_int_equal(session_count(srv.shard->sessions), 0);
	server_only(CONN_ST_LIVE);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	acknowledge(&p);
}

SERVED_TEST(proof__with_a_region__window_bound_before_the_answer)
{
	const struct fake_post *posts;
	struct peer p;
	uint32_t n;

	peer_get_grant(&p, OOB | FRAME_FEATURE_REGION);
	assert_int_equal(p.grant.qp.reads, 2);
	(void)fake_posts(&n);
	assert_int_equal(n, 0);
	prove(&p);
	posts = fake_posts(&n);
	assert_int_equal(n, 2);
	assert_int_equal(posts[0].opcode, IBV_WR_BIND_MW);
	assert_int_equal(posts[0].rkey, p.grant.region_rkey);
	assert_int_equal(posts[1].head[0], MSG_PROOF);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	acknowledge(&p);
}

/* The close_notify behind the GRANT may still wait for room in the socket. */
SERVED_TEST(proof__while_tls_is_open__live)
{
	struct peer p;

	peer_ask_grant(&p, OOB);
	prove(&p);
	server_only(CONN_ST_LIVE);
	peer_forget(&p);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	acknowledge(&p);
}

SERVED_TEST(first_message__anything_but_the_proof__ends_it)
{
	for (int i = 0; i < 5; i++) {
		uint8_t proof[AUTH_HMAC_BYTES];
		struct peer p;

		peer_get_grant(&p, OOB | FRAME_FEATURE_REGION);
		hmac(&p, i == 0 ? p.keys.server : p.keys.client, proof);
		proof[31] ^= i == 1;
		if (i == 4)
			deliver_with_immediate(&p, proof);
		deliver(&p, i == 2 ? MSG_ECHO : MSG_PROOF, proof, i == 3 ? 31 : 32);
		assert_int_equal(server_failed(STAGE_QP_EXCHANGE, FAIL_PROTOCOL, PROTO_BAD_PROOF), (uint64_t)i + 1);
		assert_int_equal(server_n(CONN_ST_LIVE), 0);
		assert_int_equal(session_count(srv.shard->sessions), 0);
		server_turns(2);
		server_rest(UINT64_C(30000000000));
	}
}

SERVED_TEST(proof__never_comes__timeout_of_that_stage)
{
	struct peer p;

	peer_get_grant(&p, OOB);
	server_expire(server_only(CONN_ST_GRANTED));
	assert_int_equal(server_failed(STAGE_QP_EXCHANGE, FAIL_TIMEOUT, 0), 1);
}

TEST(hello__gid_of_another_host__bad_address_unless_allowed)
{
	for (int allowed = 0; allowed < 2; allowed++) {
		struct peer p;

		srv.cfg.allow_redirect = allowed;
		server_rig_start();
		peer_shake_hands(&p);
		assert_int_equal(addr_parse("127.0.0.9", 0, &p.rdma), 0);
		assert_int_equal(peer_say_hello(&p, OOB), allowed ? FRAME_GRANT : FRAME_REFUSE);
		if (!allowed)
			assert_int_equal(p.refuse.code, REFUSE_BAD_ADDRESS);
		peer_close(&p);
		server_rig_again(state);
	}
}

TEST(hello__way_that_the_server_leaves_out__unsupported)
{
	for (enum connect_way m = 0; m < CONNECT_N; m++) {
		srv.cfg.connect_mask = 1u << m;
		server_rig_start();
		for (int asked = 0; asked < CONNECT_N; asked++) {
			struct peer p;
			int answer = peer_ask(&p, asked == CONNECT_OOB ? OOB : 0);

			assert_int_equal(answer, asked == (int)m ? FRAME_GRANT : FRAME_REFUSE);
			if (answer == FRAME_REFUSE)
				assert_says(p.refuse.text, "--connect of the server leaves");
			peer_close(&p);
		}
		assert_int_equal(fake_cm_ids(), m == CONNECT_CM);
		server_rig_again(state);
	}
}

/* A request through rdmacm with the session of a client that has its queue pair already. */
SERVED_TEST(session__used_through_rdmacm__refused)
{
	uint8_t data[56];
	struct peer p;

	peer_get_grant(&p, OOB);
	peer_proof(&p, data);
	peer_request(&p, data);
	assert_int_equal(peer_reject_code(), REFUSE_BAD_SESSION);
	assert_int_equal(server_n(CONN_ST_GRANTED), 0);
}

SERVED_TEST(goodbye__answered_and_closed_when_acknowledged)
{
	struct peer p;

	go_live(&p, 0);
	acknowledge(&p);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	assert_int_equal(last_post()->head[0], MSG_GOODBYE);
	assert_int_equal(fake_qp_state(qp_of(&p)), IBV_QPS_RTS);
	server_only(CONN_ST_LIVE);
	acknowledge(&p);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	assert_int_equal(server_n(CONN_ST_LIVE), 0);
}

SERVED_TEST(goodbye__client_gone_before_the_answer__has_left)
{
	struct peer p;

	go_live(&p, 0);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	fake_complete_sends(qp_of(&p), 1, IBV_WC_RETRY_EXC_ERR);
	server_turn();
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR), 0);
}

/* The client dies before it has the answer, and its device does not say so. */
SERVED_TEST(goodbye__answer_never_acknowledged__has_left_after_a_while)
{
	struct peer p;

	go_live(&p, 0);
	deliver(&p, MSG_GOODBYE, NULL, 0);
	server_expire(server_only(CONN_ST_LIVE));
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_TIMEOUT, 0), 0);
}

/* A GOODBYE takes no credit, and gives none to other messages. */
SERVED_TEST(credits__all_in_flight__a_goodbye_may_follow_and_nothing_else)
{
	for (int i = 0; i < 2; i++) {
		struct msg_header h = { .type = MSG_ECHO, .length = MSG_HEADER_BYTES };
		uint8_t data[MSG_HEADER_BYTES];
		struct peer p;

		go_live(&p, 0);
		acknowledge(&p);
		msg_encode(&h, data);
		for (int n = 0; n < p.grant.credits + (i == 0); n++)
			assert_true(fake_deliver(qp_of(&p), data, sizeof(data)));
		if (i == 1) {
			deliver(&p, MSG_GOODBYE, NULL, 0);
			acknowledge(&p);
			assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
		} else {
			server_turn();
		}
		assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_CREDITS), 1);
		server_turns(2);
	}
}

SERVED_TEST(goodbye__of_a_client_with_rdmacm__protocol)
{
	struct msg_header h = { .type = MSG_GOODBYE, .length = MSG_HEADER_BYTES };
	uint8_t data[MSG_HEADER_BYTES];
	struct peer p;

	peer_go_live(&p, 0);
	msg_encode(&h, data);
	assert_true(fake_deliver(p.qp, data, sizeof(data)));
	server_turn();
	peer_assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

/* With 5 queue pairs: an address that has 3 unused sessions leaves 2. */
TEST(sessions__of_one_address__leave_queue_pairs_to_others)
{
	struct peer p[4];

	fake_device.attr.max_qp = 5;
	server_rig_start();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(peer_ask(&p[i], OOB), i < 3 ? FRAME_GRANT : FRAME_REFUSE);
		peer_close(&p[i]);
	}
	assert_int_equal(p[3].refuse.code, REFUSE_BUSY);
	assert_int_equal(qp_pool_available(srv.shard->qps), 2);
	srv.peers_from = "127.0.0.2";
	peer_shake_hands(&p[0]);
	assert_int_equal(addr_parse("127.0.0.2", 0, &p[0].rdma), 0);
	assert_int_equal(peer_say_hello(&p[0], OOB), FRAME_GRANT);
	peer_close(&p[0]);
}

/* Its place is free before its queue pair is drained: otherwise whoever asks most often would get it. */
TEST(sessions__all_places_unused__one_is_taken_back_for_another_address_at_once)
{
	struct peer p[4], other;

	server_rig_start();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(peer_ask(&p[i], OOB), FRAME_GRANT);
		peer_close(&p[i]);
		TAILQ_LAST(&srv.shard->lists[CONN_ST_GRANTED], conn_list)->admitted_ns -= NS_PER_S;
	}
	srv.peers_from = "127.0.0.2";
	peer_shake_hands(&other);
	assert_int_equal(addr_parse("127.0.0.2", 0, &other.rdma), 0);
	assert_int_equal(peer_say_hello(&other, OOB), FRAME_GRANT);
	assert_int_equal(server_closed(CLOSE_CROWDED_OUT), 1);
	assert_int_equal(srv.server.admitted[0], 4);
	peer_close(&other);
}

/* Clients that speak only TLS must not put the queue pairs of all to rest. */
SERVED_TEST(hello__cut_off_before_the_grant__queue_pair_does_not_rest)
{
	uint32_t available = qp_pool_available(srv.shard->qps);
	struct peer p;

	peer_shake_hands(&p);
	assert_int_equal(shutdown(tls_fd(server_only(CONN_ST_HELLO)->io->tls), SHUT_WR), 0);
	peer_hello(&p, OOB);
	server_turns(2);
	assert_int_equal(server_failed(STAGE_PSN_EXCHANGE, FAIL_ERRNO, EPIPE), 1);
	peer_abort(&p);
	server_rest(0);
	assert_int_equal(qp_pool_available(srv.shard->qps), available);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
