/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/accept.c: which connection requests are accepted, and every rejection. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/rdma/cm.h"
#include "common/hist/hist.h"
#include "common/rdma/region.h"
#include "server/shard/accept.h"
#include "server/tables/session.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

/* The last request was rejected with this code, its id is gone, and nothing was accepted. */
static void assert_rejected(enum refuse_code code)
{
	assert_int_equal(peer_reject_code(), code);
	assert_int_equal(server_refused(code), 1);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_REFUSED, (int)code), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 0);
	assert_int_equal(fake_cm_ids(), 1);
}

static struct peer peer;
static struct conn *conn;	/* the server's object of it */

static int set_up_granted(void **state)
{
	int ret = server_rig_init(state);

	conn = server_start_granted(&peer, 0);
	return ret;
}

static int set_up_accepting(void **state)
{
	int ret = server_rig_init(state);

	conn = server_start_accepting(&peer, 0);
	return ret;
}

/* They begin with `peer`, which has its GRANT, or has asked to connect. */
#define GRANTED_TEST(f) TEST_WITH(f, set_up_granted, server_rig_stop)
#define ACCEPTING_TEST(f) TEST_WITH(f, set_up_accepting, server_rig_stop)

static uint32_t accepted_qpn(void)
{
	return fake_cm_last(FAKE_CM_ACCEPT)->param.qp_num;
}

/* How the accepted queue pair was taken to this state. */
static const struct ibv_qp_attr *accepted_to(enum ibv_qp_state state)
{
	return &fake_modified_to(accepted_qpn(), state)->attr;
}

ACCEPTING_TEST(request__right_proof__accepted_with_the_servers)
{
	struct auth_binding b;
	struct pdata_proof proof;
	const struct fake_cm_call *c;
	uint8_t expected[AUTH_HMAC_BYTES];

	c = fake_cm_last(FAKE_CM_ACCEPT);
	assert_ptr_equal(c->id, peer.id);
	assert_int_equal(pdata_decode_proof(PDATA_REPLY, c->private_data, c->param.private_data_len, &proof), 0);
	assert_memory_equal(proof.session, peer.grant.session, FRAME_SESSION_BYTES);
	b = (struct auth_binding){ .session = peer.grant.session,
				   .client_qpn = peer.qpn,
				   .server_qpn = c->param.qp_num,
				   .client = &peer.rdma,
				   .server = &peer.grant.rdma };
	assert_int_equal(auth_hmac(NULL, peer.keys.server, &b, expected), 0);
	assert_memory_equal(proof.hmac, expected, AUTH_HMAC_BYTES);
	server_only(CONN_ST_ACCEPTING);
	assert_int_equal(session_count(srv.shard->sessions), 0);
}

ACCEPTING_TEST(request__right_proof__agreed_psns_in_the_qp)
{
	assert_int_equal(fake_qp_state(fake_qp_of(accepted_qpn())), IBV_QPS_RTS);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->rq_psn, peer.psn);
	assert_int_equal(accepted_to(IBV_QPS_RTS)->sq_psn, peer.grant.psn);
	assert_int_equal(accepted_to(IBV_QPS_INIT)->qp_access_flags, 0);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->qp_access_flags, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(fake_cm_last(FAKE_CM_ACCEPT)->param.responder_resources, 0);
	assert_int_equal(counter_get(&srv.shard->stats.psn_verified), 1);
	assert_int_equal(hist_count(srv.shard->stats.stages[SS_QP_SETUP]), 1);
}

