/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided memory: a region per connection that asks for one, reachable by that connection only.
 *
 * Each region has a memory region of its own, without remote rights. A thread made for that (registrar.h) registers it
 * when it is first wanted, and it is kept. A type 2 memory window over the whole of it is bound to the connection's QP
 * and carries the remote rights. The window is freed when the connection ends, whatever state its QP is in, which kills
 * its key; the memory is zeroed before the next use, a part at a time. (Windows are not invalidated with a work request:
 * that needs a live QP, and a bound window would pin a dead one.) Owning thread: the endpoint's, for every function
 * here. What can fail returns 0 or a negative error.
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
	/* A region was registered, or could not be: region_pool_collect is due. Called on the registrar's thread, with its
	 * lock held: only wakes the endpoint's. */
	void (*on_registered)(void *arg);
	void *arg;
};

/* Memory is taken from the system only as regions are used. Errors:
 *   -ENOMEM  no address space, or no memory for the table
 */
int region_pool_new(const struct region_config *cfg, struct region_pool **out) __attribute__((warn_unused_result));
/* Waits for a registration that is under way. NULL-safe. */
void region_pool_free(struct region_pool *p);

/* `waiters` connections (1 or more) want a region each. True: they must wait, and a registration is under way for each,
 * as far as there are regions. False: call region_get at once, because a region is ready or none is on its way. */
bool region_pool_begin(struct region_pool *p, uint32_t waiters);
/* Takes the finished registrations over. Then call region_pool_begin and region_get again for each connection that waits,
 * the oldest first. */
void region_pool_collect(struct region_pool *p);
/* After these calls: a registration that failed is nobody's any more if the one who waited for it is gone. */
void region_pool_forget_failures(struct region_pool *p);

/* Overwrites regions that were given back with zeros, `budget_bytes` at most: the owner of the pool does that when
 * there is time. False if there is more to do. NULL-safe. */
bool region_pool_clear(struct region_pool *p, uint32_t budget_bytes);

/* Takes a zeroed region with a new key; region_put gives it back. Errors, after which nothing is taken:
 *   -EAGAIN  none is registered, left, or clear yet
 *   other    of ibv_alloc_mw, or of ibv_reg_mr for a region that could not be registered (told once for each)
 */
int region_get(struct region_pool *p, uint32_t *region, struct region_grant *out)
	__attribute__((warn_unused_result));
/* Binds the region's window to the connection's QP, which must be in RTS. Errors as rc_bind_window. */
int region_bind(struct region_pool *p, uint32_t region, struct rc *rc)
	__attribute__((warn_unused_result));
/* The region's bytes from `offset` on as what is WRITTEN: fills in local memory, key and size. False if they are
 * not all in the region, or are none. */
bool region_source(const struct region_pool *p, uint32_t region, uint64_t offset, uint32_t bytes,
		   struct ep_write *out) __attribute__((warn_unused_result));
/* Revokes the key. Call before the QP goes back to its pool. */
void region_put(struct region_pool *p, uint32_t region);

uint32_t region_in_use(const struct region_pool *p);
uint64_t region_pinned_bytes(const struct region_pool *p);
uint32_t region_mrs(const struct region_pool *p);

#endif
