/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/cm.c: the path of a connection, and the queue pair programmed for it. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/rdma/cm.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

static struct ibv_qp *qp;	/* of the pool, in RESET */
static struct cm_path path;	/* the id's */

static int set_up_qp(void **state)
{
	uint32_t slot;

	if (verbs_rig_init_cm(state))
		return -1;
	verbs_rig_open();
	assert_int_equal(qp_pool_get(rig.qps, 0, &slot), 0);
	qp = qp_pool_qp(rig.qps, slot);
	assert_int_equal(cm_get_path(rig.id, &path), 0);
	return 0;
}

static void reset(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static const struct fake_modify *programmed(enum ibv_qp_state state)
{
	return fake_modified_to(qp->qp_num, state);
}

static const struct cm_qp_param psns = { .rq_psn = 0xabcdef, .sq_psn = 0x123456, .verify = true };

#define PROGRAM_TEST(f) TEST_WITH(f, set_up_qp, verbs_rig_close)

PROGRAM_TEST(make_path__without_the_cm__to_the_peers_gid_or_lid)
{
	const struct cm_end peer = { .gid.raw = { [10] = 0xff, 0xff, 10, 77, 0, 2 }, .lid = 7, .mtu = IBV_MTU_512,
				     .qpn = 0x1234 };
	struct dev d = rig.dev;

	d.gid_index = 3;
	cm_make_path(&d, &peer, 5, &path);
	assert_int_equal(cm_program_qp(NULL, qp, &path, &psns), 0);
	assert_int_equal(programmed(IBV_QPS_INIT)->attr.port_num, d.port_num);
	assert_int_equal(programmed(IBV_QPS_INIT)->attr.qp_access_flags, 0);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.dest_qp_num, 0x1234);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.path_mtu, IBV_MTU_512);
	assert_memory_equal(programmed(IBV_QPS_RTR)->attr.ah_attr.grh.dgid.raw, peer.gid.raw, 16);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.ah_attr.grh.sgid_index, 3);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.rq_psn, psns.rq_psn);
	assert_int_equal(programmed(IBV_QPS_RTS)->attr.sq_psn, psns.sq_psn);
	d.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	cm_make_path(&d, &peer, 5, &path);
	assert_int_equal(path.rtr.ah_attr.is_global, 0);
	assert_int_equal(path.rtr.ah_attr.dlid, 7);
}

/* As ib_cm computes TIMEWAIT, twice, and a second. */
PROGRAM_TEST(rest__by_the_paths_packet_lifetime__twice_timewait_and_a_second)
{
	static const struct { uint8_t life, delay; unsigned exponent; } cases[] = {
		{ 18, 15, 19 }, { 16, 15, 17 }, { 14, 15, 16 }, { 13, 15, 16 }, { 12, 15, 15 }, { 0, 0, 2 },
		{ 0, 15, 15 },
		{ 20, 0, 21 }, { 21, 0, 21 }, { 31, 31, 21 },
	};
	struct ibv_sa_path_rec rec = { 0 };

	assert_int_equal(cm_rest_ns(rig.id, 15), 0);
	assert_int_equal(cm_rest_ns(NULL, 15), 0);
	rig.id->route.path_rec = &rec;
	rig.id->route.num_paths = 1;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		rec.packet_life_time = cases[i].life;
		assert_int_equal(cm_rest_ns(rig.id, cases[i].delay),
				 2 * (UINT64_C(4096) << cases[i].exponent) + UINT64_C(1000000000));
	}
}

/* An option that is not given has its default. */
PROGRAM_TEST(program_qp__retries__as_asked_in_rts)
{
	struct cm_qp_param p = psns;
	const struct fake_modify *m;

	assert_int_equal(cm_program_qp(rig.id, qp, &path, &psns), 0);
	m = programmed(IBV_QPS_RTS);
	assert_int_equal(m->attr.timeout, 16);
	assert_int_equal(m->attr.retry_cnt, 6);
	reset();
	p.retry = (struct cm_retry){ .ack_timeout = 18, .count = 3 };
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	m = programmed(IBV_QPS_RTS);
	assert_int_equal(m->attr.timeout, 18);
	assert_int_equal(m->attr.retry_cnt, 3);
	assert_int_equal(m->attr.rnr_retry, 7);
}

