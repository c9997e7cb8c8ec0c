/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint at work: events, completions, buffers, deferred work, queue pairs. See ep.h. */
#include "common/rdma/ep.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/log.h"
#include "common/rdma/ep_internal.h"

#define UNAWAITED_ROUNDS 16
#define IDLE_SWEEPS 16
#define INLINE_LEAST 64u	/* smaller sizes are not worth a try */

static bool is_receive(const struct ep *ep, const struct ep_cq *q)
{
	return q == &ep->cqs[0];
}

/* Queues that may get a completion: the receive queue, and send queues with outstanding or awaited requests. */
static uint64_t busy_queues(const struct ep *ep)
{
	return ep->all_cqs & (1 | ep->with_requests | ep->with_awaited);
}

/* Adds a queue to a mask, or removes it if `count` is 0. */
static inline void mark_queue(uint64_t *mask, const struct ep_cq *q, uint32_t count)
{
	if (count)
		*mask |= q->bit;
	else
		*mask &= ~q->bit;
}

int ep_arm(struct ep *ep, struct ep_cq *q)
{
	int ret;

	ep->to_poll |= q->bit;
	if (q->armed || (!q->awaited && !is_receive(ep, q)))
		return 0;
	ret = -ibv_req_notify_cq(q->cq, is_receive(ep, q) && ep->solicited_only && !ep->srq_low);
	q->armed = ret == 0;
	ep->n_armed += q->armed;
	return ret;
}

int ep_flush_repost(struct ep *ep)
{
	struct ibv_recv_wr *bad = NULL;
	uint32_t n = ep->n_repost, posted = n;
	int ret;

	if (n == 0)
		return 0;
	ep->repost_wr[n - 1].next = NULL;
	ret = ibv_post_srq_recv(ep->srq, ep->repost_wr, &bad);
	if (n < REPOST_BATCH)
		ep->repost_wr[n - 1].next = &ep->repost_wr[n];
	ep->n_repost = 0;
	if (ret)
		posted = (uint32_t)(bad - ep->repost_wr);
	ep->n_posted += posted;
	ep->n_short += n - posted;
	for (uint32_t i = posted; i < n; i++)
		ep_buf_put(ep, wr_unpack(ep->repost_wr[i].wr_id).buf);
	return -ret;
}

/* Calls ep_flush_repost, but ignores errors that may pass, because make_up tries again. Not inlined, because
 * ep_recycle, which runs for each message, would then save registers. */
static __attribute__((noinline)) int refill(struct ep *ep)
{
	int ret;

	if (ep->n_repost == 0)
		return 0;
	ret = ep_flush_repost(ep);
	if (!ret)
		retry_worked(&ep->reposts);
	return ret && !retry_again(&ep->reposts, "ibv_post_srq_recv", -ret) ? -EIO : 0;
}

/* Gives the SRQ the receives it is short of, limited by the free buffers and by the size of one post. */
static int make_up(struct ep *ep)
{
	uint32_t n = MIN(MIN(ep->n_short, ep->n_free), REPOST_BATCH - 1 - ep->n_repost);

	ep->n_short -= n;
	while (n--)
		ep_recycle(ep, ep_buf_get(ep));
	return refill(ep);
}

void ep_ack(struct ep_cq *q)
{
	if (q->events)
		ibv_ack_cq_events(q->cq, q->events);
	q->events = 0;
}

int ep_fd(const struct ep *ep)
{
	return ep->channel ? ep->channel->fd : -1;
}

struct ibv_comp_channel *ep_channel(const struct ep *ep)
{
	return ep->channel;
}

int ep_take_events(struct ep *ep)
{
	struct ibv_cq *cq;
	void *context;
	uint64_t left = 0;
	int ret = 0;

	/* Each armed queue raises one event, so looking for more would waste a system call. */
	while (ep->n_armed > 0) {
		struct ep_cq *q;

		if (ibv_get_cq_event(ep->channel, &cq, &context)) {
			if (errno != EAGAIN && errno != EINTR)
				return -errno;
			break;
		}
		q = context;
		q->events++;
		ep->n_armed -= q->armed;
		q->armed = false;
		left |= q->bit;
	}
	for (left |= busy_queues(ep); left && !ret; left &= left - 1) {
		struct ep_cq *q = &ep->cqs[__builtin_ctzll(left)];

		ep_ack(q);
		/* A queue that is still armed holds no completion that raises an event. */
		if (!ep->spin && !q->armed)
			ret = ep_arm(ep, q);
	}
	return ret;
}

