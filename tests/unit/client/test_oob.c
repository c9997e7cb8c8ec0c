/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/oob.c: connecting without rdmacm, the proofs, and both goodbyes. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

#define SERVER_QPN 0x4321

/* A connection whose server has heard its HELLO. */
static struct client_conn *at_hello(void)
{
	cli.cfg.connect = CONNECT_OOB;
	cli.cfg.reads = 16;
	return client_at(CLIENT_ST_PSN_EXCHANGE);
}

static void grant(void)
{
	script_default_grant();
	cli.grant.qp = (struct frame_qp){ .gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 }, .qpn = SERVER_QPN, .mtu = 2,
					  .reads = 3 };
}

/* A connection that has sent its proof. */
static struct client_conn *at_proof(void)
{
	struct client_conn *c = at_hello();

	grant();
	script_grant();
	client_until(c->state == CLIENT_ST_QP_EXCHANGE);
	return c;
}

static void hmac(const uint8_t *key, uint8_t out[AUTH_HMAC_BYTES])
{
	const struct auth_pair p = { .session = cli.grant.session, .client = &cli.hello.qp, .server = &cli.grant.qp,
				     .client_psn = cli.hello.psn, .server_psn = cli.grant.psn };

	assert_int_equal(auth_hmac_pair(NULL, key, &p, out), 0);
}

static void deliver(struct client_conn *c, enum msg_type type, const uint8_t *rest, uint32_t bytes)
{
	struct msg_header h = { .type = type, .length = MSG_HEADER_BYTES + bytes };
	uint8_t data[MSG_PROOF_BYTES] = { 0 };

	msg_encode(&h, data);
	if (bytes)
		memcpy(data + MSG_HEADER_BYTES, rest, bytes);
	assert_true(fake_deliver(c->link.rc.qp, data, h.length));
	client_turn();
}

static struct client_conn *at_live(void)
{
	struct client_conn *c = at_proof();
	uint8_t proof[AUTH_HMAC_BYTES];

	hmac(cli.keys.server, proof);
	deliver(c, MSG_PROOF, proof, sizeof(proof));
	assert_int_equal(c->state, CLIENT_ST_LIVE);
	return c;
}

static const struct fake_post *last_post(void)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(n > 0);
	return &p[n - 1];
}

TEST(hello__describes_the_queue_pair__and_no_id_exists)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct client_conn *c = at_hello();

	assert_true(cli.hello.features & FRAME_FEATURE_OOB);
	assert_int_equal(cli.hello.qp.qpn, rc_qpn(&c->link.rc));
	assert_memory_equal(cli.hello.qp.gid, gid, sizeof(gid));
	assert_int_equal(cli.hello.qp.mtu, IBV_MTU_1024);
	assert_int_equal(cli.hello.qp.reads, 16);
	assert_int_equal(cli.hello.qp.lid, 0);
	assert_null(c->link.rc.id);
	assert_null(cli.ctx->cm);
}