TEST(request__with_region__window_bound_before_the_accept)
{
	const struct fake_post *posts;
	struct peer p;
	uint32_t n;

	server_start_accepting(&p, FRAME_FEATURE_REGION);
	posts = fake_posts(&n);
	assert_int_equal(n, 1);
	assert_int_equal(posts[0].opcode, IBV_WR_BIND_MW);
	assert_int_equal(posts[0].qpn, accepted_qpn());
	assert_int_equal(posts[0].rkey, p.grant.region_rkey);
	assert_true(posts[0].bind.addr == p.grant.region_addr);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->max_dest_rd_atomic, 16);
	assert_int_equal(accepted_to(IBV_QPS_RTS)->max_rd_atomic, 0);
	assert_int_equal(fake_cm_last(FAKE_CM_ACCEPT)->param.responder_resources, 16);
}

/* A client is granted the reads that it asks for, within the limits of device and server, and none without a region. */
TEST(request__reads_asked_for__granted_within_limits)
{
	static const struct { uint8_t asked; int device; bool region; uint8_t granted; } cases[] = {
		{ 0, 128, true, 0 }, { 1, 128, true, 1 }, { 16, 128, true, 16 }, { 17, 128, true, 16 },
		{ 255, 128, true, 16 }, { 16, 4, true, 4 }, { 16, 128, false, 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;

		fake_device.attr.max_qp_rd_atom = cases[i].device;
		server_rig_start();
		fake_cm.rd_atomic = cases[i].asked;
		peer_get_grant(&p, cases[i].region ? FRAME_FEATURE_REGION : 0);
		peer_prove(&p);
		assert_int_equal(fake_cm_last(FAKE_CM_ACCEPT)->param.responder_resources, cases[i].granted);
		assert_int_equal(accepted_to(IBV_QPS_RTR)->max_dest_rd_atomic, cases[i].granted);
		server_rig_again(state);
	}
}

TEST(request__device_without_atomics__none_granted)
{
	struct peer p;
	uint32_t n;

	fake_device.attr.atomic_cap = IBV_ATOMIC_NONE;
	server_start_accepting(&p, FRAME_FEATURE_REGION);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->qp_access_flags,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(fake_posts(&n)[0].bind.mw_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

TEST(request__path_mtu_option__no_more_than_that)
{
	struct peer p;

	srv.cfg.tuning.path_mtu = 1;
	server_start_accepting(&p, 0);
	assert_int_equal(accepted_to(IBV_QPS_RTR)->path_mtu, IBV_MTU_256);
}

/* They prove nothing more, so a leak of the server's memory later on does not give them away. */
GRANTED_TEST(request__accepted__proof_keys_wiped)
{
	static const struct auth_keys none;

	assert_memory_equal(&conn->keys, &peer.keys, sizeof(none));
	peer_prove(&peer);
	assert_memory_equal(&server_only(CONN_ST_ACCEPTING)->keys, &none, sizeof(none));
	peer_establish(&peer);
	assert_memory_equal(&server_only(CONN_ST_LIVE)->keys, &none, sizeof(none));
}

TEST(established__after_the_accept__live)
{
	struct peer p;

	server_start_live(&p, 0);
	assert_int_equal(counter_get(&srv.shard->stats.established), 1);
	assert_int_equal(hist_count(srv.shard->stats.stages[SS_ACCEPT_TO_ESTABLISHED]), 1);
	peer_establish(&p);
	assert_int_equal(counter_get(&srv.shard->stats.established), 1);
}

GRANTED_TEST(request__no_or_foreign_private_data__bad_request)
{
	uint8_t data[56] = { 0 };

	peer_request(&peer, data);
	assert_rejected(REFUSE_BAD_REQUEST);
	/* The session was not touched. */
	server_only(CONN_ST_GRANTED);
	peer_prove(&peer);
	server_only(CONN_ST_ACCEPTING);
}

GRANTED_TEST(request__reply_kind_or_other_version__bad_request)
{
	uint8_t data[56];

	for (int i = 0; i < 2; i++) {
		peer_proof(&peer, data);
		data[i] = (uint8_t)(1 + i);	/* version 1, a reply */
		peer_request(&peer, data);
	}
	assert_int_equal(server_refused(REFUSE_BAD_REQUEST), 2);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 0);
	server_only(CONN_ST_GRANTED);
}

GRANTED_TEST(request__unknown_session__bad_session)
{
	peer.grant.session[15] ^= 1;
	peer_prove(&peer);
	assert_rejected(REFUSE_BAD_SESSION);
	server_only(CONN_ST_GRANTED);
}

TEST(request__replayed__second_is_bad_session)
{
	struct peer p;

	server_start_live(&p, 0);
	peer_prove(&p);
	assert_int_equal(server_refused(REFUSE_BAD_SESSION), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 1);
	server_only(CONN_ST_LIVE);
}

SERVED_TEST(request__after_the_session_expired__bad_session)
{
	struct peer p;

	peer_get_grant(&p, FRAME_FEATURE_REGION);
	server_expire(server_only(CONN_ST_GRANTED));
	peer_prove(&p);
	assert_rejected(REFUSE_BAD_SESSION);
}

/* CM events come before timers: the request is found first, but it waited until its session was over. */
GRANTED_TEST(request__expired_while_it_waited__bad_session)
{
	ev_timer_stop(srv.shard->loop, &conn->deadline);
	ev_feed_event(srv.shard->loop, &conn->deadline, EV_TIMER);
	peer_prove(&peer);
	assert_rejected(REFUSE_BAD_SESSION);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0), 1);
	server_assert_all_back();
}

