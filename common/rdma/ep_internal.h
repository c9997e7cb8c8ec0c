/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint from within: for ep.c, which runs it, and ep_make.c, which makes and frees it. */
#ifndef RAMPART_COMMON_EP_INTERNAL_H
#define RAMPART_COMMON_EP_INTERNAL_H

#include "common/base/retry.h"
#include "common/rdma/ep.h"

#define REPOST_BATCH 128
#define SEND_CQS_MAX 63	/* these and the queue of receives have a bit each in 64 */
/* The SRQ's limit: with fewer receives than this the device raises an event. Peers that keep to their credits leave EP_BATCH
 * receives to a thread that sleeps, so the event means that one does not; half of them are left for the others. */
#define SRQ_LIMIT (EP_BATCH / 2)

/* Memory of buffers that ep_trim leaves where it is, so that light traffic does not wait for pages. */
#define EP_KEPT_BYTES (256u << 10)

struct ep_cq {
	struct ibv_cq *cq;
	uint64_t bit;		/* in the masks of struct ep */
	uint32_t room;		/* QPs that can still be assigned (send CQs) */
	uint32_t awaited;	/* completions to come that somebody waits for (send CQs) */
	uint32_t out;		/* requests that were posted and not retired (send CQs) */
	unsigned int events;	/* taken and not acked */
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
	/* One bit for each of cqs[]. all_cqs: it exists. to_poll: it may hold completions. with_requests: requests are
	 * outstanding. with_awaited: somebody awaits a completion. */
	uint64_t all_cqs, to_poll, with_requests, with_awaited;
	uint32_t sweeps;
	uint64_t sends_out;
	struct ep_work work;
	uint32_t rounds;	/* of polling */
	uint32_t next_cq;
	uint64_t batch, look;
	bool spin, solicited_only;
	bool limit_armed;	/* the SRQ raises an event at SRQ_LIMIT */
	bool srq_low;		/* it has raised one since it was armed: all receives raise events */
	uint32_t sq_depth, inline_bytes, post_list, signal_every;
	uint32_t inline_wanted, inline_granted;
	uint32_t holds;
	STAILQ_HEAD(ep_deferred_list, ep_deferred) deferred;

	uint8_t *slab;
	size_t slab_bytes;
	uint32_t buf_bytes;
	size_t stride;		/* from one buffer to the next */
	uint32_t n_bufs, n_free, n_posted;
	uint32_t n_short;	/* receives that the SRQ is short of */
	uint32_t *free_bufs;	/* stack: buffers at its bottom have not been used for the longest time */
	uint32_t n_unused;	/* entries at the bottom that nobody has taken since ep_trim began to watch them */
	uint32_t n_trimmed;	/* entries at the bottom whose pages the kernel has back */
	struct ep_buf_link *links;

	/* What the last look at the receive queue found: `seen_n` completions, handled up to `seen_at`. */
	struct ibv_wc *seen;
	uint32_t seen_max, seen_n, seen_at;

	struct retry reposts;
	uint32_t n_repost;
	struct ibv_recv_wr repost_wr[REPOST_BATCH];
	struct ibv_sge repost_sge[REPOST_BATCH];
};

/* Arms the queue if something is awaited in it; it is polled afterwards, for what came before raises no event. Errors: of
 * ibv_req_notify_cq. */
int ep_arm(struct ep *ep, struct ep_cq *q) __attribute__((warn_unused_result));
/* Gives the SRQ what ep_recycle collected. Errors: of ibv_post_srq_recv; buffers that it did not take are free then, and the
 * SRQ is short of them until ep_process makes up for it. */
int ep_flush_repost(struct ep *ep) __attribute__((warn_unused_result));
/* Acks the events that were taken: destroying the queue waits for that. */
void ep_ack(struct ep_cq *q);

#endif
