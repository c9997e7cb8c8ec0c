/* The verbs resources of one thread. See ep.h.
 *
 * Completion queues are sized so that they cannot overflow, whatever a peer does: the receive queue
 * holds every SRQ buffer, and each send queue holds the full send queues of the QPs assigned to it.
 */
#include "common/ep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/log.h"

#define REPOST_BATCH 128
#define SEND_CQS_MAX 64

struct ep_cq {
	struct ibv_cq *cq;
	uint32_t room;		/* QPs that can still be assigned (send CQs) */
	unsigned int events;	/* taken and not acked */
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
	uint32_t n_cqs;
	uint32_t next_cq;
	uint64_t batch;
	bool spin;
	uint32_t sq_depth, inline_bytes;

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

static int make_cq(struct ep *ep, uint32_t cqe, uint32_t room)
{
	struct ep_cq *q = &ep->cqs[ep->n_cqs];

	q->cq = ibv_create_cq(ep->dev->ctx, (int)cqe, q, ep->channel, 0);
	if (!q->cq)
		return -errno;
	q->room = room;
	q->poll = true;
	ep->n_cqs++;
	return ep->spin ? 0 : -ibv_req_notify_cq(q->cq, 0);
}

static int make_cqs(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t max_cqe = (uint32_t)ep->dev->attr.max_cqe;
	uint32_t per_cq = max_cqe / cfg->sq_depth, left = cfg->max_qps;
	int ret;

	ret = make_cq(ep, cfg->recv_depth + EP_BATCH, 0);
	while (!ret && left > 0) {
		uint32_t qps = left < per_cq ? left : per_cq;

		if (ep->n_cqs > SEND_CQS_MAX)
			return complain(err, err_size, ENOSPC, "completion queues",
					"use more threads or fewer clients");
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
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = depth, .max_sge = 1 } };
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
	ep->sq_depth = cfg->sq_depth;
	ep->inline_bytes = cfg->inline_bytes;
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

static int arm(struct ep_cq *q)
{
	q->poll = true;
	return -ibv_req_notify_cq(q->cq, 0);
}

int ep_take_events(struct ep *ep)
{
	struct ibv_cq *cq;
	void *context;
	int ret = 0;

	while (ibv_get_cq_event(ep->channel, &cq, &context) == 0)
		((struct ep_cq *)context)->events++;
	if (errno != EAGAIN && errno != EINTR)
		return -errno;
	for (uint32_t i = 0; i < ep->n_cqs && !ret; i++) {
		if (!ep->cqs[i].events)
			continue;
		ack(&ep->cqs[i]);
		if (!ep->spin)
			ret = arm(&ep->cqs[i]);
	}
	return ret;
}

void ep_set_spin(struct ep *ep, bool spin)
{
	ep->spin = spin;
	for (uint32_t i = 0; i < ep->n_cqs && !spin; i++)
		if (arm(&ep->cqs[i]))
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
	ep->batch++;
	for (int i = 0; i < n; i++) {
		if (wr_unpack(wc[i].wr_id).type == WR_RECV)
			ep->n_posted--;
		ep->on_wc(ep->arg, &wc[i]);
	}
	return flush_repost(ep) ? -EIO : n;
}

int ep_process(struct ep *ep, int budget)
{
	int done = 0;
	uint32_t idle = 0;

	/* Round robin over the queues until each was found empty or the budget is used. */
	while (idle < ep->n_cqs && done < budget) {
		struct ep_cq *q = &ep->cqs[ep->next_cq];
		int n = 0;

		ep->next_cq = ep->next_cq + 1 < ep->n_cqs ? ep->next_cq + 1 : 0;
		if (q->poll || ep->spin)
			n = poll_cq(ep, q, budget - done);
		if (n < 0)
			return n;
		if (n == 0)
			q->poll = false;
		idle = n == 0 ? idle + 1 : 0;
		done += n;
	}
	return done;
}

uint64_t ep_batch(const struct ep *ep)
{
	return ep->batch;
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