void ep_await(struct ep *ep, const struct ibv_qp *qp, int n)
{
	struct ep_cq *q = qp->send_cq->cq_context;

	q->awaited += (uint32_t)n;
	mark_queue(&ep->with_awaited, q, q->awaited);
	if (n >= 0 && !ep->spin && !q->armed && ep_arm(ep, q))
		log_error("ibv_req_notify_cq failed on %s", ep->dev->name);
}

void ep_count_sends(struct ep *ep, const struct ibv_qp *qp, int n)
{
	struct ep_cq *q = qp->send_cq->cq_context;

	q->out += (uint32_t)n;
	mark_queue(&ep->with_requests, q, q->out);
	ep->sends_out += (uint64_t)n;
}

void ep_poll_again(struct ep *ep, const struct ibv_qp *qp)
{
	ep->to_poll |= ((struct ep_cq *)qp->send_cq->cq_context)->bit;
}

uint64_t ep_sends_out(const struct ep *ep)
{
	return ep->sends_out;
}

void ep_count_doorbell(struct ep *ep, uint32_t requests, uint32_t signalled)
{
	ep->work.doorbells++;
	ep->work.requests += requests;
	ep->work.signalled += signalled;
}

void ep_get_work(const struct ep *ep, struct ep_work *out)
{
	*out = ep->work;
}

bool ep_needs_sweep(const struct ep *ep)
{
	return ep->sends_out || ep->n_short || (ep->solicited_only && !ep->limit_armed);
}

/* An abandoned queue pair may leave completions that no counter knows of, so every IDLE_SWEEPS-th sweep polls all
 * queues. */
void ep_sweep(struct ep *ep)
{
	ep->to_poll |= ep->sweeps++ % IDLE_SWEEPS == 0 ? ep->all_cqs : busy_queues(ep);
}

void ep_set_spin(struct ep *ep, bool spin)
{
	ep->spin = spin;
	for (uint32_t i = 0; i < ep->n_cqs && !spin; i++)
		if (ep_arm(ep, &ep->cqs[i]))
			log_error("ibv_req_notify_cq failed on %s", ep->dev->name);
}

/* Arms the receive queue for all receives, after it was armed for solicited ones only. */
static void arm_receives_again(struct ep *ep)
{
	struct ep_cq *q = &ep->cqs[0];

	ep->n_armed -= q->armed;
	q->armed = false;
	if (ep_arm(ep, q))
		log_error("ibv_req_notify_cq failed on %s", ep->dev->name);
}

void ep_watch_srq(struct ep *ep)
{
	struct ibv_srq_attr attr = { .srq_limit = SRQ_LIMIT };
	int ret;

	if (!ep->solicited_only || ep->limit_armed || ep->spin)
		return;
	ret = ibv_modify_srq(ep->srq, &attr, IBV_SRQ_LIMIT);
	ep->limit_armed = ret == 0;
	ep->srq_low = false;
	if (!ret)
		return;
	log_warn("%s cannot report that receives run out (ibv_modify_srq: %s), so each message wakes its thread",
		 ep->dev->name, strerror(ret));
	ep->solicited_only = false;
	arm_receives_again(ep);
}

void ep_srq_is_low(struct ep *ep)
{
	ep->limit_armed = false;
	ep->srq_low = true;
	ep->to_poll |= 1;
	if (!ep->spin)
		arm_receives_again(ep);
}

static int poll_cq(struct ep *ep, struct ep_cq *q, int max, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(q->cq, max, wc);

	ep->work.polls++;
	if (n < 0) {
		log_error("ibv_poll_cq failed on %s", ep->dev->name);
		return -EIO;
	}
	ep->work.empty_polls += n == 0;
	ep->work.completions += (uint32_t)n;
	return n;
}

static int dispatch(struct ep *ep, struct ep_cq *q, const struct ibv_wc *wc, int n)
{
	ep->batch++;
	ep_hold(ep);
	for (int i = 0; i < n; i++) {
		struct wr w = wr_unpack(wc[i].wr_id);

		ep->n_posted -= w.type == WR_RECV;
		q->awaited -= w.awaited;
		ep->on_wc(ep->arg, &wc[i]);
	}
	if (!q->awaited)
		ep->with_awaited &= ~q->bit;
	ep_unhold(ep);
	return refill(ep) ? -EIO : n;
}

/* Polls receives before any of them is handled: one batch, or all (look_at_all). */
static int look_at_cq(struct ep *ep, struct ep_cq *q)
{
	int n;

	ep->seen_at = ep->seen_n = 0;
	do {
		n = poll_cq(ep, q, EP_BATCH, ep->seen + ep->seen_n);
		if (n < 0)
			return n;
		ep->seen_n += (uint32_t)n;
	} while (n == EP_BATCH && ep->seen_n + EP_BATCH <= ep->seen_max);
	ep->look++;
	return 0;
}

