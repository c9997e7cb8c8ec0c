/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/rdma.c and client/data.c: resolving, the server's proof, rejections,
 * messages, one-sided requests. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "common/wire/msg_tag.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

static void event(struct client_conn *c, enum rdma_cm_event_type type, int status)
{
	fake_cm_event(c->link.rc.id, type, status, 0, NULL, 0);
	client_turn();
}

/* Not established: there is nobody to disconnect from, and the end of the id tells the server. */
static void gave_up(void)
{
	client_turn();
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 0);
}

/* The server answers the disconnect. */
static void disconnected(struct client_conn *c)
{
	assert_int_equal(c->state, CLIENT_ST_CLOSING);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	event(c, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static const struct fake_post *last_post(void)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(n > 0);
	return &p[n - 1];
}

TEST(resolve__after_the_grant__from_the_device_to_the_granted_address)
{
	const struct fake_cm_call *r;

	client_at(CLIENT_ST_ROUTE_RESOLVE);
	r = fake_cm_last(FAKE_CM_RESOLVE_ADDR);
	assert_true(addr_same_host(&r->src, &cli.ctx->dev.addr));
	assert_true(addr_same_host(&r->dst, &cli.grant.rdma));
	assert_int_equal(addr_port(&r->dst), 7472);
	assert_int_equal(r->number, 30000);
	assert_int_equal(fake_cm_last(FAKE_CM_RESOLVE_ROUTE)->number, 30000);
}

static int create_qp_fails(const char *call)
{
	return strcmp(call, "ibv_create_qp") == 0 ? ENOMEM : 0;
}

TEST(resolve__calls_fail__errno_of_that_stage)
{
	static const struct {
		const char *call;
		enum client_state from;
		enum stage stage;
	} cases[] = {
		{ "rdma_create_id", CLIENT_ST_PSN_EXCHANGE, STAGE_ADDR_RESOLVE },
		{ "rdma_resolve_addr", CLIENT_ST_PSN_EXCHANGE, STAGE_ADDR_RESOLVE },
		{ "rdma_resolve_route", CLIENT_ST_ADDR_RESOLVE, STAGE_ROUTE_RESOLVE },
		{ "rdma_connect", CLIENT_ST_ROUTE_RESOLVE, STAGE_RDMA_CONNECT },
		{ "ibv_create_qp", CLIENT_ST_ROUTE_RESOLVE, STAGE_RDMA_CONNECT },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct client_conn *c;

		/* From the start, so that no queue pair is waiting in the pool. */
		fake_fault = strcmp(cases[i].call, "ibv_create_qp") == 0 ? create_qp_fails : NULL;
		c = client_at(cases[i].from);
		fake_fail_next(cases[i].call, ENOMEM);
		if (cases[i].from == CLIENT_ST_PSN_EXCHANGE) {
			script_default_grant();
			script_grant();
		} else if (cases[i].from == CLIENT_ST_ADDR_RESOLVE) {
			event(c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		} else {
			event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		}
		client_assert_failed(cases[i].stage, FAIL_ERRNO, ENOMEM);
		fake_fault = NULL;
		client_rig_again(state);
	}
}

TEST(resolve__error_events__their_status)
{
	static const struct {
		enum client_state at;
		enum rdma_cm_event_type type;
		enum stage stage;
	} cases[] = {
		{ CLIENT_ST_ADDR_RESOLVE, RDMA_CM_EVENT_ADDR_ERROR, STAGE_ADDR_RESOLVE },
		{ CLIENT_ST_ROUTE_RESOLVE, RDMA_CM_EVENT_ROUTE_ERROR, STAGE_ROUTE_RESOLVE },
		{ CLIENT_ST_RDMA_CONNECT, RDMA_CM_EVENT_CONNECT_ERROR, STAGE_RDMA_CONNECT },
		{ CLIENT_ST_RDMA_CONNECT, RDMA_CM_EVENT_UNREACHABLE, STAGE_RDMA_CONNECT },
		{ CLIENT_ST_LIVE, RDMA_CM_EVENT_UNREACHABLE, STAGE_TRAFFIC },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		event(client_at(cases[i].at), cases[i].type, -110);
		client_assert_failed(cases[i].stage, FAIL_CM_STATUS, -110);
		client_rig_again(state);
	}
}

TEST(resolve__through_another_device__no_device)
{
	static struct ibv_context other;
	struct client_conn *c;

	fake_cm.resolves_to = &other;
	c = client_at(CLIENT_ST_ADDR_RESOLVE);
	event(c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	client_assert_failed(STAGE_ADDR_RESOLVE, FAIL_PROTOCOL, PROTO_NO_DEVICE);
}

TEST(event__not_of_this_state__ignored)
{
	struct client_conn *c = client_at(CLIENT_ST_ADDR_RESOLVE);

	event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	event(c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	event(c, RDMA_CM_EVENT_ESTABLISHED, 0);
	event(c, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(c->state, CLIENT_ST_ADDR_RESOLVE);
	assert_int_equal(fake_cm_calls(FAKE_CM_CONNECT), 0);
}

TEST(connect__route_resolved__request_with_proof)
{
	const struct fake_cm_call *r;
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
	struct addr local, peer;
	struct auth_binding b;
	struct pdata_proof proof;
	uint8_t expected[AUTH_HMAC_BYTES];

	r = fake_cm_last(FAKE_CM_CONNECT);
	assert_int_equal(r->param.qp_num, rc_qpn(&c->link.rc));
	assert_true(r->param.private_data_len <= 56);
	assert_int_equal(r->param.initiator_depth, 1);
	assert_int_equal(r->param.responder_resources, 0);
	assert_int_equal(pdata_decode_proof(PDATA_REQUEST, r->private_data,
					    r->param.private_data_len, &proof),
			 0);
	assert_memory_equal(proof.session, cli.grant.session, FRAME_SESSION_BYTES);
	assert_int_equal(cm_addresses(c->link.rc.id, &local, &peer), 0);
	b = (struct auth_binding){ .session = cli.grant.session, .client_qpn = rc_qpn(&c->link.rc),
				   .client = &local, .server = &peer };
	assert_int_equal(auth_hmac(NULL, cli.keys.client, &b, expected), 0);
	assert_memory_equal(proof.hmac, expected, sizeof(expected));
}

/* The CM tells the server, whose answers then have it too. */
TEST(connect__traffic_class__told_before_the_address_is_resolved)
{
	cli.cfg.fabric = (struct cm_fabric){ .has_traffic_class = true, .traffic_class = 0xb8 };
	client_at(CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(fake_cm_calls(FAKE_CM_SET_TOS), 1);
	assert_int_equal(fake_cm_last(FAKE_CM_SET_TOS)->number, 0xb8);
	cli.cfg.fabric = (struct cm_fabric){ 0 };
}

TEST(connect__no_traffic_class__left_as_it_is)
{
	client_at(CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(fake_cm_calls(FAKE_CM_SET_TOS), 0);
}

TEST(response__right_proof__agreed_psns_and_first_message)
{
	struct client_conn *c;
	struct msg_header h;
	uint32_t qpn;

	cli.cfg.cm_psn = true;
	c = client_at(CLIENT_ST_FIRST_REPLY);
	qpn = rc_qpn(&c->link.rc);
	assert_int_equal(fake_cm_calls(FAKE_CM_ESTABLISH), 1);
	assert_int_equal(c->server_qpn, cli.server_qpn);
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_RTR)->attr.rq_psn, cli.grant.psn);
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_RTS)->attr.sq_psn, c->psn);
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_RTS)->attr.max_rd_atomic, 1);
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_RTR)->attr.max_dest_rd_atomic, 0);
	assert_int_equal(c->cm_psn, 0xc0ffee);
	/* Remote write for the server's liveness probe, which carries nothing; no remote read. */
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_INIT)->attr.qp_access_flags, 0);
	assert_int_equal(fake_modified_to(qpn, IBV_QPS_RTR)->attr.qp_access_flags,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(last_post()->length, MSG_HEADER_BYTES);
	assert_int_equal(msg_decode(last_post()->head, MSG_HEADER_BYTES, &h), 0);
	assert_int_equal(h.type, MSG_ECHO);
	assert_int_equal(c->head.in_flight, 1);
	assert_int_equal(cli.live, 0);
}