/* The client's CM refuses the server's queue pair number. Its kernel then repeats the request, without telling it. */
ACCEPTING_TEST(request__after_its_cm_refused_the_number__stale)
{
	uint8_t data[56];
	uint32_t qpn;

	peer_proof(&peer, data);
	qpn = accepted_qpn();
	fake_cm_event(peer.id, RDMA_CM_EVENT_REJECTED, FAIL_CM_STALE, 0, NULL, 0);
	server_until(server_n(CONN_ST_FREE) == srv.cfg.shard_conns);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_CM_STATUS, FAIL_CM_STALE), 1);
	peer_request(&peer, data);
	peer_request(&peer, data);
	assert_int_equal(server_refused(REFUSE_STALE), 2);
	assert_int_equal(server_refused(REFUSE_BAD_SESSION), 0);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 1);
	server_assert_all_back();
	assert_null(fake_qp_of(qpn));
	/* Another session of the same client is served, with another number. */
	peer_go_live(&peer, 0);
	assert_int_not_equal(peer.qp->qp_num, qpn);
}

/* Only the number of a queue pair whose peer said goodbye is used again. */
TEST(disconnect__answered_or_not__number_used_again_or_not)
{
	static const struct { bool answered; int status; bool reused; } cases[] = {
		{ true, 0, true }, { true, -ETIMEDOUT, false }, { false, 0, false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;
		struct conn *c = server_start_live(&p, 0);
		uint32_t qpn = p.qp->qp_num;

		conn_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		if (cases[i].answered)
			peer_cm_event(&p, RDMA_CM_EVENT_DISCONNECTED, cases[i].status);
		else
			server_expire(c);
		server_until(server_n(CONN_ST_FREE) == srv.cfg.shard_conns);
		server_assert_all_back();
		assert_int_equal(fake_qp_of(qpn) != NULL, cases[i].reused);
		server_rig_again(state);
	}
}

/* A request that is right but for what `spoil` does to it. */
struct spoilt {
	void (*spoil)(struct peer *p, uint8_t *data);
	enum refuse_code code;
};

static void spoilt_test(void **state)
{
	const struct spoilt *t = *state;
	struct peer p;
	uint8_t data[56];

	server_start_granted(&p, FRAME_FEATURE_REGION);
	peer_proof(&p, data);
	t->spoil(&p, data);
	peer_request(&p, data);
	assert_rejected(t->code);
	/* One try: the session is gone, and all that was granted for it. */
	assert_int_equal(server_closed(CLOSE_REFUSED), 1);
	server_assert_all_back();
	peer_prove(&p);
	assert_int_equal(server_refused(REFUSE_BAD_SESSION), 1);
}

static void spoil_hmac(struct peer *p, uint8_t *data)
{
	(void)p;
	data[51] ^= 0x80;
}

static void other_qpn(struct peer *p, uint8_t *data)
{
	(void)data;
	p->qpn++;
}

static void other_port(struct peer *p, uint8_t *data)
{
	(void)data;
	addr_set_port(&p->rdma, 1234);
}

static void servers_key(struct peer *p, uint8_t *data)
{
	struct auth_keys keys = p->keys;

	memcpy(p->keys.client, p->keys.server, AUTH_KEY_BYTES);
	peer_proof(p, data);
	p->keys = keys;
}

/* The claimed address is another, and the proof is made for it. */
static void other_claim(struct peer *p, uint8_t *data)
{
	p->rdma = unit_addr("127.0.0.2", 50000);
	peer_proof(p, data);
}

/* A claim that is not even where packets would go: the path alone proves nothing. */
static void other_claim_right_path(struct peer *p, uint8_t *data)
{
	other_claim(p, data);
	fake_cm.path_peer = p->local;
}

/* The claim is right but packets would go elsewhere. */
static void other_path(struct peer *p, uint8_t *data)
{
	(void)p;
	(void)data;
	fake_cm.path_peer = unit_addr("10.9.9.9", 0);
}

static void no_ip_path(struct peer *p, uint8_t *data)
{
	(void)p;
	(void)data;
	fake_cm.global_route = false;
}

/* A GID that every RoCE port has besides those of its IP addresses. */
static void link_local_path(struct peer *p, uint8_t *data)
{
	(void)p;
	(void)data;
	fake_cm.path_peer = unit_addr("fe80::1", 0);
}

#define SPOILT_TEST(name, ...) { name, spoilt_test, server_rig_init, server_rig_stop, &(struct spoilt){ __VA_ARGS__ } }
static const struct CMUnitTest spoilt_tests[] = {
	SPOILT_TEST("request__one_bit_of_the_hmac_wrong__bad_hmac", spoil_hmac, REFUSE_BAD_HMAC),
	SPOILT_TEST("request__proof_for_another_qp__bad_hmac", other_qpn, REFUSE_BAD_HMAC),
	SPOILT_TEST("request__proof_for_another_port__bad_hmac", other_port, REFUSE_BAD_HMAC),
	SPOILT_TEST("request__with_the_servers_key__bad_hmac", servers_key, REFUSE_BAD_HMAC),
	SPOILT_TEST("request__from_another_address_than_tls__bad_address", other_claim, REFUSE_BAD_ADDRESS),
	SPOILT_TEST("request__claims_another_address_than_its_path__bad_address", other_claim_right_path,
		    REFUSE_BAD_ADDRESS),
	SPOILT_TEST("request__path_leads_elsewhere__bad_address", other_path, REFUSE_BAD_ADDRESS),
	SPOILT_TEST("request__ethernet_path_without_a_gid__bad_address", no_ip_path, REFUSE_BAD_ADDRESS),
	SPOILT_TEST("request__ethernet_path_to_a_gid_without_ipv4__bad_address", link_local_path, REFUSE_BAD_ADDRESS),
};
TEST_TABLE(spoilt_tests)

/* InfiniBand has no IP GIDs; the claim is all there is. */
TEST(request__path_without_an_address__claim_suffices)
{
	struct peer p;

	fake_device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	server_rig_start();
	no_ip_path(NULL, NULL);
	peer_get_grant(&p, 0);
	peer_prove(&p);
	server_only(CONN_ST_ACCEPTING);
}

struct failure {
	const char *call;
	int err;
	uint16_t features;
	enum refuse_code code;
};

static void failure_test(void **state)
{
	const struct failure *t = *state;
	struct peer p;

	server_start_granted(&p, t->features);
	fake_fail_next(t->call, t->err);
	peer_prove(&p);
	assert_string_equal(fake_failed(), t->call);
	assert_int_equal(server_refused(t->code), 1);
	assert_int_equal(server_closed(CLOSE_FAILED), 1);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_ERRNO, t->err), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 0);
	server_assert_all_back();
}

