/* The verbs resources of one thread. See ep.h.
 *
 * Completion queues are sized so that they cannot overflow, whatever a peer does: the receive queue
 * holds every SRQ buffer, and each send queue holds the full send queues of the QPs assigned to it.
 */
#include "common/rdma/ep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/log.h"

#define REPOST_BATCH 128
#define SEND_CQS_MAX 64
#define UNAWAITED_ROUNDS 16

struct ep_cq {
	struct ibv_cq *cq;
	uint32_t room;		/* QPs that can still be assigned (send CQs) */
	uint32_t awaited;	/* completions to come that somebody waits for (send CQs) */
	unsigned int events;	/* taken and not acked */
	bool armed;		/* the next completion raises an event */
	bool poll;		/* may hold completions */
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
	uint64_t sends_out;
	uint32_t rounds;	/* of polling */
	uint32_t next_cq;
	uint64_t batch;
	bool spin, solicited_only;
	uint32_t sq_depth, inline_bytes, post_list, signal_every;
	uint32_t holds;
	struct ep_deferred *first_deferred, *last_deferred;

	uint8_t *slab;
	size_t slab_bytes;
	uint32_t buf_bytes;
	uint32_t n_bufs, n_free, n_posted;
	uint32_t *free_bufs;	/* stack */
	struct ep_buf_link *links;

	uint32_t n_repost;
	struct ibv_recv_wr repost_wr[REPOST_BATCH];
	struct ibv_sge repost_sge[REPOST_BATCH];
};

static int complain(char *err, size_t size, int e, const char *what, const char *advice)
{
	snprintf(err, size, "cannot create %s: %s; %s", what, strerror(e), advice);
	return -e;
}