TEST(grant__queue_pair_programmed_for_the_servers)
{
	struct client_conn *c = at_proof();
	const struct fake_modify *rtr = fake_modified_to(rc_qpn(&c->link.rc), IBV_QPS_RTR);
	const struct fake_modify *rts = fake_modified_to(rc_qpn(&c->link.rc), IBV_QPS_RTS);

	assert_int_equal(rtr->attr.dest_qp_num, SERVER_QPN);
	assert_int_equal(rtr->attr.path_mtu, IBV_MTU_512);
	assert_int_equal(rtr->attr.rq_psn, cli.grant.psn);
	assert_int_equal(rtr->attr.ah_attr.is_global, 1);
	assert_memory_equal(rtr->attr.ah_attr.grh.dgid.raw, cli.grant.qp.gid, FRAME_GID_BYTES);
	assert_int_equal(rtr->attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(rts->attr.sq_psn, cli.hello.psn);
	assert_int_equal(rts->attr.max_rd_atomic, 3);
}

/* The first message has header and HMAC, whose first bytes the fake keeps. */
TEST(proof__first_message__over_both_queue_pairs)
{
	uint8_t expected[AUTH_HMAC_BYTES];
	const struct fake_post *p;

	at_proof();
	p = last_post();
	hmac(cli.keys.client, expected);
	assert_int_equal(p->opcode, IBV_WR_SEND);
	assert_int_equal(p->length, MSG_PROOF_BYTES);
	assert_int_equal(p->head[0], MSG_PROOF);
	assert_memory_equal(p->head + MSG_HEADER_BYTES, expected, sizeof(p->head) - MSG_HEADER_BYTES);
	assert_int_equal(cli.live, 0);
}

TEST(life__to_live_and_both_goodbyes__stages_timed_and_all_back)
{
	struct client_conn *c = at_live();

	assert_int_equal(cli.live, 1);
	assert_int_equal(c->head.in_flight, 0);
	for (int i = 0; i < STAGE_TIMED; i++)
		assert_true((c->stage_ns[i] > 0) == stage_applies((enum stage)i, TRANSPORT_RDMA, CONNECT_OOB));
	client_close(c);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	assert_int_equal(last_post()->head[0], MSG_GOODBYE);
	assert_int_equal(fake_qp_state(c->link.rc.qp), IBV_QPS_RTS);
	client_turn();
	assert_int_equal(cli.closed, 0);
	deliver(c, MSG_GOODBYE, NULL, 0);
	client_until(cli.closed == 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

TEST(goodbye__never_answered__closed_at_the_deadline)
{
	struct client_conn *c = at_live();

	client_close(c);
	client_expire(c);
	assert_int_equal(cli.closed, 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

/* The server's device is gone. */
TEST(goodbye__cannot_be_delivered__closed_at_once)
{
	struct client_conn *c = at_live();

	client_close(c);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_RETRY_EXC_ERR);
	client_until(cli.closed == 1);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
}

TEST(goodbye__of_a_server_that_drains__answered_and_acknowledged_first)
{
	struct msg_header h = { .type = MSG_GOODBYE, .length = MSG_HEADER_BYTES, .sequence = REFUSE_DRAINING };
	struct client_conn *c = at_live();
	uint8_t data[MSG_HEADER_BYTES];

	msg_encode(&h, data);
	assert_true(fake_deliver(c->link.rc.qp, data, sizeof(data)));
	client_turn();
	assert_int_equal(cli.draining, 1);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	assert_int_equal(last_post()->head[0], MSG_GOODBYE);
	assert_int_equal(fake_qp_state(c->link.rc.qp), IBV_QPS_RTS);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_TRAFFIC, FAIL_CLOSED, REFUSE_DRAINING);
	client_assert_all_back();
}

/* Both ends say goodbye at once: nothing answers ours, so it has to be sent before the queue pair goes to ERR. */
TEST(goodbye__crosses_that_of_a_server_that_drains__sent_first)
{
	struct msg_header h = { .type = MSG_GOODBYE, .length = MSG_HEADER_BYTES, .sequence = REFUSE_DRAINING };
	struct client_conn *c = at_live();
	uint8_t data[MSG_HEADER_BYTES];

	client_close(c);
	msg_encode(&h, data);
	assert_true(fake_deliver(c->link.rc.qp, data, sizeof(data)));
	client_turn();
	assert_int_equal(fake_qp_state(c->link.rc.qp), IBV_QPS_RTS);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_until(cli.closed == 1);
	client_assert_all_back();
}

/* The server may have taken the proof, and then holds a connection that nobody uses. */
TEST(proof__of_the_server_comes_too_late__goodbye)
{
	struct client_conn *c = at_proof();

	client_expire(c);
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	assert_int_equal(last_post()->head[0], MSG_GOODBYE);
	deliver(c, MSG_PROOF, NULL, 0);
	assert_int_equal(cli.closed, 0);
	deliver(c, MSG_GOODBYE, NULL, 0);
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_QP_EXCHANGE, FAIL_TIMEOUT, 0);
	client_assert_all_back();
}

TEST(failed_request__no_goodbye__closed)
{
	struct client_conn *c = at_live();

	client_rig_send(c, 64, 1);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_RETRY_EXC_ERR);
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
	client_assert_all_back();
}

static void look_at_all(void)
{
	for (uint32_t i = 0; i < cli.cfg.max_conns; i++)
		client_oob_look(cli.ctx);
}

/* The server's device acknowledged the message, and its process died before it answered. */
TEST(server__silent__probed_and_lost_if_it_is_gone)
{
	struct client_conn *c = at_live();
	uint32_t n;

	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	look_at_all();
	look_at_all();
	fake_posts_forget();
	client_rig_send(c, 64, 1);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_turn();
	look_at_all();
	(void)fake_posts(&n);
	assert_int_equal(n, 2);
	assert_int_equal(last_post()->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(last_post()->length, 0);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_RETRY_EXC_ERR);
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
	client_assert_all_back();
}

TEST(proof__of_the_server__anything_else_ends_it)
{
	for (int i = 0; i < 4; i++) {
		struct client_conn *c = at_proof();
		uint8_t proof[AUTH_HMAC_BYTES];

		hmac(i == 0 ? cli.keys.client : cli.keys.server, proof);
		proof[31] ^= i == 1;
		fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
		deliver(c, i == 2 ? MSG_REPLY : MSG_PROOF, proof, i == 3 ? 31 : 32);
		client_until(cli.closed == 1);
		client_assert_failed(STAGE_QP_EXCHANGE, FAIL_PROTOCOL, PROTO_BAD_PROOF);
		client_rig_again(state);
	}
}

TEST(grant__gid_of_another_host__redirected_unless_allowed)
{
	for (int allowed = 0; allowed < 2; allowed++) {
		struct client_conn *c;

		cli.cfg.allow_redirect = allowed;
		c = at_hello();
		grant();
		cli.grant.qp.gid[15] = 2;
		script_grant();
		client_until(cli.closed == 1 || c->state == CLIENT_ST_QP_EXCHANGE);
		assert_int_equal(cli.closed, !allowed);
		if (!allowed)
			client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_REDIRECTED);
		client_rig_again(state);
	}
}

TEST(grant__without_the_feature__refused)
{
	at_hello();
	script_default_grant();
	cli.grant.features &= (uint16_t)~FRAME_FEATURE_OOB;
	script_grant();
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_BAD_FRAME);
}

TEST(calls__fail__errno_of_that_stage)
{
	static const struct { const char *call; enum stage stage; } cases[] = {
		{ "ibv_modify_qp", STAGE_QP_EXCHANGE }, { "ibv_post_send", STAGE_QP_EXCHANGE },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		at_hello();
		grant();
		fake_fail_next(cases[i].call, ENOMEM);
		script_grant();
		client_until(cli.closed == 1);
		assert_int_equal(cli.fail.stage, cases[i].stage);
		client_assert_all_back();
		client_rig_again(state);
	}
}

TEST(grant__no_answer_to_the_proof__retries_exceeded)
{
	struct client_conn *c = at_proof();

	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_RETRY_EXC_ERR);
	client_until(cli.closed == 1);
	client_assert_failed(STAGE_QP_EXCHANGE, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
	client_assert_all_back();
}

TEST_EACH(client_rig_init, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