#define FAILURE_TEST(name, ...) { name, failure_test, server_rig_init, server_rig_stop, \
				  &(struct failure){ __VA_ARGS__ } }
static const struct CMUnitTest failure_tests[] = {
	FAILURE_TEST("request__accept_fails__rejected_and_all_released",
		          "rdma_accept", EINVAL, FRAME_FEATURE_REGION, REFUSE_INTERNAL),
	FAILURE_TEST("request__attributes_fail__rejected_and_all_released",
		          "ibv_modify_qp", EIO, 0, REFUSE_INTERNAL),
	FAILURE_TEST("request__bind_fails__rejected_and_all_released",
		          "ibv_post_send", ENOMEM, FRAME_FEATURE_REGION, REFUSE_NO_RESOURCES),
};
TEST_TABLE(failure_tests)

SERVED_TEST(request__memory_is_short__a_line_a_second)
{
	server_log_keep();
	for (int i = 0; i < 8; i++) {
		struct peer p;

		peer_get_grant(&p, FRAME_FEATURE_REGION);
		fake_fail_next("rdma_accept", ENOMEM);
		peer_prove(&p);
	}
	server_log_assert_a_line_a_second();
	assert_int_equal(server_refused(REFUSE_NO_RESOURCES), 8);
}

TEST(request__psns_not_as_programmed__protocol_failure)
{
	struct peer p;

	fake_device.psn_skew = 5;
	server_start_granted(&p, 0);
	peer_prove(&p);
	assert_int_equal(server_refused(REFUSE_INTERNAL), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 0);
	/* Counted once, as what it was. */
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_REFUSED, REFUSE_INTERNAL), 0);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_PROTOCOL, PROTO_PSN_MISMATCH), 1);
	assert_int_equal(counter_get(&srv.shard->stats.psn_mismatches), 1);
	assert_int_equal(counter_get(&srv.shard->stats.psn_verified), 0);
	server_assert_all_back();
}