/* They prove nothing more. */
TEST(response__proof_checked__keys_wiped)
{
	static const struct auth_keys none;
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

	assert_memory_not_equal(&c->keys, &none, sizeof(none));
	client_trigger(c, CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(c->state, CLIENT_ST_FIRST_REPLY);
	assert_memory_equal(&c->keys, &none, sizeof(none));
}

static void assert_bad_proof(struct client_conn *c, const uint8_t *data, uint8_t bytes)
{
	script_response(c, data, bytes);
	assert_int_equal(fake_cm_calls(FAKE_CM_ESTABLISH), 0);
	gave_up();
	client_assert_failed(STAGE_RDMA_CONNECT, FAIL_PROTOCOL, PROTO_BAD_PROOF);
}

TEST(response__any_part_of_the_proof_wrong__bad_proof)
{
	/* version, kind, length, session, HMAC */
	static const size_t spoilt[] = { 0, 1, 3, 4, 19, 20, 51 };

	for (size_t i = 0; i < N_ELEMENTS(spoilt); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
		uint8_t data[196];

		script_proof(c, data);
		data[spoilt[i]] ^= 1;
		assert_bad_proof(c, data, sizeof(data));
		client_rig_again(state);
	}
}

TEST(response__proof_for_another_qp__bad_proof)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
	uint8_t data[196];

	script_proof(c, data);
	cli.server_qpn++;
	assert_bad_proof(c, data, sizeof(data));
}

