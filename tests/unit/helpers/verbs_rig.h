/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint and a queue pair pool on the fake device, for the tests of what stands on them. */
#ifndef RAMPART_TESTS_UNIT_VERBS_RIG_H
#define RAMPART_TESTS_UNIT_VERBS_RIG_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/qp_pool.h"

struct cm_channel;
struct rdma_cm_id;

#define VERBS_RIG_WCS_MAX 4096

struct verbs_rig {
	struct dev dev;
	struct ep_config cfg;
	struct qp_pool_config pool_cfg;
	struct ep *ep;
	struct qp_pool *qps;
	struct cm_channel *cm;	/* and an id in it, with &rig as context: of verbs_rig_init_cm */
	struct rdma_cm_id *id;
	struct ibv_wc wcs[VERBS_RIG_WCS_MAX];	/* what the endpoint dispatched */
	uint64_t batches[VERBS_RIG_WCS_MAX];	/* and in which batch */
	uint64_t looks[VERBS_RIG_WCS_MAX];	/* and ep_look at that time */
	uint32_t n_wcs;
	uint32_t rested[64], n_rested;	/* slots that left quarantine, and how many have */
	uint64_t rested_ns;		/* after how long the last one did */
	void (*on_wc)(struct verbs_rig *r, const struct ibv_wc *wc);	/* besides; may be NULL */
};
extern struct verbs_rig rig;

/* Set-up of a test: fakes reset, configuration at its defaults (8 queue pairs of 8 entries, 64
 * bytes inline, recv_depth 16, 16 spare buffers of 256 bytes); nothing opened. */
int verbs_rig_init(void **state);
/* Tear-down: closes what is open and lets the fakes check. */
int verbs_rig_close(void **state);

/* As verbs_rig_init, with a CM channel and an id, which verbs_rig_close destroys. */
int verbs_rig_init_cm(void **state);

void verbs_rig_open_ep(void);	/* with rig.cfg */
void verbs_rig_open(void);	/* endpoint, and a pool with rig.pool_cfg, which tells of those that rested */
/* The same with a pool of `max` slots, which many queue pairs the endpoint takes too. */
void verbs_rig_open_pool(uint32_t max, uint32_t reserve, uint64_t quarantine_ns, uint8_t init_port);
/* Takes a queue pair for this owner: its slot. */
uint32_t verbs_rig_take(uint32_t owner);

/* Takes the QP to RTS without a connection manager. */
void verbs_rig_connect(struct ibv_qp *qp);
/* Runs ep_process until nothing is left. */
void verbs_rig_process(void);
/* The same after the endpoint's events were taken, as its thread does when its descriptor is readable. */
void verbs_rig_wake(void);

struct ep_counts verbs_rig_counts(void);
struct qp_pool_counts verbs_rig_pool_counts(void);

#endif