/* Every call of the accept path fails in turn. */
#define ARMING 6	/* which call that is */

TEST(request__each_call_fails_in_turn__never_a_leak)
{
	unsigned k;

	server_rig_start();
	for (k = 1; k < 60; k++) {
		struct cm_event e;
		struct peer p;
		uint8_t data[56];
		int ret;

		peer_get_grant(&p, FRAME_FEATURE_REGION);
		peer_proof(&p, data);
		p.id = fake_cm_request(srv.shard->listener, &p.rdma, p.qpn, data, 56);
		fake_fail_at(k, EIO);
		/* The event only: the loop's own calls are not meant. */
		ret = cm_next_event(srv.shard->cm, &e);
		if (ret == 1)
			accept_on_cm_event(srv.shard, &e);
		else
			assert_int_equal(ret, -EIO);
		if (!fake_failed()) {
			fake_fail_at(0, 0);
			break;
		}
		fake_fail_at(0, 0);
		server_turns(3);
		if (server_n(CONN_ST_GRANTED))
			conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
		/* An event that could not be fetched is still there, and is handled the next time. A queue that could
		 * not be armed for the bind's completion is swept. */
		assert_int_equal(server_n(CONN_ST_ACCEPTING), k == 1 || k == ARMING);
		if (k == 1 || k == ARMING) {
			conn_close(server_only(CONN_ST_ACCEPTING), CLOSE_DRAINING);
			fake_cm_event(p.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
			/* The beacon follows the bind's completion. */
			server_until(server_n(CONN_ST_FREE) == srv.shard->cfg->shard_conns);
		}
		server_assert_all_back();
	}
	/* The event, the path, RTR, RTS, the query, arming, the window's bind, and the accept. */
	assert_int_equal(k, 9);
	server_only(CONN_ST_ACCEPTING);
}

TEST(request__no_qp_left__no_resources)
{
	struct qp_pool_counts q;
	struct peer p;

	server_rig_start();
	fake_device.attr.max_qp = (int)fake_qps();
	for (qp_pool_get_counts(srv.shard->qps, &q); q.free; q.free--) {
		uint32_t slot;

		assert_int_equal(qp_pool_get(srv.shard->qps, 0, &slot), 0);
	}
	peer_get_grant(&p, 0);
	peer_prove(&p);
	assert_int_equal(server_refused(REFUSE_NO_RESOURCES), 1);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_ERRNO, ENOMEM), 1);
}