/* A mirror: the client's own proof sent back as a reply. */
TEST(response__our_own_proof__bad_proof)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
	uint8_t data[196] = { 0 };

	memcpy(data, fake_cm_last(FAKE_CM_CONNECT)->private_data, PDATA_PROOF_BYTES);
	data[1] = PDATA_REPLY;
	assert_bad_proof(c, data, sizeof(data));
}

TEST(response__no_private_data__bad_proof)
{
	assert_bad_proof(client_at(CLIENT_ST_RDMA_CONNECT), NULL, 0);
}

TEST(response__psns_not_as_programmed__mismatch)
{
	struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
	uint8_t data[196];

	fake_device.psn_skew = 1;
	script_proof(c, data);
	script_response(c, data, sizeof(data));
	gave_up();
	client_assert_failed(STAGE_RDMA_CONNECT, FAIL_PROTOCOL, PROTO_PSN_MISMATCH);
}

/* Each call that the client makes after the response fails in turn. */
TEST(response__each_call_fails_in_turn__failed_and_released)
{
	unsigned k;

	for (k = 1; k < 30; k++) {
		struct client_conn *c;
		uint8_t data[196];
		struct cm_event e;

		cli.cfg.cm_psn = true;
		c = client_at(CLIENT_ST_RDMA_CONNECT);
		script_proof(c, data);
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, cli.server_qpn, data,
			      sizeof(data));
		assert_int_equal(cm_next_event(cli.ctx->cm, &e), 1);
		fake_fail_at(k, EPERM);
		client_on_cm_event(cli.ctx, &e);
		if (!fake_failed()) {
			assert_int_equal(c->state, CLIENT_ST_FIRST_REPLY);
			fake_fail_at(0, 0);
			break;
		}
		assert_int_equal(c->state, CLIENT_ST_CLOSING);
		/* The send comes after the connection is established. */
		if (strcmp(fake_failed(), "ibv_post_send") == 0)
			disconnected(c);
		else
			gave_up();
		client_until(cli.closed);
		assert_true(cli.fail.kind == FAIL_ERRNO || cli.fail.kind == FAIL_WC_STATUS);
		assert_int_equal(cli.fail.stage, strcmp(fake_failed(), "ibv_post_send") == 0 ?
				 STAGE_FIRST_REPLY : STAGE_RDMA_CONNECT);
		client_assert_all_back();
		client_rig_again(state);
	}
	/* The path, RTR, RTS, the query, the CM's own PSN, established, and the first message. */
	assert_int_equal(k, 8);
}

/* The server's answer has come, and before it is acted on the server ends the connection: rdmacm does not know the id's
 * state any more. That is the server's doing, and another attempt may follow. */
TEST(connect__server_gone_before_its_answer_is_taken__closed_by_peer)
{
	static const char *const calls[] = { "rdma_init_qp_attr", "rdma_establish" };

	for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
		uint8_t data[196];
		struct cm_event e;

		script_proof(c, data);
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, cli.server_qpn, data, sizeof(data));
		assert_int_equal(cm_next_event(cli.ctx->cm, &e), 1);
		fake_fail_next(calls[i], EINVAL);
		client_on_cm_event(cli.ctx, &e);
		assert_int_equal(c->state, CLIENT_ST_CLOSING);
		gave_up();
		client_assert_failed(STAGE_RDMA_CONNECT, FAIL_CLOSED, 0);
		client_rig_again(state);
	}
}

