/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint and a queue pair pool on the fake device. See verbs_rig.h. */
#include "tests/unit/helpers/verbs_rig.h"

#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/rdma/cm.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"

struct verbs_rig rig;

int verbs_rig_init(void **state)
{
	(void)state;
	fake_reset();
	memset(&rig, 0, sizeof(rig));
	fake_dev(&rig.dev);
	rig.cfg = (struct ep_config){ .dev = &rig.dev,
				      .max_qps = 8,
				      .sq_depth = 8,
				      .inline_bytes = 64,
				      .recv_depth = 16,
				      .spare_bufs = 16,
				      .buf_bytes = 256 };
	rig.pool_cfg = (struct qp_pool_config){ .max = 8, .reserve = 0, .quarantine_ns = 1000 };
	return 0;
}

int verbs_rig_init_cm(void **state)
{
	verbs_rig_init(state);
	return cm_channel_new(&rig.cm) ? -1 : cm_id_new(rig.cm, &rig, &rig.id);
}

int verbs_rig_close(void **state)
{
	(void)state;
	cm_id_destroy(rig.id);
	cm_channel_free(rig.cm);
	rig.id = NULL;
	rig.cm = NULL;
	qp_pool_free(rig.qps);
	ep_free(rig.ep);
	rig.qps = NULL;
	rig.ep = NULL;
	fake_check();
	return 0;
}

static void on_rested(void *arg, uint32_t slot, uint64_t rested_ns)
{
	struct verbs_rig *r = arg;

	assert_ptr_equal(r, &rig);
	r->rested[r->n_rested++ % N_ELEMENTS(r->rested)] = slot;
	r->rested_ns = rested_ns;
}

static void collect(void *arg, const struct ibv_wc *wc)
{
	struct verbs_rig *r = arg;

	assert_true(r->n_wcs < VERBS_RIG_WCS_MAX);
	r->batches[r->n_wcs] = ep_batch(r->ep);
	r->looks[r->n_wcs] = ep_look(r->ep);
	r->wcs[r->n_wcs++] = *wc;
	if (r->on_wc)
		r->on_wc(r, wc);
}

void verbs_rig_open_ep(void)
{
	char err[300] = "";

	rig.dev.attr = fake_device.attr;
	if (ep_new(&rig.cfg, collect, &rig, &rig.ep, err, sizeof(err)))
		fail_msg("%s", err);
}

void verbs_rig_open(void)
{
	verbs_rig_open_ep();
	rig.pool_cfg.on_rested = on_rested;
	rig.pool_cfg.arg = &rig;
	rig.n_rested = 0;
	assert_int_equal(qp_pool_new(rig.ep, &rig.pool_cfg, &rig.qps), 0);
}

void verbs_rig_open_pool(uint32_t max, uint32_t reserve, uint64_t quarantine_ns, uint8_t init_port)
{
	rig.cfg.max_qps = max;
	rig.pool_cfg = (struct qp_pool_config){ .max = max, .reserve = reserve, .quarantine_ns = quarantine_ns,
						.init_port = init_port };
	verbs_rig_open();
}

uint32_t verbs_rig_take(uint32_t owner)
{
	uint32_t slot;

	assert_int_equal(qp_pool_get(rig.qps, owner, &slot), 0);
	return slot;
}

void verbs_rig_connect(struct ibv_qp *qp)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{ IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
		{ IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER },
		{ IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC },
	};

	for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
		struct ibv_qp_attr attr = { .qp_state = steps[i].state, .port_num = 1 };

		if (steps[i].state > qp->state)
			assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | steps[i].mask), 0);
	}
}

void verbs_rig_process(void)
{
	int turns = 0, n;

	do {
		n = ep_process(rig.ep, 64);
		assert_true(n >= 0);
		assert_true(turns++ < 10000);
	} while (n > 0);
}

void verbs_rig_wake(void)
{
	assert_int_equal(ep_take_events(rig.ep), 0);
	verbs_rig_process();
}

struct ep_counts verbs_rig_counts(void)
{
	struct ep_counts c;

	ep_get_counts(rig.ep, &c);
	return c;
}

struct qp_pool_counts verbs_rig_pool_counts(void)
{
	struct qp_pool_counts c;

	qp_pool_get_counts(rig.qps, &c);
	return c;
}
