/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a reliable connection: a pooled QP, its CM id, its send queue account and its drain.
 *
 * Embedded in the server's and the client's connection objects, which own the state machine; this is the use of verbs
 * that both share. Owning thread: the endpoint's, for every function here. None of them blocks. Functions that can fail
 * return 0 or a negative error; each prototype lists its own.
 *
 * Messages are posted in chains: the messages of one batch of completions (or of an ep_hold) share a doorbell, up to
 * the endpoint's post_list of them. Send queue account: posting a request takes an entry, and a signalled completion
 * says how many entries it retires. Messages that find no free entry wait in a list of buffers and are posted, in
 * order, when entries are retired. A message may have a WRITE in front, which is posted with it and takes an entry of
 * its own. Nothing is allocated.
 */
#ifndef RAMPART_COMMON_RC_H
#define RAMPART_COMMON_RC_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/rdma/qp_pool.h"

struct rc;

/* Called when posting deferred messages failed: the connection is broken. Runs on the endpoint's thread, inside
 * ep_unhold. */
typedef void rc_on_broken_fn(struct rc *rc);

/* Send queue entries that a connection needs: one for each credit, half as many again for replies whose completion was
 * not polled yet, and the special entry, which is for a probe or a bind and at the end for the beacon. Soft-RoCE rounds
 * a queue up to a power of two and keeps one entry empty, so with one credit 3 entries take a page less than 4. */
static inline uint32_t rc_sq_depth(uint32_t credits)
{
	return credits + (credits + 1) / 2 + 1;
}

struct rc {
	struct ep *ep;
	struct qp_pool *pool;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	rc_on_broken_fn *on_broken;
	struct ep_deferred deferred;	/* posts the waiting messages */
	uint32_t slot;			/* QP_POOL_NONE: no QP */
	uint64_t id_base;		/* part that the wr_ids of all requests share: the QP's slot and generation */
	uint32_t waiting_head, waiting_tail;	/* buffers of messages that are not posted yet */
	uint32_t waiting_n, waiting_writes;	/* number of waiting messages, and of those with a WRITE in front */
	uint32_t held_head, held_tail;	/* buffers of posted messages whose completion is outstanding */
	uint16_t sq_used;		/* entries posted and not retired */
	uint16_t unsignalled;		/* posted since the last signalled one */
	uint16_t must_signal_at;	/* a request that makes `unsignalled` reach this must have a completion */
	uint16_t signal_at;		/* the same limit for messages; --signal-every can lower it */
	uint16_t rma_unsignalled;	/* RMA requests posted since the last signalled RMA request */
	bool may_write;			/* set by the owner: some messages will have a WRITE in front */
	bool special_busy;		/* a probe or bind is on the special entry */
	bool draining;			/* in ERR; only the beacon may still be posted */
	bool drained;			/* the beacon came back */
	bool was_connected;		/* it reached RTR before it was drained: packets may be under way */
	bool peer_unaware;		/* set by the owner: the peer was never told the number, so none are */
	bool needs_last_wqe;		/* draining ends with ASYNC_QP_LAST_WQE too */
	bool had_last_wqe;
	bool abandoned;			/* nobody waits for the completions any more; the QP is not used again */
};

/* Sets everything to "no id, no QP". `on_broken` may be NULL if no message is deferred. The endpoint and the pool must
 * outlive the connection. */
void rc_init(struct rc *rc, struct ep *ep, struct qp_pool *pool, rc_on_broken_fn *on_broken);

/* Takes a QP from the pool for `owner`, the caller's number; rc_release gives it back. Errors, after which there is no
 * QP, are those of qp_pool_get:
 *   -EAGAIN  all QPs of the pool are in use or rest
 *   -ENOSPC  no completion queue has room for another QP
 *   other    from ibv_create_qp or ibv_modify_qp, for a QP that had to be created (-ENOMEM: the device has no more)
 */
int rc_take_qp(struct rc *rc, uint32_t owner) __attribute__((warn_unused_result));

/* The QP's number; 0 if there is no QP (no connected QP has the number 0). */
uint32_t rc_qpn(const struct rc *rc);

/* Sends the first `length` bytes of `buf`. Takes ownership of `buf`, even on failure, and frees it (ep_buf_put) when
 * the data has left it, or at once if it fits inline. While the endpoint is held and post_list allows chains, the
 * message is deferred to the end of the hold, and on_broken reports a failure. Errors, after which the connection is
 * unusable:
 *   -ENOTCONN  the connection is being drained
 *   other      what ibv_post_send failed with (-EINVAL: the QP is not in RTS; -ENOMEM: the device has no room)
 */
int rc_send(struct rc *rc, uint32_t buf, uint32_t length) __attribute__((warn_unused_result));
/* The same for a message that needs no answer: it does not wake the peer (no solicited event). Errors as rc_send. */
int rc_send_unsolicited(struct rc *rc, uint32_t buf, uint32_t length) __attribute__((warn_unused_result));
/* The same with 4 bytes of immediate data, sent as they are in memory. Errors as rc_send. */
int rc_send_imm(struct rc *rc, uint32_t buf, uint32_t length, uint32_t imm) __attribute__((warn_unused_result));

