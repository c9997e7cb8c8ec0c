/* SPDX-License-Identifier: BSD-2-Clause */
/* Pool of queue pairs on one endpoint: created ahead of demand, recycled after a quarantine, destroyed when nobody
 * needs them any more.
 *
 * A slot is absent (no QP yet), free (QP in RESET, or INIT where the pool knows the port), in use, or in quarantine:
 * late packets of a connection that ended may arrive for the TIMEWAIT time of its path (cm_rest_ns), so the QP must
 * rest before it is used again. A slot's generation tells completions of its earlier uses from those of the current
 * one. Owning thread: the endpoint's, for every function here. Functions that can fail return 0 or a negative error;
 * each prototype lists its own.
 */
#ifndef RAMPART_COMMON_QP_POOL_H
#define RAMPART_COMMON_QP_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "common/base/clock.h"

struct ep;
struct qp_pool;

#define QP_POOL_NONE UINT32_MAX

/* For qp_pool_config.quarantine_ns: about what cm_rest_ns returns for the packet lifetime that kernels up to 6.1 assume
 * on Ethernet (CMA_IBOE_PACKET_LIFETIME, 18). */
#define QP_POOL_QUARANTINE_NS (5 * NS_PER_S)

struct qp_pool_config {
	uint32_t max;		/* slots, at most WR_SLOT_MAX */
	uint32_t reserve;	/* free QPs to keep ahead of demand */
	uint64_t quarantine_ns;	/* how long a QP rests, unless qp_pool_set_rest says otherwise */
	uint8_t init_port;	/* Ethernet port to program the QPs for ahead of demand; 0: they stay in RESET */
	/* Called when a slot leaves quarantine, `rested_ns` after qp_pool_put, so that the PSNs that rested with it may
	 * be freed. May be NULL. */
	void (*on_rested)(void *arg, uint32_t slot, uint64_t rested_ns);
	void *arg;
};

struct qp_pool_counts {
	uint32_t qps;		/* QPs that exist */
	uint32_t free;
	uint32_t in_use;
	uint32_t in_use_peak;
	uint32_t quarantined;
	uint64_t hits;		/* calls of qp_pool_get that took a free QP */
	uint64_t misses;	/* calls of qp_pool_get that created a QP */
	uint64_t exhausted;	/* calls of qp_pool_get that failed */
	uint64_t recycled;	/* QPs that became free after quarantine */
};

/* Creates a pool of `cfg->max` absent slots without QPs (qp_pool_maintain). The endpoint must outlive it. Errors:
 *   -ENOMEM  the process has no memory for the slots
 */
int qp_pool_new(struct ep *ep, const struct qp_pool_config *cfg, struct qp_pool **out)
	__attribute__((warn_unused_result));
/* Destroys every QP, including those in use and those that rest; on_rested is not called. NULL-safe. */
void qp_pool_free(struct qp_pool *p);

/* Takes a free QP for `owner` (the caller's number), or creates one; qp_pool_put returns it. *slot is set only on
 * success. Errors, each counted as `exhausted`:
 *   -EAGAIN  all QPs are in use or rest
 *   -ENOSPC  no completion queue of the endpoint has room for another QP
 *   other    what ibv_create_qp, or ibv_modify_qp to INIT, failed with (-ENOMEM: the device has no more)
 */
int qp_pool_get(struct qp_pool *p, uint32_t owner, uint32_t *slot) __attribute__((warn_unused_result));

/* Makes the QP in use in `slot` rest for `rest_ns` after its use, instead of quarantine_ns. */
void qp_pool_set_rest(struct qp_pool *p, uint32_t slot, uint64_t rest_ns);

/* Returns a drained QP, whose quarantine begins at `now_ns` (clock_now_ns). Unless `reusable`, it is destroyed
 * afterwards, as is necessary if it may have failed in the middle of an RDMA READ. Asserts that the slot is in use. */
void qp_pool_put(struct qp_pool *p, uint32_t slot, uint64_t now_ns, bool reusable);

/* Ends quarantines that are over, tops the free QPs up to reserve and demand, and destroys free QPs beyond these that
 * were free for a whole window (10 s) in which none was taken; at most `budget` QPs are touched. Returns true if there
 * is more to do at once. If a QP cannot be created, logs that and tries again after 10 s; destroys a QP that cannot be
 * reset after its rest. */
bool qp_pool_maintain(struct qp_pool *p, uint64_t now_ns, unsigned budget);

/* Sets how many QPs will be wanted soon, beyond the reserve. Takes effect with the next qp_pool_maintain. */
void qp_pool_expect(struct qp_pool *p, uint32_t demand);
/* Nanoseconds from now_ns until qp_pool_maintain is due; UINT64_MAX: not before something changes. */
uint64_t qp_pool_idle_ns(const struct qp_pool *p, uint64_t now_ns);
/* Number of QPs that could be taken now, existing or not. */
uint32_t qp_pool_available(const struct qp_pool *p);

/* The QP and the generation of a slot whose QP exists. The pool keeps the QP. */
struct ibv_qp *qp_pool_qp(const struct qp_pool *p, uint32_t slot);
uint32_t qp_pool_generation(const struct qp_pool *p, uint32_t slot);

/* Owner of the QP in use with this number, or QP_POOL_NONE. */
uint32_t qp_pool_owner_of_qpn(const struct qp_pool *p, uint32_t qpn);
/* Owner of the slot if it is in use and its generation matches in the low bits (WR_GENERATION_MASK); otherwise, or if
 * the slot does not exist, QP_POOL_NONE. */
uint32_t qp_pool_owner(const struct qp_pool *p, uint32_t slot, uint32_t generation);

void qp_pool_get_counts(const struct qp_pool *p, struct qp_pool_counts *out);

#endif