TEST(rejected__by_the_server__its_code)
{
	static const uint16_t codes[] = { REFUSE_BAD_SESSION, REFUSE_BAD_HMAC, REFUSE_BAD_ADDRESS,
					  REFUSE_NO_RESOURCES, REFUSE_INTERNAL };

	for (size_t i = 0; i < N_ELEMENTS(codes); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);
		uint8_t data[148] = { 0 };

		pdata_encode_reject(codes[i], data);
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_REJECTED, CM_REJECT_CONSUMER, 0, data,
			      sizeof(data));
		client_assert_failed(STAGE_RDMA_CONNECT, FAIL_REFUSED, codes[i]);
		client_rig_again(state);
	}
}

TEST(rejected__without_the_servers_words__the_cms_reason)
{
	static const struct { int reason; uint8_t data[8]; uint8_t bytes; } cases[] = {
		{ 8, { 0 }, 0 },				/* nobody listens */
		{ 28, { 0 }, 0 },				/* consumer, no data */
		{ 28, { 1, 3, 0 }, 3 },				/* too short */
		{ 28, { 9, 9, 9, 9, 9, 9, 9, 9 }, 8 },		/* not rampart's */
		{ 9, { 1, 3, 0, 8, 0, 16, 0, 0 }, 8 },		/* not the consumer's reason */
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct client_conn *c = client_at(CLIENT_ST_RDMA_CONNECT);

		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_REJECTED, cases[i].reason, 0, cases[i].data,
			      cases[i].bytes);
		client_assert_failed(STAGE_RDMA_CONNECT, FAIL_CM_STATUS, cases[i].reason);
		client_rig_again(state);
	}
}

TEST(disconnected__by_the_server__closed_by_peer)
{
	static const struct { enum client_state at; enum stage stage; } cases[] = {
		{ CLIENT_ST_FIRST_REPLY, STAGE_FIRST_REPLY }, { CLIENT_ST_LIVE, STAGE_TRAFFIC },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		event(client_at(cases[i].at), RDMA_CM_EVENT_DISCONNECTED, 0);
		client_assert_failed(cases[i].stage, FAIL_CLOSED, 0);
		client_rig_again(state);
	}
}

TEST(device_removed__context_is_broken)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	event(c, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_true(cli.ctx->pump.broken);
}

TEST(messages__sent_and_answered__told_with_sequence_and_size)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	for (uint64_t i = 1; i <= 20; i++) {
		struct msg_header h;

		client_rig_send(c, 300, i * UINT64_C(0x100000001));
		assert_int_equal(msg_decode(last_post()->head, 300, &h), 0);
		assert_int_equal(h.type, MSG_ECHO);
		assert_true(h.sequence == i * UINT64_C(0x100000001));
		assert_int_equal(c->head.in_flight, 1);
		fake_complete_sends(c->link.rc.qp, 2, IBV_WC_SUCCESS);
		assert_true(script_reply(c, 300, i * UINT64_C(0x100000001)));
		assert_int_equal(cli.messages, i);
		assert_true(cli.sequence == i * UINT64_C(0x100000001));
		assert_int_equal(cli.bytes, 300);
		assert_int_equal(c->head.in_flight, 0);
	}
}

/* The server's side of the tags: as it would derive them, from the same keys. */
static struct msg_tags *add_tags(struct client_conn *c)
{
	uint8_t keys[2 * MSG_TAG_KEY_BYTES] = { 1, 2, 3 }, servers[2 * MSG_TAG_KEY_BYTES] = { 1, 2, 3 };
	struct msg_tags *tags;

	assert_int_equal(msg_tags_new(keys, true, &c->tags), 0);
	assert_int_equal(msg_tags_new(servers, false, &tags), 0);
	return tags;
}