PROGRAM_TEST(program_qp__receiver_not_ready__as_asked)
{
	struct cm_qp_param p = psns;

	assert_int_equal(cm_program_qp(rig.id, qp, &path, &psns), 0);
	assert_int_equal(programmed(IBV_QPS_RTS)->attr.rnr_retry, CM_RNR_RETRIES);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.min_rnr_timer, CM_RNR_TIMER);
	reset();
	/* No retry at all, and the longest time, whose code is 0. */
	p.retry = (struct cm_retry){ .rnr_count_plus_1 = 1, .rnr_timer_plus_1 = 1 };
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	assert_int_equal(programmed(IBV_QPS_RTS)->attr.rnr_retry, 0);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.min_rnr_timer, 0);
}

PROGRAM_TEST(program_qp__path_chosen__only_what_was)
{
	struct cm_qp_param p = psns;
	struct ibv_ah_attr of_path = path.rtr.ah_attr;
	const struct ibv_ah_attr *ah;

	assert_int_equal(cm_program_qp(rig.id, qp, &path, &psns), 0);
	assert_memory_equal(&programmed(IBV_QPS_RTR)->attr.ah_attr, &of_path, sizeof(of_path));
	reset();
	p.fabric = (struct cm_fabric){ .has_traffic_class = true, .traffic_class = 0xb8 };
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	ah = &programmed(IBV_QPS_RTR)->attr.ah_attr;
	assert_int_equal(ah->grh.traffic_class, 0xb8);
	assert_int_equal(ah->grh.sgid_index, of_path.grh.sgid_index);
	assert_int_equal(ah->sl, of_path.sl);
	reset();
	p.fabric = (struct cm_fabric){ .has_service_level = true, .service_level = 5, .has_gid_index = true,
				       .gid_index = 3 };
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	ah = &programmed(IBV_QPS_RTR)->attr.ah_attr;
	assert_int_equal(ah->grh.traffic_class, of_path.grh.traffic_class);
	assert_int_equal(ah->grh.sgid_index, 3);
	assert_int_equal(ah->sl, 5);
}

PROGRAM_TEST(program_qp__plain__own_psns_and_timers)
{
	const struct fake_modify *m;

	assert_int_equal(cm_program_qp(rig.id, qp, &path, &psns), 0);
	assert_int_equal(fake_qp_state(qp), IBV_QPS_RTS);
	m = programmed(IBV_QPS_INIT);
	assert_true(m->mask & IBV_QP_ACCESS_FLAGS);
	assert_true(m->mask & IBV_QP_PORT);
	/* Nothing is known of the peer yet: rights come with RTR. */
	assert_int_equal(m->attr.qp_access_flags, 0);
	m = programmed(IBV_QPS_RTR);
	assert_true(m->mask & IBV_QP_RQ_PSN);
	assert_int_equal(m->attr.rq_psn, 0xabcdef);
	assert_true(m->mask & IBV_QP_MIN_RNR_TIMER);
	/* 0 would be 655 ms, and from 20 on it is more than 10 ms (IBTA table 45). */
	assert_in_range(m->attr.min_rnr_timer, 1, 19);
	assert_int_equal(m->attr.dest_qp_num, 0x77);
	assert_int_equal(m->attr.max_dest_rd_atomic, 0);
	m = programmed(IBV_QPS_RTS);
	assert_true(m->mask & IBV_QP_SQ_PSN);
	assert_int_equal(m->attr.sq_psn, 0x123456);
	assert_true(m->mask & IBV_QP_RETRY_CNT);
	assert_int_equal(m->attr.retry_cnt, 6);
	assert_true(m->mask & IBV_QP_RNR_RETRY);
	assert_true(m->attr.rnr_retry >= 6);
	assert_true(m->mask & IBV_QP_TIMEOUT);
	assert_in_range(m->attr.timeout, 10, 17);
	assert_int_equal(m->attr.max_rd_atomic, 0);
}

