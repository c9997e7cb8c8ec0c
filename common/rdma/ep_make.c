/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, trimming and freeing an endpoint. See ep.h.
 *
 * Completion queues are sized so that they cannot overflow, whatever a peer does: the receive queue
 * holds every SRQ buffer, and each send queue holds the full send queues of the QPs assigned to it. The first send
 * queue is created with the endpoint, each other one when no queue has room for a QP, because most endpoints never have
 * as many QPs as they may.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/rdma/ep_internal.h"

static int ep_error(char *err, size_t size, int e, const char *what, const char *advice)
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

static int make_cqs(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t device_max = (uint32_t)ep->dev->attr.max_cqe;
	uint32_t max_cqe = cfg->cq_depth && cfg->cq_depth < device_max ? cfg->cq_depth : device_max;
	int ret;

	ep->qps_per_cq = max_cqe / cfg->sq_depth;
	ep->qps_unassigned = cfg->max_qps;
	if (!ep->qps_per_cq || howmany(cfg->max_qps, (uint64_t)ep->qps_per_cq) > SEND_CQS_MAX)
		return ep_error(err, err_size, ENOSPC, "completion queues",
				"use more threads, fewer clients or a higher --cq-depth");
	ret = ep_make_cq(ep, cfg->recv_depth + EP_BATCH, 0);
	if (!ret)
		ret = ep_make_send_cq(ep);
	if (ret)
		return ep_error(err, err_size, -ret, "completion queues",
				"the device's max_cq and max_cqe limit them: use fewer clients or credits");
	return 0;
}

