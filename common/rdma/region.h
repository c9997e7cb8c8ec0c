/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided memory: a region per connection that asks for one, reachable by that connection only.
 *
 * Each region has a memory region of its own, without remote rights. A dedicated thread (registrar.h) registers it on
 * first use, and the registration is kept. A type 2 memory window over the whole region is bound to the connection's QP
 * and carries the remote rights. The window is freed when the connection ends, whatever state its QP is in, which
 * revokes its key; the memory is zeroed before the next use, a part at a time. (Windows are not invalidated with a work
 * request: that needs a live QP, and a bound window would pin a dead one.) Owning thread: the endpoint's, for every
 * function here. Functions that can fail return 0 or a negative error.
 */
#ifndef RAMPART_COMMON_REGION_H
#define RAMPART_COMMON_REGION_H

#include <stdbool.h>
#include <stdint.h>

struct ep;
struct ep_write;
struct rc;
struct registrar;
struct region_pool;

#define REGION_NONE UINT32_MAX

struct region_grant {
	uint64_t addr;
	uint32_t bytes;
	uint32_t rkey;	/* becomes valid with region_bind */
};

struct region_config {
	struct ep *ep;
	uint32_t max;			/* regions */
	uint32_t region_bytes;		/* at least 1 */
	struct registrar *registrar;	/* must outlive the pool */
	/* Called when a registration succeeded or failed, so that region_pool_collect is due. Runs on the registrar's
	 * thread with its lock held, so it must only wake the endpoint's thread. */
	void (*on_registered)(void *arg);
	void *arg;
};

/* Creates a pool, which takes memory from the system only as regions are used. Errors:
 *   -ENOMEM  no address space, or no memory for the table
 */
int region_pool_new(const struct region_config *cfg, struct region_pool **out) __attribute__((warn_unused_result));
/* Waits for a registration that is under way. NULL-safe. */
void region_pool_free(struct region_pool *p);

/* Call when `waiters` connections (1 or more) want a region each. True: they must wait; a registration is under way for
 * each, as far as regions are left. False: call region_get at once, because a region is ready or none is on its way. */
bool region_pool_begin(struct region_pool *p, uint32_t waiters);
/* Collects the finished registrations. Then call region_pool_begin and region_get again for each connection that waits,
 * the oldest first. */
void region_pool_collect(struct region_pool *p);
/* Call after these calls: drops failures that region_get did not report because no connection waits any more. */
void region_pool_forget_failures(struct region_pool *p);

/* Zeroes regions that were returned, at most `budget_bytes` per call; the pool's owner calls it when it has time. False
 * if more is left to zero. NULL-safe. */
bool region_pool_clear(struct region_pool *p, uint32_t budget_bytes);

/* Takes a zeroed region with a new key; region_put returns it. Errors, after which nothing is taken:
 *   -EAGAIN  no region is left, or none is registered and zeroed yet
 *   other    from ibv_alloc_mw, or from ibv_reg_mr for a failed registration (each failure is reported once)
 */
int region_get(struct region_pool *p, uint32_t *region, struct region_grant *out)
	__attribute__((warn_unused_result));
/* Binds the region's window to the connection's QP, which must be in RTS. Errors as rc_bind_window. */
int region_bind(struct region_pool *p, uint32_t region, struct rc *rc)
	__attribute__((warn_unused_result));
/* Fills in local memory, key and size of a WRITE whose source is `bytes` of the region from `offset` on. False if the
 * range is empty or exceeds the region. */
bool region_source(const struct region_pool *p, uint32_t region, uint64_t offset, uint32_t bytes,
		   struct ep_write *out) __attribute__((warn_unused_result));
/* Returns the region and revokes its key. Call before the QP goes back to its pool. */
void region_put(struct region_pool *p, uint32_t region);

uint32_t region_in_use(const struct region_pool *p);
uint64_t region_pinned_bytes(const struct region_pool *p);
uint32_t region_mrs(const struct region_pool *p);

#endif