/* Each is whole, and they take one credit. Then one by itself: the tags' order goes on. */
TEST(seal__several_in_a_buffer__one_send_of_whole_messages)
{
	static const uint32_t sizes[] = { 100, 36, 131 };
	uint32_t buf, seed, at = 0, n;
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	struct msg_tags *tags;
	struct msg_header h;
	uint8_t *data;

	tags = add_tags(c);
	fake_posts_forget();
	buf = ep_buf_get(cli.ctx->ep);
	data = ep_buf(cli.ctx->ep, buf);
	for (uint64_t i = 0; i < N_ELEMENTS(sizes); i++) {
		h = (struct msg_header){ .type = MSG_DATA, .flags = MSG_FLAG_SUM, .sequence = 7 + i };
		assert_true(client_seal(c, &h, buf, at, sizes[i]));
		at += sizes[i];
	}
	assert_int_equal(c->head.in_flight, 0);
	client_post(c, buf, at, true);
	assert_int_equal(c->head.in_flight, 1);
	fake_posts(&n);
	assert_int_equal(n, 1);
	assert_int_equal(last_post()->length, 267);
	seed = msg_sum_seed(c->head.grant.session, sizeof(c->head.grant.session));
	for (uint32_t i = at = 0; at < 267; at += h.length, i++) {
		assert_int_equal(msg_decode_at(data, 267, at, &h), 0);
		assert_int_equal(h.length, sizes[i]);
		assert_int_equal(h.flags, MSG_FLAG_SUM | MSG_FLAG_TAG);
		assert_true(h.sequence == 7 + i);
		assert_true(msg_is_intact(seed, data + at, sizes[i] - MSG_TAG_BYTES));
		assert_true(msg_tag_check(tags, data + at, sizes[i]));
	}
	client_rig_send(c, 32, 10);
	assert_int_equal(c->head.in_flight, 2);
	assert_true(msg_tag_check(tags, last_post()->head, 32));
	msg_tags_free(tags);
}

static void assert_bad_reply(struct client_conn *c)
{
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
	assert_int_equal(cli.messages, 0);
}

TEST(reply__nothing_in_flight__bad_message)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	assert_true(script_reply(c, 64, 1));
	assert_bad_reply(c);
}

TEST(reply__bad_header__bad_message)
{
	static const struct msg_header headers[] = {
		{ MSG_ECHO, 0, 1, 64, 1 }, { (enum msg_type)9, 0, 1, 64, 1 }, { MSG_REPLY, 0, 1, 63, 1 },
		{ MSG_REPLY, MSG_FLAG_ACK, 1, 64, 1 }, { MSG_DATA, 0, 1, 64, 1 }, { MSG_CREDIT, 0, 0, 64, 1 },
		{ MSG_CREDIT, 0, 2, 64, 1 }, { MSG_PUSH, 0, 1, 64, 1 }, { MSG_PUSHED, MSG_FLAG_SUM, 1, 64, 1 },
	};

	for (size_t i = 0; i < N_ELEMENTS(headers); i++) {
		struct client_conn *c = client_at(CLIENT_ST_LIVE);
		uint8_t data[64] = { 0 };

		client_rig_send(c, 64, 1);
		msg_encode(&headers[i], data);
		assert_true(fake_deliver(c->link.rc.qp, data, sizeof(data)));
		client_turn();
		assert_bad_reply(c);
		client_rig_again(state);
	}
}

TEST(completions__with_an_error__failed_with_its_status)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	client_rig_send(c, 300, 1);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_turn();
	client_rig_send(c, 300, 2);
	fake_complete_sends(c->link.rc.qp, 1, IBV_WC_RETRY_EXC_ERR);
	client_turn();
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
}

TEST(receive__with_an_error__failed_with_its_status)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	assert_true(fake_deliver_error(c->link.rc.qp, IBV_WC_LOC_LEN_ERR));
	client_turn();
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_LOC_LEN_ERR);
}

TEST(send__cannot_be_posted__failed)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);

	fake_fail_next("ibv_post_send", ENOMEM);
	client_rig_send(c, 64, 1);
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

static const struct frame_window window = { UINT64_C(0x7e0000002000), 8192, 0xfeed };

static struct client_conn *live_with_window(void)
{
	cli.window = &window;
	return client_at(CLIENT_ST_LIVE);
}

static bool answer(struct client_conn *c, const struct msg_header *h)
{
	uint8_t data[64] = { 0 };
	bool ok;

	msg_encode(h, data);
	ok = fake_deliver(c->link.rc.qp, data, h->length);
	client_turn();
	return ok;
}

