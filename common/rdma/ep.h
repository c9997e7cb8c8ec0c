/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs resources of one thread: protection domain, completion channel, completion queues, shared
 * receive queue and a slab of registered message buffers (struct ep, "endpoint").
 *
 * Everything is sized and registered in ep_new; nothing is allocated or registered afterwards. Owning
 * thread: the one that runs the loop, for every function here; no locks. (ep_new and ep_free may be another's while the
 * loop does not run.) What can fail returns 0 or a negative error; each lists its own.
 *
 * Buffers are numbered 0..n-1. A buffer is either in the SRQ, free, or in somebody's hands; the counts
 * of ep_get_counts say how many, and must come back to their start values when no client is left.
 */
#ifndef RAMPART_COMMON_EP_H
#define RAMPART_COMMON_EP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "common/rdma/dev.h"

struct ep;

#define EP_NO_BUF UINT32_C(0xfffff)

/* Completions handled in one batch. A message is answered before its buffer is back in the SRQ, so the
 * peers' next messages may already be under way: the SRQ holds this many buffers beyond recv_depth. */
#define EP_BATCH 64u
#define EP_POST_LIST_MAX 64u

/* wr_id is a typed record: what the work request was, for whom, and in which life of that slot. */
enum wr_type {
	WR_RECV,	/* buf */
	WR_SEND,	/* buf: the last one whose data has left it, or EP_NO_BUF */
	WR_RMA,		/* RDMA WRITE, READ or atomic; buf: how many of them this completion ends */
	WR_BIND,	/* memory window bind */
	WR_PROBE,	/* liveness probe, a 0-byte RDMA WRITE */
	WR_BEACON,	/* last send of a draining QP: its flush tells that all others are done */
};

struct wr {
	enum wr_type type;
	uint32_t buf;		/* 20 bits */
	uint32_t qp_slot;	/* 20 bits: slot in the QP pool */
	uint32_t generation;	/* 12 bits of the slot's generation */
	uint32_t covers;	/* 8 bits: send queue entries this completion retires */
	bool awaited;		/* it was announced with ep_await */
};

#define WR_BUF_MASK 0xfffffu
#define WR_SLOT_MASK 0xfffffu
#define WR_SLOT_MAX (WR_SLOT_MASK + 1)
#define WR_GENERATION_MASK 0xfffu
#define WR_COVERS_MAX 0xffu
#define WR_TYPE_MASK 7u

/* A field that does not fit is cut. */
static inline uint64_t wr_pack(const struct wr *w)
{
	return (uint64_t)w->awaited << 63 | (uint64_t)(w->type & WR_TYPE_MASK) << 60 |
	       (uint64_t)(w->covers & WR_COVERS_MAX) << 52 | (uint64_t)(w->generation & WR_GENERATION_MASK) << 40 |
	       (uint64_t)(w->qp_slot & WR_SLOT_MASK) << 20 | (w->buf & WR_BUF_MASK);
}

static inline struct wr wr_unpack(uint64_t id)
{
	struct wr w = {
		.awaited = id >> 63,
		.type = (enum wr_type)(id >> 60 & WR_TYPE_MASK),
		.covers = id >> 52 & WR_COVERS_MAX,
		.generation = id >> 40 & WR_GENERATION_MASK,
		.qp_slot = id >> 20 & WR_SLOT_MASK,
		.buf = id & WR_BUF_MASK,
	};

	return w;
}

struct ep_config {
	/* NULL: buffers and deferred work alone, for connections over sockets: all buffers are free at first, and of what follows
	 * only recv_depth, spare_bufs and buf_bytes count. */
	const struct dev *dev;
	uint32_t max_qps;	/* queue pairs that may exist at once */
	uint32_t sq_depth;	/* send queue entries of each */
	uint32_t inline_bytes;	/* wanted; what the device grants is ep_inline_bytes */
	uint32_t post_list;	/* sends of a queue pair posted with one doorbell, 1 .. EP_POST_LIST_MAX */
	uint32_t signal_every;	/* a completion for every so many sends; 0: rc.c decides for each send */
	uint32_t recv_depth;	/* messages all peers together may have in flight; the SRQ holds EP_BATCH more */
	uint32_t spare_bufs;	/* further buffers, for sends */
	uint32_t buf_bytes;
	uint32_t cq_depth;	/* entries of a completion queue, at most; 0: the device's */
	bool spin;		/* never arm the completion queues: the thread polls all the time */
	/* Receives raise an event only if they failed or their sender asked for one (solicited events, IBTA 9.2.3). All others
	 * are polled with the next event. */
	bool solicited_only;
	/* All receives that are there are taken before the first of them is handled (ep_look), not a batch of them. */
	bool look_at_all;
};