/* The same for a message whose arrival somebody waits for: its completion wakes this thread. Errors as rc_send. */
int rc_send_awaited(struct rc *rc, uint32_t buf, uint32_t length) __attribute__((warn_unused_result));
/* True if no message waits, and the peer's device has acknowledged all that were posted with a completion behind
 * them. */
bool rc_is_idle(const struct rc *rc);

/* The same, behind a WRITE of at least one byte; one doorbell posts both. Requires may_write. A peer that has the
 * message also has the data; until then, the WRITE's source must not change. Errors as rc_send. */
int rc_write_send(struct rc *rc, const struct ep_write *write, uint32_t buf, uint32_t length)
	__attribute__((warn_unused_result));

/* Posts a WRITE of 0 bytes on the special entry, which completes if the peer is alive. Errors:
 *   -EBUSY     the last request on the special entry is not complete; nothing changes
 *   -ENOTCONN  the connection is being drained
 *   other      what ibv_post_send failed with: the connection is broken
 */
int rc_probe(struct rc *rc) __attribute__((warn_unused_result));
/* Binds the window on the special entry, with `rkey`; both must stay until rc_release. Errors as rc_probe. */
int rc_bind_window(struct rc *rc, struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey)
	__attribute__((warn_unused_result));

/* A request on the peer's memory. */
struct rc_rma {
	enum ibv_wr_opcode opcode;	/* RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ, ATOMIC_FETCH_AND_ADD,
					 * ATOMIC_CMP_AND_SWP */
	void *local;			/* registered memory: source, destination, or where the old value goes */
	uint32_t lkey;
	uint32_t bytes;			/* 8 for atomics */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t operand;		/* atomics: what is added, or swapped in */
	uint32_t imm;			/* WRITE_WITH_IMM: 4 bytes, sent as in memory; takes a receive of the peer */
	uint64_t compare;		/* compare and swap: swap only if this is the old value */
	bool signal;			/* ask for a completion; that of a later request retires an unsignalled one */
};

/* Posts `n` requests in order, behind all messages, up to post_list of them with one doorbell. The local memory stays
 * the caller's and must not change until the completion. Errors:
 *   -EAGAIN    rc_room is less than n; nothing is posted
 *   -ENOTCONN  the connection is being drained; nothing is posted
 *   other      what ibv_post_send failed with: some requests may have been posted, and the connection is broken
 */
int rc_rma(struct rc *rc, const struct rc_rma *ops, uint32_t n) __attribute__((warn_unused_result));
/* Send queue entries that are free for messages and requests. */
uint32_t rc_room(const struct rc *rc);

/* Accounts for a completion of this connection's send side (`w` unpacked from its wr_id): frees buffers, retires
 * entries, posts waiting messages. Never fails while draining. Errors, after which the connection is broken:
 *   -EIO   the completion's status is an error
 *   other  what ibv_post_send failed with, for a waiting message
 */
int rc_on_send_wc(struct rc *rc, const struct ibv_wc *wc, const struct wr *w)
	__attribute__((warn_unused_result));

/* True if rc_is_drained may have become true with this completion: that of a probe or bind can post the beacon. */
static inline bool rc_may_end_drain(const struct wr *w)
{
	return w->type == WR_BEACON || w->type == WR_PROBE || w->type == WR_BIND;
}

/* Moves the QP to ERR, frees the buffers of waiting messages, and posts the beacon: at once, or when a request on the
 * special entry has completed. A second call does nothing. rc_is_drained becomes true when all completions of the send
 * side were polled and, if the device reports it (tells_last_wqe in struct dev), the QP has returned what it took from
 * the shared receive queue. A QP that cannot be moved, or takes no beacon because it was never connected, counts as
 * drained at once. The caller sets a deadline and then calls rc_abandon. */
void rc_drain(struct rc *rc);
/* Call on ASYNC_QP_LAST_WQE of this connection's QP, at any time. rc_is_drained may be true afterwards. */
void rc_on_last_wqe(struct rc *rc);
/* Call after rc_drain if the completions do not come, because the device is gone or the deadline has passed. Resets the
 * QP, which takes back all its requests from the device. The connection then counts as drained, and its QP is destroyed
 * after its rest instead of being used again. */
void rc_abandon(struct rc *rc);
/* True if there is no QP or it is drained. */
bool rc_is_drained(const struct rc *rc);

/* Frees the held buffers, destroys the CM id and returns the drained QP, if any, to the pool at `now_ns`
 * (clock_now_ns). The QP rests for as long as the CM id's path requires (cm_rest_ns), without a CM id for the pool's
 * time, or not at all if it was not connected; it is destroyed afterwards unless `qp_reusable` (qp_pool_put). Does
 * nothing if there is neither an id nor a QP. */
void rc_release(struct rc *rc, uint64_t now_ns, bool qp_reusable);

#endif
