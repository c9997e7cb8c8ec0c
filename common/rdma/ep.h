/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs resources of one thread: protection domain, completion channel, completion queues, shared receive queue and
 * a slab of registered message buffers (struct ep, "endpoint").
 *
 * ep_new creates and registers everything but queue pairs and the send CQs after the first, which ep_qp_create creates
 * as queue pairs need them. Owning thread: the one that runs the loop, for every function here; no locks. (Another
 * thread may call ep_new and ep_free while the loop does not run.) Functions that can fail return 0 or a negative
 * error; each prototype lists its own.
 *
 * Buffers are numbered 0..n-1. A buffer is in the SRQ, free, or held by its user; ep_get_counts reports how many are
 * where, and its counts must return to their start values when no client is left.
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

/* wr_id is a typed record: kind of work request, slot of its queue pair in the pool, and generation of that slot. */
enum wr_type {
	WR_RECV,	/* buf */
	WR_SEND,	/* buf: the last buffer that this completion frees, or EP_NO_BUF */
	WR_RMA,		/* RDMA WRITE, READ or atomic; buf: number of them that this completion ends */
	WR_BIND,	/* memory window bind */
	WR_PROBE,	/* liveness probe, a 0-byte RDMA WRITE */
	WR_BEACON,	/* last send of a draining QP: its flush shows that all others are done */
};

struct wr {
	enum wr_type type;
	uint32_t buf;		/* 20 bits */
	uint32_t qp_slot;	/* 20 bits: slot in the QP pool */
	uint32_t generation;	/* 12 bits of the slot's generation */
	uint32_t covers;	/* 8 bits: send queue entries this completion retires */
	bool awaited;		/* the completion was announced with ep_await */
};

#define WR_BUF_MASK 0xfffffu
#define WR_SLOT_MASK 0xfffffu
#define WR_SLOT_MAX (WR_SLOT_MASK + 1)
#define WR_GENERATION_MASK 0xfffu
#define WR_COVERS_MAX 0xffu
#define WR_TYPE_MASK 7u

/* Truncates a field that does not fit. */
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
	/* NULL: an endpoint for connections over sockets, with buffers and deferred work only. All buffers start free,
	 * and of the following members only recv_depth, spare_bufs and buf_bytes count. */
	const struct dev *dev;
	uint32_t max_qps;	/* queue pairs that may exist at once */
	uint32_t sq_depth;	/* send queue entries of each queue pair */
	uint32_t inline_bytes;	/* wanted; ep_inline_bytes returns what the device grants */
	uint32_t post_list;	/* sends of a queue pair posted with one doorbell, 1 .. EP_POST_LIST_MAX */
	uint32_t signal_every;	/* sends per requested completion; 0: rc.c decides for each send */
	uint32_t recv_depth;	/* messages all peers together may have in flight; the SRQ holds EP_BATCH more */
	uint32_t spare_bufs;	/* further buffers, for sends */
	uint32_t buf_bytes;
	uint32_t cq_depth;	/* maximum entries of a completion queue; 0: the device's limit */
	bool spin;		/* never arm the completion queues: the thread polls all the time */
	bool relaxed_ordering;	/* register memory with relaxed ordering, unless the device is software */
	/* Receives raise an event only if they failed or their sender asked for one (solicited events, IBTA 9.2.3). All
	 * others are polled with the next event. */
	bool solicited_only;
	/* Before the first receive is handled, poll all that have arrived (ep_look), not just one batch. */
	bool look_at_all;
};

struct ep_counts {
	uint32_t bufs_posted;	/* in the SRQ */
	uint32_t bufs_free;
	uint32_t bufs_total;
	uint32_t bufs_short;	/* missing from the SRQ */
	uint64_t pinned_bytes;
	uint32_t cqs;
	uint32_t mrs;
};

/* Counters of an endpoint's work since ep_new. */
struct ep_work {
	uint64_t requests;	/* accepted by the device into send queues */
	uint64_t doorbells;	/* calls of ibv_post_send that posted these requests */
	uint64_t signalled;	/* requests that asked for a completion, whatever their outcome */
	uint64_t polls;		/* calls of ibv_poll_cq */
	uint64_t empty_polls;	/* calls of ibv_poll_cq that found nothing */
	uint64_t completions;
};

/* Called for each completion, in the order polled. */
typedef void ep_on_wc_fn(void *arg, const struct ibv_wc *wc);

