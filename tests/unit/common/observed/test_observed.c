/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/observed/observed.c: what a thread publishes is what the device did. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/observed/observed.h"
#include "common/host/place.h"
#include "common/rdma/cm.h"
#include "common/rdma/rc.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

static struct effective e;
static struct rc rc;

static void on_wc(struct verbs_rig *r, const struct ibv_wc *wc)
{
	struct wr w = wr_unpack(wc->wr_id);

	(void)r;
	assert_int_equal(rc_on_send_wc(&rc, wc, &w), 0);
}

static int setup(void **state)
{
	memset(&e, 0, sizeof(e));
	return verbs_rig_init(state);
}

static void open_rc(void)
{
	rig.cfg.sq_depth = rc_sq_depth(16);
	rig.cfg.spare_bufs = 64;
	rig.cfg.post_list = 16;
	verbs_rig_open();
	rig.on_wc = on_wc;
	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_int_equal(rc_take_qp(&rc, 3), 0);
	verbs_rig_connect(rc.qp);
}

/* The same along a path of this MTU. */
static void open_rc_with_path(enum ibv_mtu mtu)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .sl = 3,
						.grh = { .traffic_class = 0x60, .sgid_index = 1 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 5, .rnr_retry = 7 };

	verbs_rig_open();
	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_int_equal(rc_take_qp(&rc, 3), 0);
	if (rc.qp->state == IBV_QPS_RESET)
		assert_int_equal(ibv_modify_qp(rc.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_modify_qp(rc.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(ibv_modify_qp(rc.qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void send_some(uint32_t n, uint32_t bytes)
{
	ep_hold(rig.ep);
	while (n--)
		assert_int_equal(rc_send(&rc, ep_buf_get(rig.ep), bytes), 0);
	ep_unhold(rig.ep);
}

/* Against what the fake device took, and was asked. */
TEST(work__messages_and_completions__as_the_device_counted)
{
	struct ep_work w = { 0 };
	const struct fake_post *posts;
	uint32_t n, signalled = 0, polls = 0;

	open_rc();
	send_some(5, 200);
	send_some(1, 200);
	send_some(1, 20);
	fake_complete_sends(rc.qp, 6, IBV_WC_SUCCESS);
	assert_int_equal(ep_take_events(rig.ep), 0);
	verbs_rig_process();
	effective_count(&e, &rig.ep, 1);
	effective_add_work(&e, &w);
	posts = fake_posts(&n);
	for (uint32_t i = 0; i < n; i++)
		signalled += (posts[i].flags & IBV_SEND_SIGNALED) != 0;
	for (uint32_t i = 0; i < fake_cqs(); i++)
		polls += fake_cq_polls(fake_cq(i));
	assert_int_equal(w.requests, n);
	assert_int_equal(w.requests, 7);
	assert_int_equal(w.doorbells, fake_doorbells());
	assert_int_equal(w.doorbells, 3);
	assert_int_equal(w.signalled, signalled);
	assert_int_equal(w.completions, rig.n_wcs);
	assert_int_equal(w.completions, 6);
	assert_int_equal(w.polls, polls);
	assert_true(w.empty_polls > 0 && w.empty_polls < w.polls);
	/* Added up over threads. */
	effective_add_work(&e, &w);
	assert_int_equal(w.requests, 14);
}

TEST(work__post_that_failed__not_counted)
{
	struct ep_work w;

	open_rc();
	fake_fail_next("ibv_post_send", ENOMEM);
	assert_int_not_equal(rc_send(&rc, ep_buf_get(rig.ep), 200), 0);
	ep_get_work(rig.ep, &w);
	assert_int_equal(w.requests, 0);
	assert_int_equal(w.doorbells, 0);
}

TEST(inline__no_queue_pair_yet__not_known)
{
	json_auto_t *o = NULL;

	rig.cfg.inline_bytes = 4096;
	verbs_rig_open_ep();
	effective_count(&e, &rig.ep, 1);
	o = effective_thread_json(&e);
	assert_true(json_is_null(json_at(o, "inline_granted_bytes")));
}

TEST(inline__device_takes_512_of_4096__both_published)
{
	json_auto_t *o = NULL;

	rig.cfg.inline_bytes = 4096;
	open_rc();
	effective_count(&e, &rig.ep, 1);
	o = effective_thread_json(&e);
	assert_int_equal(json_number_at(o, "inline_wanted_bytes"), 4096);
	assert_int_equal(json_number_at(o, "inline_granted_bytes"), 512);
	assert_int_equal(fake_qp_cap(rc.qp)->max_inline_data, 512);
	assert_int_equal(ep_inline_bytes(rig.ep), 512);
}

/* The fake device has no driver, so it counts as hardware. */
TEST(relaxed_ordering__as_memory_is_registered)
{
	for (int relaxed = 0; relaxed < 2; relaxed++) {
		json_auto_t *o = NULL;

		rig.cfg.relaxed_ordering = relaxed;
		verbs_rig_open_ep();
		effective_count(&e, &rig.ep, 1);
		o = effective_thread_json(&e);
		assert_int_equal(json_is_true(json_at(o, "relaxed_ordering")), relaxed);
		assert_int_equal(fake_mr_access(ep_lkey(rig.ep)), IBV_ACCESS_LOCAL_WRITE |
				 (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0));
		ep_free(rig.ep);
		rig.ep = NULL;
	}
}

TEST(device__node__null_until_one_is_known)
{
	json_t *o;

	effective_set_device(&e, PLACE_NO_NODE);
	o = effective_thread_json(&e);
	assert_true(json_is_null(json_at(o, "device_numa_node")));
	json_decref(o);
	effective_set_device(&e, 0);
	o = effective_thread_json(&e);
	assert_int_equal(json_number_at(o, "device_numa_node"), 0);
	json_decref(o);
}

TEST(look__connected__what_the_device_was_given)
{
	json_t *o;

	open_rc_with_path(IBV_MTU_2048);
	effective_look(&e, &(struct link){ .rc = rc }, 16);
	o = effective_thread_json(&e);
	assert_int_equal(json_number_at(o, "credits"), 16);
	assert_true(json_is_object(json_at(o, "qp")));
	assert_int_equal(json_number_at(o, "qp.path_mtu_bytes"), 2048);
	assert_int_equal(json_number_at(o, "qp.rnr_timer_ns"), 640000);
	assert_int_equal(json_number_at(o, "qp.traffic_class"), 0x60);
	assert_int_equal(json_number_at(o, "qp.service_level"), 3);
	assert_int_equal(json_number_at(o, "qp.gid_index"), 1);
	assert_int_equal(json_number_at(o, "qp.ack_timeout_ns"), 67108864);
	assert_int_equal(json_number_at(o, "qp.retry_count"), 5);
	assert_int_equal(json_number_at(o, "qp.rnr_retry"), 7);
	json_decref(o);
	/* Nothing of an earlier connection is left. */
	effective_look(&e, NULL, 0);
	o = effective_thread_json(&e);
	assert_true(json_is_null(json_at(o, "qp")));
	assert_true(json_is_null(json_at(o, "credits")));
	json_decref(o);
}

TEST(look__device_does_not_answer__null)
{
	json_auto_t *o = NULL;

	open_rc();
	fake_fail_next("ibv_query_qp", EIO);
	effective_look(&e, &(struct link){ .rc = rc }, 16);
	o = effective_thread_json(&e);
	assert_true(json_is_null(json_at(o, "qp")));
}

TEST(thread__begun__its_number_and_cpu)
{
	json_t *o = effective_thread_json(&e);

	assert_true(json_is_null(json_at(o, "tid")));
	json_decref(o);
	effective_begin(&e);
	o = effective_thread_json(&e);
	assert_int_equal(json_number_at(o, "tid"), gettid());
	assert_true(json_number_at(o, "cpu") >= 0);
	json_decref(o);
}

/* Values of IBTA's table 45. */
TEST(rnr_timer__codes__times)
{
	assert_int_equal(cm_rnr_timer_ns(0), 655360000);
	assert_int_equal(cm_rnr_timer_ns(1), 10000);
	assert_int_equal(cm_rnr_timer_ns(12), 640000);
	assert_int_equal(cm_rnr_timer_ns(18), 5120000);
	assert_int_equal(cm_rnr_timer_ns(31), 491520000);
}

TEST_EACH(setup, verbs_rig_close)