struct ep_counts {
	uint32_t bufs_posted;	/* in the SRQ */
	uint32_t bufs_free;
	uint32_t bufs_total;
	uint32_t bufs_short;	/* that the SRQ should have and has not */
	uint64_t pinned_bytes;
	uint32_t cqs;
	uint32_t mrs;
};

/* What an endpoint has done since it was made. */
struct ep_work {
	uint64_t requests;	/* that the device took into send queues */
	uint64_t doorbells;	/* calls of ibv_post_send that they went out with */
	uint64_t signalled;	/* requests that were to have a completion, whatever becomes of them */
	uint64_t polls;		/* calls of ibv_poll_cq */
	uint64_t empty_polls;	/* of these, those that found nothing */
	uint64_t completions;
};

/* Called for each completion, in the order polled. */
typedef void ep_on_wc_fn(void *arg, const struct ibv_wc *wc);

/* Creates everything and fills the SRQ; the device must outlive it. `err` then holds a line that names what could not be
 * had and which limit to raise. Errors:
 *   -ENOMEM  this process or the device is out of memory, or the limit of locked memory is too low
 *   -ENOSPC  so many QPs need more completion queues than an endpoint has
 *   -EIO     the SRQ took fewer buffers than it was made for
 *   other    what the ibv_ call that `err` names failed with (-EINVAL: beyond the device's limits)
 */
int ep_new(const struct ep_config *cfg, ep_on_wc_fn *on_wc, void *arg, struct ep **out, char *err,
	   size_t err_size) __attribute__((warn_unused_result));
/* All QPs, and all else that was made on ep_pd, must be gone. NULL-safe. */
void ep_free(struct ep *ep);

/* Descriptor that is readable when a completion waits; meaningless when spinning; -1 without a device. */
int ep_fd(const struct ep *ep);
/* The completion channel of all its queues: which endpoint a queue or queue pair belongs to. */
struct ibv_comp_channel *ep_channel(const struct ep *ep);

/* Event mode: takes the events, arms the queues they came from if anything more is awaited there, and marks all
 * queues to be polled that may hold completions. Errors: of ibv_get_cq_event or ibv_req_notify_cq; the endpoint is broken
 * then. */
int ep_take_events(struct ep *ep) __attribute__((warn_unused_result));

/* Called before `n` send requests are posted on `qp` whose completions somebody waits for (`awaited` in struct wr): their
 * queue then raises an event for them. Other completions are polled when something else wakes the thread, or after
 * ep_sweep. A negative n takes back requests that could not be posted. */
void ep_await(struct ep *ep, const struct ibv_qp *qp, int n);

/* Counts entries of a queue pair's send queue that were posted (n > 0) or retired (n < 0). ep_sweep passes over most
 * completion queues that have neither outstanding entries nor awaited completions. */
void ep_count_sends(struct ep *ep, const struct ibv_qp *qp, int n);
/* Polls a queue pair's send CQ once more after the queue pair was released, because completions of its entries may still be
 * there. */
void ep_poll_again(struct ep *ep, const struct ibv_qp *qp);
uint64_t ep_sends_out(const struct ep *ep);
/* Counts requests that went out with one doorbell, and those of them that are signalled. */
void ep_count_doorbell(struct ep *ep, uint32_t requests, uint32_t signalled);
void ep_get_work(const struct ep *ep, struct ep_work *out);
/* True if ep_sweep is to be called now and then while the thread sleeps: a send that is out may fail without raising an
 * event, the SRQ is short of receives, or its limit is not armed. */
bool ep_needs_sweep(const struct ep *ep);
/* Marks every completion queue that has outstanding entries or awaited completions to be polled; every 16th call marks all. */
void ep_sweep(struct ep *ep);

/* With solicited_only: has the device tell (ASYNC_SRQ_LOW) when unsolicited messages have nearly emptied the SRQ, once; the
 * caller polls afterwards (ep_sweep). On a device that cannot tell, all receives raise events from then on. Called before
 * the thread first sleeps, and after each such event a while later, so that these events are rare. */
void ep_watch_srq(struct ep *ep);
/* The device has told so: the receive queue is to be polled, and all receives raise events until ep_watch_srq. */
void ep_srq_is_low(struct ep *ep);

/* Turns spinning on or off at run time: off arms every queue and marks it to be polled. */
void ep_set_spin(struct ep *ep, bool spin);

/* Polls the queues in turn, dispatches the first completions found, `max` (EP_BATCH at most), and refills the SRQ.
 * Returns how many; 0: all were found empty. Errors:
 *   -EIO  a queue cannot be polled, or the SRQ could not be refilled for some time: the endpoint is broken
 */
int ep_process(struct ep *ep, int max) __attribute__((warn_unused_result));

/* Number of the batch being dispatched, which was polled at one time, or read at one time from a socket (ep_next_batch). */
uint64_t ep_batch(const struct ep *ep);
void ep_next_batch(struct ep *ep);
/* Number of the look at the receive queue, from 1, that found the receives being dispatched: all of them were there before
 * any of them was answered. With look_at_all these are all that were there. */