static int make_channel(struct ep *ep)
{
	int flags;

	ep->channel = ibv_create_comp_channel(ep->dev->ctx);
	if (!ep->channel)
		return -errno;
	flags = fcntl(ep->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(ep->channel->fd, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(ep->channel->fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	return 0;
}

static bool is_receive(const struct ep *ep, const struct ep_cq *q)
{
	return q == &ep->cqs[0];
}

/* Polled afterwards: what came before it was armed raises no event. */
static int arm_if_awaited(struct ep *ep, struct ep_cq *q)
{
	int ret;

	q->poll = true;
	if (q->armed || (!q->awaited && !is_receive(ep, q)))
		return 0;
	ret = -ibv_req_notify_cq(q->cq, is_receive(ep, q) && ep->solicited_only);
	q->armed = ret == 0;
	ep->n_armed += q->armed;
	return ret;
}

static int make_cq(struct ep *ep, uint32_t cqe, uint32_t room)
{
	struct ep_cq *q = &ep->cqs[ep->n_cqs];

	q->cq = ibv_create_cq(ep->dev->ctx, (int)cqe, q, ep->channel, 0);
	if (!q->cq)
		return -errno;
	q->room = room;
	q->poll = true;
	ep->n_cqs++;
	return ep->spin ? 0 : arm_if_awaited(ep, q);
}

static int make_cqs(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t device_max = (uint32_t)ep->dev->attr.max_cqe;
	uint32_t max_cqe = cfg->cq_depth && cfg->cq_depth < device_max ? cfg->cq_depth : device_max;
	uint32_t per_cq = max_cqe / cfg->sq_depth, left = cfg->max_qps;
	int ret;

	ret = make_cq(ep, cfg->recv_depth + EP_BATCH, 0);
	while (!ret && left > 0) {
		uint32_t qps = left < per_cq ? left : per_cq;

		if (ep->n_cqs > SEND_CQS_MAX)
			return complain(err, err_size, ENOSPC, "completion queues",
					"use more threads, fewer clients or a higher --cq-depth");
		ret = make_cq(ep, qps * cfg->sq_depth, qps);
		left -= qps;
	}
	if (ret)
		return complain(err, err_size, -ret, "completion queues",
				"the device's max_cq and max_cqe limit them: use fewer clients or credits");
	return 0;
}

static int make_slab(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	ep->n_bufs = cfg->recv_depth + EP_BATCH + cfg->spare_bufs;
	ep->buf_bytes = (cfg->buf_bytes + 63) & ~63u;
	ep->slab_bytes = (size_t)ep->n_bufs * ep->buf_bytes;
	ep->free_bufs = calloc(ep->n_bufs, sizeof(*ep->free_bufs));
	ep->links = calloc(ep->n_bufs, sizeof(*ep->links));
	if (!ep->free_bufs || !ep->links)
		return complain(err, err_size, ENOMEM, "message buffers", "this machine is out of memory");
	ep->slab = mmap(NULL, ep->slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ep->slab == MAP_FAILED) {
		ep->slab = NULL;
		return complain(err, err_size, errno, "message buffers",
				"use fewer clients, credits or smaller messages");
	}
	/* No remote access: peers reach only the one-sided regions. */
	ep->mr = ibv_reg_mr(ep->pd, ep->slab, ep->slab_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!ep->mr)
		return complain(err, err_size, errno, "the message slab's memory region",
				"raise the locked memory limit (ulimit -l, LimitMEMLOCK=) or use fewer "
				"clients, credits or smaller messages");
	for (uint32_t i = 0; i < ep->n_bufs; i++)
		ep->free_bufs[i] = ep->n_bufs - 1 - i;
	ep->n_free = ep->n_bufs;
	return 0;
}

static int flush_repost(struct ep *ep)
{
	struct ibv_recv_wr *bad = NULL;
	uint32_t n = ep->n_repost;
	int ret;

	if (n == 0)
		return 0;
	ep->repost_wr[n - 1].next = NULL;
	ret = ibv_post_srq_recv(ep->srq, ep->repost_wr, &bad);
	if (n < REPOST_BATCH)
		ep->repost_wr[n - 1].next = &ep->repost_wr[n];
	ep->n_repost = 0;
	if (ret) {
		log_error("ibv_post_srq_recv failed: %s", strerror(ret));
		return -ret;
	}
	ep->n_posted += n;
	return 0;
}

static int make_srq(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t depth = cfg->recv_depth + EP_BATCH;
	struct ibv_srq_init_attr attr = { .srq_context = ep->channel, .attr = { .max_wr = depth, .max_sge = 1 } };
	int ret = 0;

	ep->srq = ibv_create_srq(ep->pd, &attr);
	if (!ep->srq)
		return complain(err, err_size, errno, "the shared receive queue",
				"the device's max_srq_wr limits it: use fewer clients or credits, or more threads");
	for (uint32_t i = 0; i < REPOST_BATCH; i++) {
		ep->repost_sge[i].lkey = ep->mr->lkey;
		ep->repost_sge[i].length = ep->buf_bytes;
		ep->repost_wr[i].sg_list = &ep->repost_sge[i];
		ep->repost_wr[i].num_sge = 1;
		ep->repost_wr[i].next = i + 1 < REPOST_BATCH ? &ep->repost_wr[i + 1] : NULL;
	}
	for (uint32_t i = 0; i < depth; i++)
		ep_recycle(ep, ep_buf_get(ep));
	ret = flush_repost(ep);
	if (ret || ep->n_posted != depth)
		return complain(err, err_size, ret ? -ret : EIO, "receive buffers", "see the device's max_srq_wr");
	return 0;
}

int ep_new(const struct ep_config *cfg, ep_on_wc_fn *on_wc, void *arg, struct ep **out, char *err,
	   size_t err_size)
{
	struct ep *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep)
		return complain(err, err_size, ENOMEM, "an endpoint", "this machine is out of memory");
	ep->dev = cfg->dev;
	ep->on_wc = on_wc;
	ep->arg = arg;
	ep->spin = cfg->spin;
	ep->solicited_only = cfg->solicited_only;
	ep->sq_depth = cfg->sq_depth;
	ep->inline_bytes = cfg->inline_bytes;
	ep->post_list = cfg->post_list ? cfg->post_list : 1;
	ep->signal_every = cfg->signal_every;
	ep->pd = ibv_alloc_pd(ep->dev->ctx);
	if (!ep->pd) {
		ret = complain(err, err_size, errno, "a protection domain", "the device's max_pd limits them");
		goto err_free;
	}
	ret = make_channel(ep);
	if (ret) {
		complain(err, err_size, -ret, "a completion channel", "raise the nofile limit (ulimit -n)");
		goto err_free;
	}
	ret = make_cqs(ep, cfg, err, err_size);
	if (!ret)
		ret = make_slab(ep, cfg, err, err_size);
	if (!ret)
		ret = make_srq(ep, cfg, err, err_size);
	if (ret)
		goto err_free;
	*out = ep;
	return 0;

err_free:
	ep_free(ep);
	return ret;
}

static void ack(struct ep_cq *q)
{
	if (q->events)
		ibv_ack_cq_events(q->cq, q->events);
	q->events = 0;
}

void ep_free(struct ep *ep)
{
	if (!ep)
		return;
	if (ep->srq)
		ibv_destroy_srq(ep->srq);
	for (uint32_t i = 0; i < ep->n_cqs; i++) {
		ack(&ep->cqs[i]);
		ibv_destroy_cq(ep->cqs[i].cq);
	}
	if (ep->channel)
		ibv_destroy_comp_channel(ep->channel);
	if (ep->mr)
		ibv_dereg_mr(ep->mr);
	if (ep->slab)
		munmap(ep->slab, ep->slab_bytes);
	free(ep->free_bufs);
	free(ep->links);
	if (ep->pd)
		ibv_dealloc_pd(ep->pd);
	free(ep);
}

int ep_fd(const struct ep *ep)
{
	return ep->channel->fd;
}

struct ibv_comp_channel *ep_channel(const struct ep *ep)
{
	return ep->channel;
}

int ep_take_events(struct ep *ep)
{
	struct ibv_cq *cq;
	void *context;
	int ret = 0;

	/* An armed queue raises one event: looking for more would be a system call for nothing. */
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
	}
	for (uint32_t i = 0; i < ep->n_cqs && !ret; i++) {
		struct ep_cq *q = &ep->cqs[i];

		ack(q);
		/* One that was armed and raised nothing is empty. */
		if (!ep->spin && !q->armed)
			ret = arm_if_awaited(ep, q);
	}
	return ret;
}

void ep_await(struct ep *ep, const struct ibv_qp *qp, int n)
{
	struct ep_cq *q = qp->send_cq->cq_context;

	q->awaited += (uint32_t)n;
	if (n > 0 && !ep->spin && !q->armed && arm_if_awaited(ep, q))
		log_error("ibv_req_notify_cq failed on %s", ep->dev->name);
}

void ep_count_sends(struct ep *ep, int n)
{
	ep->sends_out += (uint64_t)n;
}

uint64_t ep_sends_out(const struct ep *ep)
{
	return ep->sends_out;
}

void ep_sweep(struct ep *ep)
{
	for (uint32_t i = 0; i < ep->n_cqs; i++)
		ep->cqs[i].poll = true;
}

void ep_set_spin(struct ep *ep, bool spin)
{
	ep->spin = spin;
	for (uint32_t i = 0; i < ep->n_cqs && !spin; i++)
		if (arm_if_awaited(ep, &ep->cqs[i]))
			log_error("ibv_req_notify_cq failed on %s", ep->dev->name);
}

static int poll_cq(struct ep *ep, struct ep_cq *q, int max)
{
	struct ibv_wc wc[EP_BATCH];
	int n = ibv_poll_cq(q->cq, max < (int)EP_BATCH ? max : (int)EP_BATCH, wc);

	if (n < 0) {
		log_error("ibv_poll_cq failed on %s", ep->dev->name);
		return -EIO;
	}
	if (n == 0)
		return 0;
	ep->batch++;
	ep_hold(ep);
	for (int i = 0; i < n; i++) {
		struct wr w = wr_unpack(wc[i].wr_id);

		ep->n_posted -= w.type == WR_RECV;
		q->awaited -= w.awaited;
		ep->on_wc(ep->arg, &wc[i]);
	}
	ep_unhold(ep);
	return flush_repost(ep) ? -EIO : n;
}

/* A spinning thread looks for sends that nobody waits for now and then only: each look makes a message wait. */
static bool is_to_be_polled(const struct ep *ep, const struct ep_cq *q)
{
	return q->poll || (ep->spin && (is_receive(ep, q) || q->awaited || ep->rounds % UNAWAITED_ROUNDS == 0));
}

int ep_process(struct ep *ep, int max)
{
	ep->rounds++;
	for (uint32_t i = 0; i < ep->n_cqs; i++) {
		struct ep_cq *q = &ep->cqs[ep->next_cq];
		int n = 0;

		ep->next_cq = ep->next_cq + 1 < ep->n_cqs ? ep->next_cq + 1 : 0;
		if (is_to_be_polled(ep, q))
			n = poll_cq(ep, q, max);
		if (n)
			return n;
		q->poll = false;
	}
	return 0;
}

uint64_t ep_batch(const struct ep *ep)
{
	return ep->batch;
}

void ep_hold(struct ep *ep)
{
	ep->holds++;
}

static void run_deferred(struct ep *ep)
{
	struct ep_deferred *d;

	while ((d = ep->first_deferred)) {
		ep->first_deferred = d->next;
		d->queued = false;
		d->run(d);
	}
}

void ep_unhold(struct ep *ep)
{
	/* Still held meanwhile: what defers work from within is run in the same round. */
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
	d->next = NULL;
	if (ep->first_deferred)
		ep->last_deferred->next = d;
	else
		ep->first_deferred = d;
	ep->last_deferred = d;
}

uint32_t ep_buf_get(struct ep *ep)
{
	return ep->n_free ? ep->free_bufs[--ep->n_free] : EP_NO_BUF;
}

void ep_buf_put(struct ep *ep, uint32_t buf)
{
	ep->free_bufs[ep->n_free++] = buf;
}

uint8_t *ep_buf(const struct ep *ep, uint32_t buf)
{
	return ep->slab + (size_t)buf * ep->buf_bytes;
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
	uint32_t i = ep->n_repost++;

	ep->repost_wr[i].wr_id = wr_pack(&w);
	ep->repost_sge[i].addr = (uintptr_t)ep_buf(ep, buf);
	if (ep->n_repost == REPOST_BATCH)
		(void)!flush_repost(ep); /* logged there; the shortfall shows in bufs_posted */
}

uint32_t ep_inline_bytes(const struct ep *ep)
{
	return ep->inline_bytes;
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
	out->pinned_bytes = ep->slab_bytes;
	out->cqs = ep->n_cqs;
	out->mrs = 1;
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

	while (i < ep->n_cqs && ep->cqs[i].room == 0)
		i++;
	if (i == ep->n_cqs)
		return -ENOSPC;
	attr.send_cq = ep->cqs[i].cq;
	*out = ibv_create_qp(ep->pd, &attr);
	if (!*out && errno == EINVAL && ep->inline_bytes) {
		/* The device takes no inline data of this size: go without for all. */
		ep->inline_bytes = attr.cap.max_inline_data = 0;
		*out = ibv_create_qp(ep->pd, &attr);
	}
	if (!*out)
		return -errno;
	ep->cqs[i].room--;
	*cq_index = i;
	return 0;
}

void ep_qp_destroy(struct ep *ep, struct ibv_qp *qp, uint32_t cq_index)
{
	if (ibv_destroy_qp(qp))
		log_error("ibv_destroy_qp failed on %s", ep->dev->name);
	ep->cqs[cq_index].room++;
}