/* Creates everything and fills the SRQ. The device must outlive the endpoint. On failure `err` holds a line that names
 * what could not be created and which limit to raise. Errors:
 *   -ENOMEM  this process or the device is out of memory, or the limit of locked memory is too low
 *   -ENOSPC  max_qps needs more completion queues than an endpoint can have
 *   -EIO     the SRQ took fewer buffers than it was made for
 *   other    from the ibv_ call that failed (-EINVAL: beyond the device's limits)
 */
int ep_new(const struct ep_config *cfg, ep_on_wc_fn *on_wc, void *arg, struct ep **out, char *err,
	   size_t err_size) __attribute__((warn_unused_result));
/* All QPs, and everything else created on ep_pd, must be gone. NULL-safe. */
void ep_free(struct ep *ep);

/* Descriptor that is readable when a completion waits; meaningless when spinning; -1 without a device. */
int ep_fd(const struct ep *ep);
/* The completion channel of all its queues, by which a queue or queue pair is matched to its endpoint. */
struct ibv_comp_channel *ep_channel(const struct ep *ep);

/* Event mode: takes the pending events, arms their queues again if more completions are awaited there, and marks all
 * queues that may hold completions to be polled. Errors from ibv_get_cq_event or ibv_req_notify_cq break the
 * endpoint. */
int ep_take_events(struct ep *ep) __attribute__((warn_unused_result));

/* Call before posting `n` send requests on `qp` whose completions somebody waits for (`awaited` in struct wr), so that
 * their queue raises an event. Other completions are polled when something else wakes the thread, or after ep_sweep. A
 * negative n takes back requests that could not be posted. 0 only arms the queue if it
 * is not armed. */
void ep_await(struct ep *ep, const struct ibv_qp *qp, int n);

/* Counts entries of a queue pair's send queue that were posted (n > 0) or retired (n < 0). ep_sweep usually
 * skips completion queues that have neither outstanding entries nor awaited completions. */
void ep_count_sends(struct ep *ep, const struct ibv_qp *qp, int n);
/* Polls a queue pair's send CQ once more after the queue pair was released, because completions of its entries may
 * still be there. */
void ep_poll_again(struct ep *ep, const struct ibv_qp *qp);
uint64_t ep_sends_out(const struct ep *ep);
/* Counts requests that went out with one doorbell, and those of them that are signalled. */
void ep_count_doorbell(struct ep *ep, uint32_t requests, uint32_t signalled);
void ep_get_work(const struct ep *ep, struct ep_work *out);
/* True if ep_sweep must be called now and then while the thread sleeps, because an outstanding send may fail without
 * raising an event, the SRQ is short of receives, or the SRQ's limit is not armed. */
bool ep_needs_sweep(const struct ep *ep);
/* Marks every completion queue that has outstanding entries or awaited completions to be polled; every 16th call marks
 * all. */
void ep_sweep(struct ep *ep);

/* With solicited_only: asks the device for one event (ASYNC_SRQ_LOW) when unsolicited messages have nearly emptied the
 * SRQ; the caller polls afterwards (ep_sweep). On a device without this event, all receives raise events from then on.
 * Call it before the thread first sleeps, and again some time after each such event, so that these events stay rare. */
void ep_watch_srq(struct ep *ep);
/* Call on ASYNC_SRQ_LOW: the receive queue is polled next, and all receives raise events until ep_watch_srq. */
void ep_srq_is_low(struct ep *ep);

/* Turns spinning on or off at run time. Turning it off arms the queues and marks all of them to be polled. */
void ep_set_spin(struct ep *ep, bool spin);

/* Polls the queues in turn, dispatches up to `max` (at most EP_BATCH) completions of the first queue that has any, and
 * refills the SRQ. Returns the number of completions; 0: all queues were empty. Errors:
 *   -EIO  a queue cannot be polled, or the SRQ could not be refilled for some time: the endpoint is broken
 */
int ep_process(struct ep *ep, int max) __attribute__((warn_unused_result));

/* Number of the batch being dispatched: the result of one poll, or of one read of a socket (ep_next_batch). */
uint64_t ep_batch(const struct ep *ep);
void ep_next_batch(struct ep *ep);
/* Number, from 1, of the look at the receive queue that found the receives being dispatched. All receives of one look
 * had arrived before any of them was answered; with look_at_all, one look takes all that had arrived. */
uint64_t ep_look(const struct ep *ep);

/* Work that is deferred to the end of a batch of completions, or of an ep_hold, so that one doorbell serves all
 * messages of the batch. Embedded in the object that the work is for, which must live until the work has run. */
struct ep_deferred {
	STAILQ_ENTRY(ep_deferred) entry;
	void (*run)(struct ep_deferred *d);
	bool queued;
};