uint64_t ep_look(const struct ep *ep);

/* Work that is deferred to the end of a batch of completions, or of an ep_hold, so that one doorbell serves all messages
 * of the batch. Embedded in the object that has such work, which must live until it was run. */
struct ep_deferred {
	STAILQ_ENTRY(ep_deferred) entry;
	void (*run)(struct ep_deferred *d);
	bool queued;
};

/* Between ep_hold and ep_unhold, ep_defer collects work, which the last ep_unhold runs, first in first out. They nest. The
 * endpoint holds itself during a batch of completions. */
void ep_hold(struct ep *ep);
void ep_unhold(struct ep *ep);
bool ep_is_held(const struct ep *ep);
/* The work is run once for each hold, however often this is called. Only while held. */
void ep_defer(struct ep *ep, struct ep_deferred *d);

/* A free buffer, which is the caller's until ep_buf_put, ep_recycle or a send; EP_NO_BUF if there is none. */
uint32_t ep_buf_get(struct ep *ep);
void ep_buf_put(struct ep *ep, uint32_t buf);
uint8_t *ep_buf(const struct ep *ep, uint32_t buf);
uint32_t ep_buf_bytes(const struct ep *ep);
uint32_t ep_lkey(const struct ep *ep);

/* An RDMA WRITE that goes out right before a buffer. */
struct ep_write {
	void *local;		/* registered memory */
	uint64_t remote_addr;
	uint32_t bytes;		/* 0: there is none */
	uint32_t lkey, rkey;
};

/* A record per buffer for whoever holds it, to chain buffers without allocating. (The chain is of numbers and not a
 * STAILQ: the record stays smaller, and both are read for every message.) */
struct ep_buf_link {
	uint32_t next;
	uint32_t length;
	uint32_t imm;		/* immediate data, if has_imm */
	bool has_imm;
	bool unsolicited;	/* the peer need not be woken for it */
	uint8_t record;		/* over a socket: enum record_kind */
	union {
		struct ep_write write;
		struct {	/* over a socket */
			const void *behind;	/* bytes that follow those of the buffer */
			uint32_t behind_bytes;
			uint32_t call;	/* number of the last call that sent of it without a copy */
		};
	};
};
struct ep_buf_link *ep_buf_link(const struct ep *ep, uint32_t buf);

/* Bytes from one buffer to the next. */
size_t ep_stride(uint64_t buf_bytes, bool registered);
/* Returns pages of free buffers to the kernel: of buffers that nobody has used since the last call that returned false,
 * about `budget_bytes` at a time. True: more are left for the next call. Only for an endpoint without a device: registered
 * pages stay. Buffers that share pages are given back together, once all are free. The most recently used are kept. */
bool ep_trim(struct ep *ep, size_t budget_bytes);
/* False: nothing is to be given back until somebody has used a buffer again. */
bool ep_needs_trim(const struct ep *ep);

/* Gives a buffer to the SRQ at the end of the current batch; without a device it is free. */
void ep_recycle(struct ep *ep, uint32_t buf);
/* Gives a free buffer to the SRQ, if there is one, for one that goes out as an answer. False if none is free: then ep_process makes up for it
 * when one is. */
bool ep_replace(struct ep *ep);

/* Largest message that is copied into the send queue: what was wanted, or less if the device grants less. */
uint32_t ep_inline_bytes(const struct ep *ep);
/* What was wanted, and what the device has granted all queue pairs so far (it may be more than was wanted); UINT32_MAX:
 * there was none yet. */
uint32_t ep_inline_wanted(const struct ep *ep);
uint32_t ep_inline_granted(const struct ep *ep);
struct ibv_pd *ep_pd(const struct ep *ep);
const struct dev *ep_dev(const struct ep *ep);
uint32_t ep_sq_depth(const struct ep *ep);
uint32_t ep_post_list(const struct ep *ep);
uint32_t ep_signal_every(const struct ep *ep);
void ep_get_counts(const struct ep *ep, struct ep_counts *out);

/* For the QP pool: creates a QP on this endpoint's queues, in RESET; *cq_index is given back with ep_qp_destroy. If the
 * device refuses inline data of the wanted size, the largest power of two that it takes is used from then on, or none. Errors:
 *   -ENOSPC  every send CQ has its QPs (ep_config's max_qps)
 *   other    what ibv_create_qp failed with (-ENOMEM: the device has no more)
 */
int ep_qp_create(struct ep *ep, struct ibv_qp **out, uint32_t *cq_index)
	__attribute__((warn_unused_result));
/* The QP's completions were polled, or do not matter. */
void ep_qp_destroy(struct ep *ep, struct ibv_qp *qp, uint32_t cq_index);

#endif