TEST(push__asked_for_and_answered__told_with_its_sequence)
{
	struct msg_header pushed = { .type = MSG_PUSHED, .credits = 1, .length = MSG_HEADER_BYTES, .sequence = 77 };
	struct msg_header h;
	struct msg_push push = { 4000, 8000, 96 };
	const uint32_t bytes = MSG_HEADER_BYTES + MSG_PUSH_BYTES;
	struct client_conn *c;

	c = live_with_window();
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION | FRAME_FEATURE_WINDOW);
	assert_memory_equal(&cli.hello.window, &window, sizeof(window));
	client_push(c, &push, 77);
	assert_int_equal(last_post()->opcode, IBV_WR_SEND);
	assert_int_equal(last_post()->length, bytes);
	assert_int_equal(msg_decode(last_post()->head, bytes, &h), 0);
	assert_int_equal(h.type, MSG_PUSH);
	assert_int_equal(h.sequence, 77);
	/* Both offsets, in the bytes that the fake keeps. */
	assert_memory_equal(last_post()->head + 16, "\0\0\0\0\0\0\x0f\xa0\0\0\0\0\0\0\x1f\x40", 16);
	assert_int_equal(c->head.in_flight, 1);
	assert_true(answer(c, &pushed));
	assert_int_equal(cli.pushed, 1);
	assert_true(cli.sequence == 77);
	assert_int_equal(c->head.in_flight, 0);
	/* Another one was not asked for. */
	assert_true(answer(c, &pushed));
	assert_int_equal(cli.pushed, 1);
	assert_bad_reply(c);
}

TEST(push__no_buffer_or_cannot_be_posted__failed)
{
	struct msg_push push = { 0, 0, 1 };
	struct client_conn *c;
	uint32_t taken[4096], n = 0;

	c = live_with_window();
	while ((taken[n] = ep_buf_get(cli.ctx->ep)) != EP_NO_BUF)
		n++;
	client_push(c, &push, 1);
	while (n)
		ep_buf_put(cli.ctx->ep, taken[--n]);
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_ERRNO, ENOBUFS);
	client_rig_again(state);
	c = live_with_window();
	fake_fail_next("ibv_post_send", ENOMEM);
	client_push(c, &push, 1);
	disconnected(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

TEST(one_sided__within_the_region__posted_there)
{
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	struct client_counts before, after;
	uint32_t buf;

	client_get_counts(cli.ctx, &before);
	buf = ep_buf_get(cli.ctx->ep);
	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_WRITE, buf, 96, 4000), 0);
	assert_int_equal(last_post()->opcode, IBV_WR_RDMA_WRITE);
	assert_true(last_post()->remote_addr == cli.grant.region_addr + 4000);
	assert_int_equal(last_post()->rkey, cli.grant.region_rkey);
	assert_int_equal(last_post()->length, 96);
	fake_complete_sends(c->link.rc.qp, 9, IBV_WC_SUCCESS);
	client_turn();
	assert_int_equal(cli.one_sided, 1);
	client_get_counts(cli.ctx, &after);
	assert_int_equal(after.one_sided_bytes - before.one_sided_bytes, 96);
	assert_int_equal(after.bytes_sent - before.bytes_sent, 96);
	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_READ, buf, 0, 4096), 0);
	ep_buf_put(cli.ctx->ep, buf);
}

TEST(one_sided__outside_the_region__einval)
{
	static const struct { uint32_t bytes; uint64_t offset; } cases[] = {
		{ 97, 4000 }, { 1, 4096 }, { 0, 4097 }, { 1, UINT64_MAX }, { 2, UINT64_MAX - 1 },
		{ UINT32_MAX, 0 }, { UINT32_MAX, 2 }, { 4097, 0 },
	};
	struct client_conn *c = client_at(CLIENT_ST_LIVE);
	uint32_t n;

	fake_posts_forget();
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_int_equal(
			client_rig_rma(c, IBV_WR_RDMA_READ, 0, cases[i].bytes, cases[i].offset),
			-EINVAL);
	fake_posts(&n);
	assert_int_equal(n, 0);
}

TEST(one_sided__no_region_or_not_live__refused)
{
	struct client_conn *c;

	cli.cfg.region = false;
	c = client_at(CLIENT_ST_LIVE);
	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_READ, 0, 0, 0), -EINVAL);
	client_close(c);
	assert_int_equal(client_rig_rma(c, IBV_WR_RDMA_READ, 0, 0, 0), -ENOTCONN);
}

TEST_EACH(client_rig_init, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