/* Allocates the completions that one look at the receive queue can find: as many as the queue holds, or one batch. */
static int make_seen(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t most = cfg->look_at_all ? cfg->recv_depth + EP_BATCH : EP_BATCH;

	ep->seen_max = roundup(most, EP_BATCH);
	ep->seen = calloc(ep->seen_max, sizeof(*ep->seen));
	return ep->seen ? 0 : ep_error(err, err_size, ENOMEM, "an endpoint", "this machine is out of memory");
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Starting a large buffer on a page boundary touches no more pages, and lets ep_trim return its pages separately. */
size_t ep_stride(uint64_t buf_bytes, bool registered)
{
	return registered || buf_bytes < 2 * page_bytes() ? roundup(buf_bytes, 64) : roundup(buf_bytes, page_bytes());
}

static int make_slab(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	ep->n_bufs = cfg->recv_depth + EP_BATCH + cfg->spare_bufs;
	ep->buf_bytes = (cfg->buf_bytes + 63) & ~63u;	/* so that even the smallest takes a proof (msg.h) */
	ep->stride = ep_stride(cfg->buf_bytes, ep->dev);
	ep->slab_bytes = ep->n_bufs * ep->stride;
	ep->free_bufs = calloc(ep->n_bufs, sizeof(*ep->free_bufs));
	ep->links = calloc(ep->n_bufs, sizeof(*ep->links));
	if (!ep->free_bufs || !ep->links)
		return ep_error(err, err_size, ENOMEM, "message buffers", "this machine is out of memory");
	ep->slab = mmap(NULL, ep->slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ep->slab == MAP_FAILED) {
		ep->slab = NULL;
		return ep_error(err, err_size, errno, "message buffers",
				"use fewer clients, credits or smaller messages");
	}
	for (uint32_t i = 0; i < ep->n_bufs; i++)
		ep->free_bufs[i] = ep->n_bufs - 1 - i;
	ep->n_free = ep->n_unused = ep->n_trimmed = ep->n_bufs;
	if (!ep->dev)
		return 0;
	/* No remote access: peers reach only the one-sided regions. */
	ep->mr = ibv_reg_mr(ep->pd, ep->slab, ep->slab_bytes, IBV_ACCESS_LOCAL_WRITE | ep->relaxed);
	if (!ep->mr)
		return ep_error(err, err_size, errno, "the message slab's memory region",
				"raise the locked memory limit (ulimit -l, LimitMEMLOCK=) or use fewer "
				"clients, credits or smaller messages");
	return 0;
}

static int make_srq(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	uint32_t depth = cfg->recv_depth + EP_BATCH;
	struct ibv_srq_init_attr attr = { .srq_context = ep->channel, .attr = { .max_wr = depth, .max_sge = 1 } };
	int ret = 0;

	ep->srq = ibv_create_srq(ep->pd, &attr);
	if (!ep->srq)
		return ep_error(err, err_size, errno, "the shared receive queue",
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
	ret = ep_flush_repost(ep);
	if (ret || ep->n_posted != depth)
		return ep_error(err, err_size, ret ? -ret : EIO, "receive buffers", "see the device's max_srq_wr");
	return 0;
}

static int make_queues(struct ep *ep, const struct ep_config *cfg, char *err, size_t err_size)
{
	int ret;

	ep->pd = ibv_alloc_pd(ep->dev->ctx);
	if (!ep->pd)
		return ep_error(err, err_size, errno, "a protection domain", "the device's max_pd limits them");
	ret = make_channel(ep);
	if (ret)
		return ep_error(err, err_size, -ret, "a completion channel", "raise the nofile limit (ulimit -n)");
	ret = make_cqs(ep, cfg, err, err_size);
	return ret ? ret : make_seen(ep, cfg, err, err_size);
}

int ep_new(const struct ep_config *cfg, ep_on_wc_fn *on_wc, void *arg, struct ep **out, char *err,
	   size_t err_size)
{
	struct ep *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep)
		return ep_error(err, err_size, ENOMEM, "an endpoint", "this machine is out of memory");
	ep->dev = cfg->dev;
	ep->on_wc = on_wc;
	ep->arg = arg;
	ep->spin = cfg->spin;
	ep->solicited_only = cfg->solicited_only;
	ep->sq_depth = cfg->sq_depth;
	/* A software device has no PCI bus. */
	if (cfg->relaxed_ordering && ep->dev && !dev_is_software(ep->dev))
		ep->relaxed = IBV_ACCESS_RELAXED_ORDERING;
	ep->inline_bytes = ep->inline_wanted = cfg->inline_bytes;
	ep->inline_granted = UINT32_MAX;
	ep->post_list = cfg->post_list ? cfg->post_list : 1;
	ep->signal_every = cfg->signal_every;
	STAILQ_INIT(&ep->deferred);
	ret = ep->dev ? make_queues(ep, cfg, err, err_size) : 0;
	if (!ret)
		ret = make_slab(ep, cfg, err, err_size);
	if (!ret && ep->dev)
		ret = make_srq(ep, cfg, err, err_size);
	if (ret) {
		ep_free(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

#define TRIM_CALLS_MAX 256

/* Number of stack entries whose buffers may be returned; if buffers share pages, 0 unless all of them are free. */
static uint32_t trimmable(const struct ep *ep)
{
	bool share_pages = ep->stride % page_bytes();
	uint32_t kept = (uint32_t)MIN(EP_KEPT_BYTES / ep->stride, ep->n_bufs);

	return ep->mr || (share_pages && ep->n_unused < ep->n_bufs) ? 0 : MIN(ep->n_unused, ep->n_bufs - kept);
}

bool ep_needs_trim(const struct ep *ep)
{
	return !ep->mr && (ep->n_unused < ep->n_free || MIN(ep->n_trimmed, ep->n_unused) < trimmable(ep));
}

/* Gives the pages of the next adjacent buffers of the stack back to the kernel in one call. Returns their bytes. */
static size_t trim_neighbours(struct ep *ep, uint32_t upto, size_t most_bytes)
{
	uint32_t low = ep->free_bufs[ep->n_trimmed++], high = low;
	size_t bytes = ep->stride;

	for (; ep->n_trimmed < upto && bytes < most_bytes; ep->n_trimmed++, bytes += ep->stride) {
		uint32_t next = ep->free_bufs[ep->n_trimmed];

		if (next + 1 == low)
			low = next;
		else if (next == high + 1)
			high = next;
		else
			break;
	}
	madvise(ep_buf(ep, low), bytes, MADV_DONTNEED);
	return bytes;
}

bool ep_trim(struct ep *ep, size_t budget_bytes)
{
	uint32_t upto = trimmable(ep), calls = 0;

	ep->n_trimmed = MIN(ep->n_trimmed, ep->n_unused);
	if (ep->n_trimmed < upto && ep->stride % page_bytes()) {
		madvise(ep->slab, ep->slab_bytes, MADV_DONTNEED);
		ep->n_trimmed = upto;
	}
	/* The number of calls is limited, because each briefly stops the process's other threads. */
	for (size_t done = 0; ep->n_trimmed < upto && done < budget_bytes && calls < TRIM_CALLS_MAX; calls++)
		done += trim_neighbours(ep, upto, budget_bytes - done);
	if (ep->n_trimmed < upto)
		return true;
	ep->n_unused = ep->n_free;
	return false;
}

void ep_free(struct ep *ep)
{
	if (!ep)
		return;
	if (ep->srq)
		ibv_destroy_srq(ep->srq);
	for (uint32_t i = 0; i < ep->n_cqs; i++) {
		ep_ack(&ep->cqs[i]);
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
	free(ep->seen);
	if (ep->pd)
		ibv_dealloc_pd(ep->pd);
	free(ep);
}