static int process_receives(struct ep *ep, struct ep_cq *q, int max)
{
	const struct ibv_wc *wc;
	int n, ret = 0;

	if (ep->seen_at == ep->seen_n)
		ret = look_at_cq(ep, q);
	n = (int)MIN((uint32_t)max, ep->seen_n - ep->seen_at);
	if (ret || n == 0)
		return ret;
	wc = &ep->seen[ep->seen_at];
	ep->seen_at += (uint32_t)n;
	return dispatch(ep, q, wc, n);
}

static int process_sends(struct ep *ep, struct ep_cq *q, int max)
{
	struct ibv_wc wc[EP_BATCH];
	int n = poll_cq(ep, q, max, wc);

	return n > 0 ? dispatch(ep, q, wc, n) : n;
}

/* A spinning thread polls queues in which nothing is awaited only now and then, because each poll delays a message. */
static uint64_t spun_queues(const struct ep *ep)
{
	return ep->rounds % UNAWAITED_ROUNDS == 0 ? ep->all_cqs : ep->all_cqs & (1 | ep->with_awaited);
}

int ep_process(struct ep *ep, int max)
{
	ep->rounds++;
	max = MIN(max, (int)EP_BATCH);
	if (ep->n_short && make_up(ep))
		return -EIO;
	if (ep->spin)
		ep->to_poll |= spun_queues(ep);
	while (ep->to_poll) {
		uint64_t later = ep->to_poll >> ep->next_cq << ep->next_cq;
		struct ep_cq *q = &ep->cqs[__builtin_ctzll(later ? later : ep->to_poll)];
		int n = is_receive(ep, q) ? process_receives(ep, q, max) : process_sends(ep, q, max);

		ep->next_cq = q + 1 < ep->cqs + ep->n_cqs ? (uint32_t)(q + 1 - ep->cqs) : 0;
		if (n)
			return n;
		ep->to_poll &= ~q->bit;
	}
	return 0;
}

uint64_t ep_batch(const struct ep *ep)
{
	return ep->batch;
}

void ep_next_batch(struct ep *ep)
{
	ep->batch++;
}

uint64_t ep_look(const struct ep *ep)
{
	return ep->look;
}

void ep_hold(struct ep *ep)
{
	ep->holds++;
}

static void run_deferred(struct ep *ep)
{
	struct ep_deferred *d;

	while ((d = STAILQ_FIRST(&ep->deferred))) {
		STAILQ_REMOVE_HEAD(&ep->deferred, entry);
		d->queued = false;
		d->run(d);
	}
}

void ep_unhold(struct ep *ep)
{
	/* The endpoint stays held while the work runs, so work deferred by it runs in the same round. */
	if (ep->holds == 1)
		run_deferred(ep);
	ep->holds--;
}

bool ep_is_held(const struct ep *ep)
{
	return ep->holds > 0;
}

void ep_defer(struct ep *ep, struct ep_deferred *d)
{
	if (d->queued)
		return;
	d->queued = true;
	STAILQ_INSERT_TAIL(&ep->deferred, d, entry);
}

uint32_t ep_buf_get(struct ep *ep)
{
	if (!ep->n_free)
		return EP_NO_BUF;
	ep->n_free--;
	ep->n_unused = MIN(ep->n_unused, ep->n_free);
	return ep->free_bufs[ep->n_free];
}

void ep_buf_put(struct ep *ep, uint32_t buf)
{
	ep->free_bufs[ep->n_free++] = buf;
}

uint8_t *ep_buf(const struct ep *ep, uint32_t buf)
{
	return ep->slab + buf * ep->stride;
}

struct ep_buf_link *ep_buf_link(const struct ep *ep, uint32_t buf)
{
	return &ep->links[buf];
}

uint32_t ep_buf_bytes(const struct ep *ep)
{
	return ep->buf_bytes;
}

uint32_t ep_lkey(const struct ep *ep)
{
	return ep->mr->lkey;
}

void ep_recycle(struct ep *ep, uint32_t buf)
{
	struct wr w = { .type = WR_RECV, .buf = buf };
	uint32_t i;

	if (!ep->srq) {
		ep_buf_put(ep, buf);
		return;
	}
	i = ep->n_repost++;
	ep->repost_wr[i].wr_id = wr_pack(&w);
	ep->repost_sge[i].addr = (uintptr_t)ep_buf(ep, buf);
	if (ep->n_repost == REPOST_BATCH)
		(void)!refill(ep); /* logged there; the shortfall shows in bufs_short */
}

