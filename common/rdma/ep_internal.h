/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of an endpoint, for ep.c, which runs it, and ep_make.c, which creates and frees it. */
#ifndef RAMPART_COMMON_EP_INTERNAL_H
#define RAMPART_COMMON_EP_INTERNAL_H

#include "common/base/retry.h"
#include "common/rdma/ep.h"

#define REPOST_BATCH 128
#define SEND_CQS_MAX 63	/* these and the receive queue have one bit each in a 64-bit mask */
/* The device raises an event if the SRQ holds fewer receives than this. While the thread sleeps, peers that keep to
 * their credits leave EP_BATCH, so the event means that a peer exceeds its credits; this half is left to others. */
#define SRQ_LIMIT (EP_BATCH / 2)

/* Buffer memory that ep_trim does not return to the kernel, so that light traffic does not wait for pages. */
#define EP_KEPT_BYTES (256u << 10)

struct ep_cq {
	struct ibv_cq *cq;
	uint64_t bit;		/* in the masks of struct ep */
	uint32_t room;		/* QPs that can still be assigned (send CQs) */
	uint32_t awaited;	/* outstanding completions that somebody waits for (send CQs) */
	uint32_t out;		/* requests posted and not yet retired (send CQs) */
	unsigned int events;	/* events taken and not yet acked */
	bool armed;		/* the next completion raises an event */
};

struct ep {
	const struct dev *dev;
	ep_on_wc_fn *on_wc;
	void *arg;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ep_cq cqs[1 + SEND_CQS_MAX];	/* [0] receives */
	uint32_t n_cqs, n_armed;
	uint32_t qps_per_cq, qps_unassigned;	/* qps_unassigned: QPs, of max_qps, for which no send CQ exists yet */
	/* One bit for each of cqs[]. all_cqs: the queue exists. to_poll: it may hold completions. with_requests: it has
	 * outstanding requests. with_awaited: somebody awaits a completion. */
	uint64_t all_cqs, to_poll, with_requests, with_awaited;
	uint32_t sweeps;
	uint64_t sends_out;
	struct ep_work work;
	uint32_t rounds;	/* polling rounds: calls of ep_process */
	uint32_t next_cq;
	uint64_t batch, look;
	bool spin, solicited_only;
	bool limit_armed;	/* the SRQ raises an event at SRQ_LIMIT */
	bool srq_low;		/* that event came, and the limit was not armed again: all receives raise events */
	uint32_t sq_depth, inline_bytes, post_list, signal_every;
	uint32_t inline_wanted, inline_granted;
	int relaxed;		/* ep_relaxed */
	uint32_t holds;
	STAILQ_HEAD(ep_deferred_list, ep_deferred) deferred;

	uint8_t *slab;
	size_t slab_bytes;
	uint32_t buf_bytes;
	size_t stride;		/* from one buffer to the next */
	uint32_t n_bufs, n_free, n_posted;
	uint32_t n_short;	/* receives missing from the SRQ */
	uint32_t *free_bufs;	/* stack: the buffers at its bottom have been unused for longest */
	uint32_t n_unused;	/* entries at the bottom that nobody has taken since ep_trim began to watch them */
	uint32_t n_trimmed;	/* entries at the bottom whose pages were returned to the kernel */
	struct ep_buf_link *links;

	/* Result of the last look at the receive queue: `seen_n` completions, `seen_at` of them handled. */
	struct ibv_wc *seen;
	uint32_t seen_max, seen_n, seen_at;

	struct retry reposts;
	uint32_t n_repost;
	struct ibv_recv_wr repost_wr[REPOST_BATCH];
	struct ibv_sge repost_sge[REPOST_BATCH];
};

/* Arms the queue if a completion is awaited there, and marks it to be polled, because completions that came earlier
 * raise no event. Errors: from ibv_req_notify_cq. */
int ep_arm(struct ep *ep, struct ep_cq *q) __attribute__((warn_unused_result));
/* Gives the SRQ the buffers that ep_recycle collected. Errors: from ibv_post_srq_recv; buffers that were not accepted
 * are then free, and the SRQ is short of receives until ep_process posts the missing ones. */
int ep_flush_repost(struct ep *ep) __attribute__((warn_unused_result));
/* Creates a completion queue of `cqe` entries: the receive CQ, or one for `room` QPs. Errors: from ibv_create_cq and,
 * for the receive CQ, from ibv_req_notify_cq. */
int ep_make_cq(struct ep *ep, uint32_t cqe, uint32_t room) __attribute__((warn_unused_result));
/* Creates the next send CQ. Errors: -ENOSPC if all have been created; otherwise from ibv_create_cq. */
int ep_make_send_cq(struct ep *ep) __attribute__((warn_unused_result));
/* Acks the taken events, because destroying the queue waits for their acks. */
void ep_ack(struct ep_cq *q);

#endif
