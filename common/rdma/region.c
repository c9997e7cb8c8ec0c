/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided memory regions. See region.h. Lists are chains of indices into the one array of slots. */
#include "common/rdma/region.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/rdma/ep.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/rc.h"
#include "common/rdma/registrar.h"

#define CLEAR_AT_ONCE_BYTES (1u << 20)

struct slot {
	struct registrar_job job;	/* job.mr: NULL until it is registered */
	struct ibv_mw *mw;	/* only while in use */
	uint32_t rkey;
	uint32_t next;
};

struct region_pool {
	struct ep *ep;
	uint8_t *memory;
	size_t memory_bytes;
	uint32_t region_bytes, stride_bytes;
	uint32_t max, in_use, mrs;
	/* Lists of free slots. fresh: zero, never registered; clean: zero, registered; dirty: registered, not zero. */
	uint32_t fresh, clean, dirty, last_dirty;
	uint32_t registering;
	uint32_t failed;		/* registrations that failed and that region_get has not reported yet */
	int failed_err;			/* negative errno of the last one */
	uint64_t log_ns;		/* earliest time of the next log line about a region that cannot be had */
	struct registrar_user user;
	uint32_t cleared_bytes;	/* bytes of the first dirty region that are zeroed already */
	struct slot *slots;
};

