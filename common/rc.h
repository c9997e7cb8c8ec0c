/* One end of a reliable connection: a pooled QP, its CM id, its send queue account and its drain.
 *
 * Embedded in the server's and the client's connection objects, which own the state machine; this is
 * what both need of verbs. Owning thread: the endpoint's.
 *
 * Send queue account: entries are taken when posted and given back when a signalled completion says
 * how many it covers. Messages for which there is no entry wait in a list of buffers and go out, in
 * order, when entries come back. Nothing is allocated.
 */
#ifndef RAMPART_COMMON_RC_H
#define RAMPART_COMMON_RC_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "common/cm.h"
#include "common/ep.h"
#include "common/qp_pool.h"

/* Send queue entries a connection needs for messages (credits, and half as many again for replies
 * whose completion is not polled yet), and beside them one for a probe, bind or one-sided request
 * and one for the beacon. */
static inline uint32_t rc_sq_depth(uint32_t credits)
{
	return credits + (credits + 1) / 2 + 2;
}

struct rc {
	struct ep *ep;
	struct qp_pool *pool;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint32_t slot;			/* QP_POOL_NONE: no QP */
	uint32_t generation;
	uint32_t waiting_head, waiting_tail;	/* buffers that wait for a send queue entry */
	uint32_t waiting_n;
	uint16_t sq_used;		/* entries posted and not retired */
	uint16_t unsignalled;		/* posted since the last signalled one */
	bool special_busy;		/* the probe/bind/one-sided entry is in use */
	bool draining;			/* in ERR; nothing is posted any more */
	bool drained;			/* the beacon came back */
};

/* Sets everything to "no id, no QP". */
void rc_init(struct rc *rc, struct ep *ep, struct qp_pool *pool);

/* Takes a QP from the pool for `owner`. 0 or -errno as qp_pool_get. */
int rc_take_qp(struct rc *rc, uint32_t owner) __attribute__((warn_unused_result));

uint32_t rc_qpn(const struct rc *rc);

/* Sends the first `length` bytes of `buf`, which becomes rc's: it is freed (ep_buf_put) when the data
 * has left it, or at once when it fits inline. 0, or -errno when the QP takes no more (the connection is broken); the buffer is freed then too. */
int rc_send(struct rc *rc, uint32_t buf, uint32_t length) __attribute__((warn_unused_result));

/* Posts a request on the special entry. -EBUSY while the last one is not complete. */
int rc_probe(struct rc *rc) __attribute__((warn_unused_result));
int rc_bind_window(struct rc *rc, struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey)
	__attribute__((warn_unused_result));
int rc_one_sided(struct rc *rc, enum ibv_wr_opcode opcode, uint32_t buf, uint32_t length,
		 uint64_t remote_addr, uint32_t rkey) __attribute__((warn_unused_result));

/* Accounts for a completion of this connection's send side (`w` unpacked from its wr_id): frees the
 * buffer, retires entries, sends what waits. Returns 0, or -EIO when the connection is broken: the
 * completion has an error status (not while draining), or posting failed. */
int rc_on_send_wc(struct rc *rc, const struct ibv_wc *wc, const struct wr *w)
	__attribute__((warn_unused_result));

/* Moves the QP to ERR and posts the beacon, once. Afterwards rc_is_drained becomes true when all of
 * the send side's completions were polled. */
void rc_drain(struct rc *rc);
/* True if there is no QP or it is drained. */
bool rc_is_drained(const struct rc *rc);

/* Destroys the CM id and gives the drained QP back to the pool. */
void rc_release(struct rc *rc, uint64_t now_ns, bool qp_reusable);

#endif
