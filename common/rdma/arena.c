/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory. See arena.h. */
#include "common/rdma/arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "common/rdma/ep.h"
#include "common/base/rails.h"

struct arena {
	uint8_t *memory;
	size_t bytes;
	struct ibv_mr *mrs[RAILS_MAX];
	uint32_t n_mrs;
	int access;		/* IBV_ACCESS_* rights of all mrs */
};

int arena_share(struct arena *a, struct ep *ep, char *err, size_t err_size)
{
	struct ibv_mr *mr = ibv_reg_mr(ep_pd(ep), a->memory, a->bytes, a->access | ep_relaxed(ep));
	int ret;

	if (!mr) {
		ret = -errno;
		snprintf(err, err_size,
			 "cannot register %zu bytes of memory for transfers: %s; raise the locked memory "
			 "limit (ulimit -l), or use smaller transfers, fewer clients or a lower --inflight", a->bytes,
			 strerror(-ret));
		return ret;
	}
	a->mrs[a->n_mrs++] = mr;
	return 0;
}

int arena_new(struct ep *ep, size_t bytes, bool remote_write, struct arena **out, char *err, size_t err_size)
{
	struct arena *a = calloc(1, sizeof(*a));
	int ret;

	if (!a) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	a->bytes = bytes;
	a->access = IBV_ACCESS_LOCAL_WRITE | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
	a->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED) {
		ret = -errno;
		a->memory = NULL;
		snprintf(err, err_size, "cannot allocate %zu bytes of memory for transfers: %s; use smaller transfers, "
			 "fewer clients or a lower --inflight", bytes, strerror(-ret));
		goto err_free;
	}
	ret = arena_share(a, ep, err, err_size);
	if (ret)
		goto err_free;
	*out = a;
	return 0;

err_free:
	arena_free(a);
	return ret;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->n_mrs)
		ibv_dereg_mr(a->mrs[--a->n_mrs]);
	if (a->memory)
		munmap(a->memory, a->bytes);
	free(a);
}

uint8_t *arena_at(const struct arena *a, size_t offset)
{
	return a->memory + offset;
}

uint32_t arena_lkey(const struct arena *a, uint32_t n)
{
	return a->mrs[n]->lkey;
}

uint32_t arena_mrs(const struct arena *a)
{
	return a ? a->n_mrs : 0;
}

uint32_t arena_rkey(const struct arena *a, uint32_t n)
{
	return a->mrs[n]->rkey;
}

size_t arena_bytes(const struct arena *a)
{
	return a ? a->bytes : 0;
}