int region_pool_new(const struct region_config *cfg, struct region_pool **out)
{
	struct region_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ep = cfg->ep;
	p->max = cfg->max;
	p->region_bytes = cfg->region_bytes;
	registrar_user_init(&p->user, cfg->registrar, cfg->on_registered, cfg->arg);
	/* A page is the unit of registration, so no two regions share one. */
	p->stride_bytes = (p->region_bytes + 4095) & ~4095u;
	p->memory_bytes = (size_t)p->max * p->stride_bytes;
	p->slots = calloc(p->max, sizeof(*p->slots));
	p->memory = mmap(NULL, p->memory_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!p->slots || p->memory == MAP_FAILED) {
		if (p->memory != MAP_FAILED)
			munmap(p->memory, p->memory_bytes);
		free(p->slots);
		free(p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->max; i++)
		p->slots[i].next = i + 1 < p->max ? i + 1 : REGION_NONE;
	p->clean = p->dirty = REGION_NONE;
	*out = p;
	return 0;
}

void region_pool_free(struct region_pool *p)
{
	if (!p)
		return;
	registrar_cancel(&p->user);
	for (uint32_t i = 0; i < p->max; i++) {
		if (p->slots[i].mw)
			ibv_dealloc_mw(p->slots[i].mw);
		if (p->slots[i].job.mr)
			ibv_dereg_mr(p->slots[i].job.mr);
	}
	munmap(p->memory, p->memory_bytes);
	free(p->slots);
	free(p);
}

static uint8_t *memory_of(const struct region_pool *p, uint32_t region)
{
	return p->memory + (size_t)region * p->stride_bytes;
}

static uint32_t pop(struct region_pool *p, uint32_t *list)
{
	uint32_t region = *list;

	*list = p->slots[region].next;
	return region;
}

static void push(struct region_pool *p, uint32_t *list, uint32_t region)
{
	p->slots[region].next = *list;
	*list = region;
}

bool region_pool_begin(struct region_pool *p, uint32_t waiters)
{
	region_pool_clear(p, CLEAR_AT_ONCE_BYTES);
	if (p->clean != REGION_NONE || p->failed)
		return false;
	while (p->registering < waiters && p->fresh != REGION_NONE) {
		uint32_t region = pop(p, &p->fresh);
		struct slot *s = &p->slots[region];

		s->job = (struct registrar_job){ .user = &p->user, .pd = ep_pd(p->ep), .addr = memory_of(p, region),
						 .bytes = p->region_bytes,
						 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
							   ep_relaxed(p->ep) };
		p->registering++;
		registrar_submit(&s->job);
	}
	return p->registering > 0;
}

void region_pool_collect(struct region_pool *p)
{
	struct registrar_job *job;

	while ((job = registrar_take(&p->user))) {
		uint32_t region = (uint32_t)(((uint8_t *)job->addr - p->memory) / p->stride_bytes);

		p->registering--;
		if (job->mr) {
			p->mrs++;
			push(p, &p->clean, region);
			continue;
		}
		if (log_is_due(&p->log_ns, NS_PER_S))
			log_error("cannot register a one-sided region of %u bytes: %s; raise the limit of locked "
				  "memory (ulimit -l) or lower --region-size; the device's max_mr limits their number",
				  p->region_bytes, strerror(job->err));
		p->failed++;
		p->failed_err = -job->err;
		push(p, &p->fresh, region);
	}
}

void region_pool_forget_failures(struct region_pool *p)
{
	p->failed = 0;
}

static int make_window(struct region_pool *p, uint32_t region)
{
	struct slot *s = &p->slots[region];
	int ret;

	s->mw = ibv_alloc_mw(ep_pd(p->ep), IBV_MW_TYPE_2);
	if (!s->mw) {
		ret = -errno;
		if (log_is_due(&p->log_ns, NS_PER_S))
			log_error("cannot create a memory window for a one-sided region: %s; the device's max_mw "
				  "limits their number: lower --max-clients", strerror(-ret));
		return ret;
	}
	s->rkey = ibv_inc_rkey(s->mw->rkey);
	return 0;
}

bool region_pool_clear(struct region_pool *p, uint32_t budget_bytes)
{
	while (p && p->dirty != REGION_NONE) {
		uint32_t region = p->dirty, left = p->region_bytes - p->cleared_bytes;
		uint32_t n = left < budget_bytes ? left : budget_bytes;

		memset(memory_of(p, region) + p->cleared_bytes, 0, n);
		p->cleared_bytes += n;
		budget_bytes -= n;
		if (p->cleared_bytes < p->region_bytes)
			return false;
		p->dirty = p->slots[region].next;
		p->cleared_bytes = 0;
		push(p, &p->clean, region);
	}
	return true;
}

int region_get(struct region_pool *p, uint32_t *region, struct region_grant *out)
{
	uint32_t i;
	int ret;

	/* A small region is cleared right here; a large one only when the pool's owner has time (region_pool_clear). */
	region_pool_clear(p, CLEAR_AT_ONCE_BYTES);
	i = p->clean;
	if (i == REGION_NONE && p->failed) {
		p->failed--;
		return p->failed_err;
	}
	if (i == REGION_NONE)
		return -EAGAIN;
	ret = make_window(p, i);
	if (ret)
		return ret;
	pop(p, &p->clean);
	p->in_use++;
	out->addr = (uintptr_t)memory_of(p, i);
	out->bytes = p->region_bytes;
	out->rkey = p->slots[i].rkey;
	*region = i;
	return 0;
}

int region_bind(struct region_pool *p, uint32_t region, struct rc *rc)
{
	struct slot *s = &p->slots[region];
	struct ibv_mw_bind_info info = {
		.mr = s->job.mr,
		.addr = (uintptr_t)memory_of(p, region),
		.length = p->region_bytes,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   (dev_has_atomics(ep_dev(p->ep)) ? IBV_ACCESS_REMOTE_ATOMIC : 0u),
	};

	return rc_bind_window(rc, s->mw, &info, s->rkey);
}

bool region_source(const struct region_pool *p, uint32_t region, uint64_t offset, uint32_t bytes,
		   struct ep_write *out)
{
	if (bytes == 0 || offset > p->region_bytes || bytes > p->region_bytes - offset)
		return false;
	out->local = memory_of(p, region) + offset;
	out->bytes = bytes;
	out->lkey = p->slots[region].job.mr->lkey;
	return true;
}

void region_put(struct region_pool *p, uint32_t region)
{
	struct slot *s = &p->slots[region];
	int err;

	assert(s->mw);
	err = ibv_dealloc_mw(s->mw);
	if (err)
		log_error("cannot free a memory window (ibv_dealloc_mw): %s", strerror(err));
	s->mw = NULL;
	/* Appended to the list, because its first region may be half cleared. */
	s->next = REGION_NONE;
	if (p->dirty == REGION_NONE)
		p->dirty = region;
	else
		p->slots[p->last_dirty].next = region;
	p->last_dirty = region;
	p->in_use--;
}

uint32_t region_in_use(const struct region_pool *p)
{
	return p ? p->in_use : 0;
}

uint64_t region_pinned_bytes(const struct region_pool *p)
{
	return p ? (uint64_t)p->mrs * p->region_bytes : 0;
}

uint32_t region_mrs(const struct region_pool *p)
{
	return p ? p->mrs : 0;
}