/* Between ep_hold and ep_unhold, ep_defer collects work, which the outermost ep_unhold runs first in, first out. Holds
 * nest. The endpoint holds itself during a batch of completions. */
void ep_hold(struct ep *ep);
void ep_unhold(struct ep *ep);
bool ep_is_held(const struct ep *ep);
/* Queues work to run once at the end of the hold, however often this is called for it. Only while held. */
void ep_defer(struct ep *ep, struct ep_deferred *d);

/* Takes a free buffer, which the caller owns until ep_buf_put, ep_recycle or a send; EP_NO_BUF if none is free. */
uint32_t ep_buf_get(struct ep *ep);
void ep_buf_put(struct ep *ep, uint32_t buf);
uint8_t *ep_buf(const struct ep *ep, uint32_t buf);
uint32_t ep_buf_bytes(const struct ep *ep);
uint32_t ep_lkey(const struct ep *ep);

/* An RDMA WRITE that is posted right before the message in a buffer. */
struct ep_write {
	void *local;		/* registered memory */
	uint64_t remote_addr;
	uint32_t bytes;		/* 0: no WRITE */
	uint32_t lkey, rkey;
};

/* A record per buffer, for whoever holds the buffer, to chain buffers without allocating. (Chained by number, not by
 * STAILQ, because the record is read for every message and must stay small.) */
struct ep_buf_link {
	uint32_t next;
	uint32_t length;
	uint32_t imm;		/* immediate data, if has_imm */
	bool has_imm;
	bool unsolicited;	/* this message need not wake the peer */
	bool awaited;		/* somebody waits for this message's completion (rc_send_awaited) */
	uint8_t record;		/* over a socket: enum record_kind */
	union {
		struct ep_write write;
		struct {	/* over a socket */
			const void *behind;	/* bytes that follow those of the buffer */
			uint32_t behind_bytes;
			uint32_t call;	/* number of the last zero-copy call for this buffer */
		};
	};
};
struct ep_buf_link *ep_buf_link(const struct ep *ep, uint32_t buf);

/* Bytes from one buffer to the next. */
size_t ep_stride(uint64_t buf_bytes, bool registered);
/* Returns pages of free buffers to the kernel, about `budget_bytes` per call, but only of buffers that nobody has used
 * since the last call that returned false. True: more are left for the next call. Does nothing with a device, because
 * registered pages stay. Buffers that share pages are returned together, once all are free. Keeps those used last. */
bool ep_trim(struct ep *ep, size_t budget_bytes);
/* False: ep_trim has nothing to do until somebody uses a buffer again. */
bool ep_needs_trim(const struct ep *ep);

/* Gives a buffer to the SRQ at the end of the current batch; without a device, frees it. */
void ep_recycle(struct ep *ep, uint32_t buf);
/* Gives the SRQ a free buffer in place of one that goes out as an answer. False if none is free; ep_process then does
 * it as soon as a buffer is free. */
bool ep_replace(struct ep *ep);

/* Largest message that is copied into the send queue: the wanted size, or less if the device grants less. */
uint32_t ep_inline_bytes(const struct ep *ep);
/* The wanted inline size, and the smallest one granted to a queue pair so far, which may exceed the wanted size
 * (UINT32_MAX: no queue pair yet). */
uint32_t ep_inline_wanted(const struct ep *ep);
uint32_t ep_inline_granted(const struct ep *ep);
/* The further access flags of memory registered for this endpoint: IBV_ACCESS_RELAXED_ORDERING or 0. */
int ep_relaxed(const struct ep *ep);
struct ibv_pd *ep_pd(const struct ep *ep);
const struct dev *ep_dev(const struct ep *ep);
uint32_t ep_sq_depth(const struct ep *ep);
uint32_t ep_post_list(const struct ep *ep);
uint32_t ep_signal_every(const struct ep *ep);
void ep_get_counts(const struct ep *ep, struct ep_counts *out);

/* For the QP pool: creates a QP in RESET on this endpoint's queues; ep_qp_destroy takes *cq_index back. If the device
 * refuses the wanted inline size, the largest power of two that it accepts is used from then on, or none. Errors:
 *   -ENOSPC  all send CQs are fully assigned (ep_config's max_qps)
 *   other    what ibv_create_qp, or ibv_create_cq for a further send CQ, failed with (-ENOMEM: the device has no more)
 */
int ep_qp_create(struct ep *ep, struct ibv_qp **out, uint32_t *cq_index)
	__attribute__((warn_unused_result));
/* Destroys the QP. Its completions that were not polled before may be lost. */
void ep_qp_destroy(struct ep *ep, struct ibv_qp *qp, uint32_t cq_index);

#endif