PROGRAM_TEST(program_qp__access_flags__only_what_was_granted)
{
	static const struct {
		bool write, read;
		unsigned flags;
	} cases[] = {
		{ false, false, IBV_ACCESS_LOCAL_WRITE },
		{ true, false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ false, true, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ },
		{ true, true,
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct cm_qp_param p = psns;
		const struct fake_modify *m;

		p.remote_write = cases[i].write;
		p.remote_read = cases[i].read;
		assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
		m = programmed(IBV_QPS_RTR);
		assert_true(m->mask & IBV_QP_ACCESS_FLAGS);
		assert_int_equal(m->attr.qp_access_flags, cases[i].flags);
		reset();
	}
}

/* What a request asks for is the peer's claim; what we ask for was agreed on before. Each side has its own limit: a
 * server lets its clients read and reads nothing of theirs. */
PROGRAM_TEST(program_qp__reads_in_flight__never_more_than_offered)
{
	static const struct {
		uint8_t claim, offer, own, served;
	} cases[] = { { 16, 1, 1, 1 }, { 1, 4, 4, 1 }, { 0, 1, 1, 0 }, { 255, 0, 0, 0 }, { 16, 2, 0, 2 },
		      { 16, 0, 3, 0 } };

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct cm_qp_param p = psns;

		fake_cm.rd_atomic = cases[i].claim;
		assert_int_equal(cm_get_path(rig.id, &path), 0);
		p.reads = cases[i].offer;
		p.own_reads = cases[i].own;
		assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
		assert_true(programmed(IBV_QPS_RTR)->mask & IBV_QP_MAX_DEST_RD_ATOMIC);
		assert_int_equal(programmed(IBV_QPS_RTR)->attr.max_dest_rd_atomic, cases[i].served);
		assert_true(programmed(IBV_QPS_RTS)->mask & IBV_QP_MAX_QP_RD_ATOMIC);
		assert_int_equal(programmed(IBV_QPS_RTS)->attr.max_rd_atomic, cases[i].own);
		reset();
	}
}

PROGRAM_TEST(program_qp__psns_read_back_differently__ebadmsg)
{
	struct cm_qp_param p = psns;

	fake_device.psn_skew = 1;
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), -EBADMSG);
	reset();
	p.verify = false;
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
}

/* As the pool makes them ahead of demand. */
static void to_init(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), 0);
}

PROGRAM_TEST(program_qp__in_init_already__two_transitions_and_the_cm_not_asked)
{
	struct cm_qp_param p = psns;
	const struct fake_modify *m;
	uint32_t n;

	to_init();
	p.remote_write = true;
	fake_fail_next("rdma_init_qp_attr", EIO);
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	assert_null(fake_failed());
	m = fake_modifies(&n);
	assert_int_equal(n, 3);
	assert_int_equal(m[1].attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(m[1].attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(m[1].attr.rq_psn, psns.rq_psn);
	assert_int_equal(m[2].attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(m[2].attr.sq_psn, psns.sq_psn);
	fake_fail_next(NULL, 0);
}

/* From RESET: the attributes of INIT, three transitions, and the query. From INIT: RTR, RTS and the query. */
PROGRAM_TEST(program_qp__every_call_fails_in_turn__errno)
{
	static const struct {
		bool in_init;
		unsigned calls;
	} cases[] = { { false, 5 }, { true, 3 } };

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		unsigned k;

		for (k = 1; k < 20; k++) {
			int ret;

			if (cases[i].in_init)
				to_init();
			fake_fail_at(k, ENOTSUP);
			ret = cm_program_qp(rig.id, qp, &path, &psns);
			if (!fake_failed()) {
				assert_int_equal(ret, 0);
				break;
			}
			assert_int_equal(ret, -ENOTSUP);
			reset();
		}
		assert_int_equal(k, cases[i].calls + 1);
		fake_fail_at(0, 0);
		reset();
	}
}

/* One path serves any number of queue pairs, and is not changed by it. */
PROGRAM_TEST(program_qp__path_used_twice__as_the_first_time)
{
	struct cm_path before = path;
	struct cm_qp_param p = psns;

	p.remote_read = p.remote_write = true;
	p.reads = 1;
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &p), 0);
	assert_memory_equal(&path, &before, sizeof(path));
	reset();
	assert_int_equal(cm_program_qp(rig.id, qp, &path, &psns), 0);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(programmed(IBV_QPS_RTR)->attr.max_dest_rd_atomic, 0);
}