bool ep_replace(struct ep *ep)
{
	uint32_t buf;

	if (!ep->srq)
		return true;
	buf = ep_buf_get(ep);
	if (buf == EP_NO_BUF)
		ep->n_short++;
	else
		ep_recycle(ep, buf);
	return buf != EP_NO_BUF;
}

uint32_t ep_inline_bytes(const struct ep *ep)
{
	return ep->inline_bytes;
}

uint32_t ep_inline_wanted(const struct ep *ep)
{
	return ep->inline_wanted;
}

uint32_t ep_inline_granted(const struct ep *ep)
{
	return ep->inline_granted;
}

int ep_relaxed(const struct ep *ep)
{
	return ep->relaxed;
}

struct ibv_pd *ep_pd(const struct ep *ep)
{
	return ep->pd;
}

const struct dev *ep_dev(const struct ep *ep)
{
	return ep->dev;
}

uint32_t ep_sq_depth(const struct ep *ep)
{
	return ep->sq_depth;
}

uint32_t ep_post_list(const struct ep *ep)
{
	return ep->post_list;
}

uint32_t ep_signal_every(const struct ep *ep)
{
	return ep->signal_every;
}

void ep_get_counts(const struct ep *ep, struct ep_counts *out)
{
	out->bufs_posted = ep->n_posted;
	out->bufs_free = ep->n_free;
	out->bufs_total = ep->n_bufs;
	out->bufs_short = ep->n_short;
	out->pinned_bytes = ep->mr ? ep->slab_bytes : 0;
	out->cqs = ep->n_cqs;
	out->mrs = ep->mr != NULL;
}

/* The next inline size to request after `bytes` was refused: a smaller power of two, or 0. */
static uint32_t less_inline(uint32_t bytes)
{
	uint32_t less = 1;

	while (less * 2 < bytes)
		less *= 2;
	return less < INLINE_LEAST ? 0 : less;
}

/* Records the inline size that the device granted a queue pair. */
static void note_inline(struct ep *ep, uint32_t granted)
{
	ep->inline_granted = MIN(ep->inline_granted, granted);
	ep->inline_bytes = MIN(ep->inline_bytes, granted);
}

int ep_make_cq(struct ep *ep, uint32_t cqe, uint32_t room)
{
	struct ep_cq *q = &ep->cqs[ep->n_cqs];

	q->cq = ibv_create_cq(ep->dev->ctx, (int)cqe, q, ep->channel, 0);
	if (!q->cq)
		return -errno;
	q->room = room;
	q->bit = UINT64_C(1) << ep->n_cqs;
	ep->all_cqs |= q->bit;
	ep->to_poll = ep->all_cqs;
	ep->n_cqs++;
	return ep->spin ? 0 : ep_arm(ep, q);
}

int ep_make_send_cq(struct ep *ep)
{
	uint32_t qps = MIN(ep->qps_unassigned, ep->qps_per_cq);
	int ret = qps ? ep_make_cq(ep, qps * ep->sq_depth, qps) : -ENOSPC;

	if (!ret)
		ep->qps_unassigned -= qps;
	return ret;
}

int ep_qp_create(struct ep *ep, struct ibv_qp **out, uint32_t *cq_index)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.srq = ep->srq,
		.recv_cq = ep->cqs[0].cq,
		.cap = { .max_send_wr = ep->sq_depth, .max_send_sge = 1,
			 .max_inline_data = ep->inline_bytes },
	};
	uint32_t i = 1;
	int ret;

	while (i < ep->n_cqs && ep->cqs[i].room == 0)
		i++;
	if (i == ep->n_cqs) {
		ret = ep_make_send_cq(ep);
		if (ret)
			return ret;
	}
	attr.send_cq = ep->cqs[i].cq;
	*out = ibv_create_qp(ep->pd, &attr);
	/* The inline size is one cause of EINVAL. If the cause is another, no size helps, and inline data stays off. */
	while (!*out && errno == EINVAL && ep->inline_bytes) {
		ep->inline_bytes = less_inline(ep->inline_bytes);
		attr.cap = (struct ibv_qp_cap){ .max_send_wr = ep->sq_depth, .max_send_sge = 1,
						.max_inline_data = ep->inline_bytes };
		*out = ibv_create_qp(ep->pd, &attr);
	}
	if (!*out)
		return -errno;
	note_inline(ep, attr.cap.max_inline_data);
	ep->cqs[i].room--;
	*cq_index = i;
	return 0;
}

void ep_qp_destroy(struct ep *ep, struct ibv_qp *qp, uint32_t cq_index)
{
	int err = ibv_destroy_qp(qp);

	if (err)
		log_error("cannot destroy a queue pair of %s (ibv_destroy_qp): %s", ep->dev->name, strerror(err));
	ep->cqs[cq_index].room++;
}