GRANTED_TEST(request__reject_fails_too__no_matter)
{
	uint8_t data[56] = { 0 };

	fake_fail_next("rdma_reject", EINVAL);
	peer_request(&peer, data);
	assert_int_equal(fake_cm_ids(), 1);
	server_only(CONN_ST_GRANTED);
}

TEST(event__rejected_or_unreachable_while_accepting__failed)
{
	static const struct { enum rdma_cm_event_type type; int status; } cases[] = {
		{ RDMA_CM_EVENT_REJECTED, 10 }, { RDMA_CM_EVENT_UNREACHABLE, -110 },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -22 },
	};

	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct peer p;

		peer_get_grant(&p, FRAME_FEATURE_REGION);
		peer_prove(&p);
		peer_cm_event(&p, cases[i].type, cases[i].status);
		assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_CM_STATUS, cases[i].status), 1);
		/* The CM is done with it: no disconnect is owed. */
		assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 0);
		server_assert_all_back();
	}
}

SERVED_TEST(event__unreachable_on_a_live_one__failed_in_traffic)
{
	struct peer p;

	peer_go_live(&p, 0);
	peer_cm_event(&p, RDMA_CM_EVENT_UNREACHABLE, -113);
	assert_int_equal(server_failed(STAGE_TRAFFIC, FAIL_CM_STATUS, -113), 1);
}

ACCEPTING_TEST(event__disconnected_before_established__peer_left)
{
	peer_disconnect(&peer);
	assert_int_equal(server_closed(CLOSE_PEER_LEFT), 1);
	server_assert_all_back();
}

ACCEPTING_TEST(event__established_while_closing__stays_closing)
{
	conn_close(conn, CLOSE_DRAINING);
	peer_establish(&peer);
	assert_int_equal(conn->state, CONN_ST_CLOSING);
	assert_int_equal(counter_get(&srv.shard->stats.established), 0);
	peer_disconnect(&peer);
	server_assert_all_back();
}

TEST(event__device_removed__the_shard_stops_as_broken)
{
	server_rig_start();
	fake_cm_event(srv.shard->listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, 0, NULL, 0);
	server_turn();
	assert_true(srv.shard->pump.broken);
	assert_int_equal(pump_run(&srv.shard->pump), -EIO);
}

TEST(event__others__ignored)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,    RDMA_CM_EVENT_ADDR_ERROR,
		RDMA_CM_EVENT_ROUTE_RESOLVED,   RDMA_CM_EVENT_ROUTE_ERROR,
		RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ADDR_CHANGE,
		RDMA_CM_EVENT_TIMEWAIT_EXIT,
	};
	struct peer p;

	server_start_live(&p, 0);
	for (size_t i = 0; i < N_ELEMENTS(types); i++)
		fake_cm_event(p.id, types[i], 0, 0, NULL, 0);
	server_turns(3);
	server_only(CONN_ST_LIVE);
	assert_int_equal(fake_cm_acked(), 2 + N_ELEMENTS(types));
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 0);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