#define PATH_TEST(f) TEST_WITH(f, verbs_rig_init_cm, verbs_rig_close)

PATH_TEST(own_psn__asked_for__the_one_of_the_cm)
{
	uint32_t psn = 1;

	fake_cm.sq_psn = 0xabc123;
	assert_int_equal(cm_own_psn(rig.id, &psn), 0);
	assert_int_equal(psn, 0xabc123);
	psn = 1;
	fake_fail_next("rdma_init_qp_attr", EINVAL);
	assert_int_equal(cm_own_psn(rig.id, &psn), -EINVAL);
	assert_int_equal(psn, 1);
}

PATH_TEST(get_path__resolved__where_packets_go)
{
	struct addr peer = unit_addr("10.0.0.2", 7472);
	struct cm_path own;
	uint8_t gid[16];

	assert_int_equal(cm_resolve_addr(rig.id, NULL, &peer, 10), 0);
	memset(&own, 0x55, sizeof(own));
	assert_int_equal(cm_get_path(rig.id, &own), 0);
	assert_int_equal(own.rtr.qp_state, IBV_QPS_RTR);
	assert_int_equal(own.rtr.dest_qp_num, 0x77);
	assert_int_equal(own.rtr.path_mtu, IBV_MTU_1024);
	assert_true(own.rtr.ah_attr.is_global);
	addr_to_bytes(&peer, gid);
	assert_memory_equal(own.rtr.ah_attr.grh.dgid.raw, gid, sizeof(gid));
	assert_true(own.mask & IBV_QP_AV);
	assert_true(own.mask & IBV_QP_STATE);
	/* A value that the CM does not give is not made up. */
	assert_int_equal(own.rtr.qp_access_flags, 0);
	assert_int_equal(own.rtr.timeout, 0);
}

PATH_TEST(get_path__library_fails__its_errno)
{
	struct cm_path own;

	fake_fail_next("rdma_init_qp_attr", ENETUNREACH);
	assert_int_equal(cm_get_path(rig.id, &own), -ENETUNREACH);
}

/* Where packets of this id's path go; -errno when the path is not known either. */
static int path_peer(struct addr *out)
{
	struct cm_path own;
	int ret = cm_get_path(rig.id, &own);

	return ret ? ret : cm_path_peer(rig.id, &own, out);
}

PATH_TEST(path_peer__ipv4_gid__its_address)
{
	struct addr peer = unit_addr("10.0.0.2", 7472), real, other = unit_addr("10.9.9.9", 0);

	assert_int_equal(cm_resolve_addr(rig.id, NULL, &peer, 10), 0);
	assert_int_equal(path_peer(&real), 0);
	assert_true(addr_same_host(&real, &peer));
	fake_cm.path_peer = other;
	assert_int_equal(path_peer(&real), 0);
	assert_true(addr_same_host(&real, &other));
}

PATH_TEST(path_peer__ipv6__its_address)
{
	struct addr peer = unit_addr("2001:db8::2", 7472), real;

	assert_int_equal(cm_resolve_addr(rig.id, NULL, &peer, 10), 0);
	assert_int_equal(path_peer(&real), 0);
	assert_true(addr_same_host(&real, &peer));
}

PATH_TEST(path_peer__no_ip_gid__eafnosupport)
{
	struct addr peer = unit_addr("10.0.0.2", 7472), real;

	assert_int_equal(cm_resolve_addr(rig.id, NULL, &peer, 10), 0);
	fake_cm.path_peer = unit_addr("fe80::1", 0);	/* an InfiniBand GID is no IP address */
	assert_int_equal(path_peer(&real), -EAFNOSUPPORT);
	fake_cm.global_route = false;
	assert_int_equal(path_peer(&real), -EAFNOSUPPORT);
	fake_fail_next("rdma_init_qp_attr", EINVAL);
	assert_int_equal(path_peer(&real), -EINVAL);
}
