/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory of a thread in addition to the endpoint's slab: sources and destinations of large or one-sided
 * transfers. Peers have no access to it, except with `remote_write` (arena_new). Owning thread: the endpoint's.
 */
#ifndef RAMPART_COMMON_ARENA_H
#define RAMPART_COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct ep;

/* Allocates `bytes` (at least 1) of zeroed memory and registers it. With `remote_write`, a peer that has the key may
 * WRITE to it over any queue pair of the endpoint that grants this. The endpoint must outlive the arena. Blocks while
 * the memory is pinned, so call it before the loop runs. Errors, with a line in `err` that says what to do:
 *   -ENOMEM  no memory, or the limit of locked memory is too low
 *   other    from mmap or ibv_reg_mr
 */
int arena_new(struct ep *ep, size_t bytes, bool remote_write, struct arena **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Registers the memory with another endpoint, on another device; at most RAILS_MAX in all. Errors as arena_new. */
int arena_share(struct arena *a, struct ep *ep, char *err, size_t err_size) __attribute__((warn_unused_result));
void arena_free(struct arena *a);	/* NULL-safe */

uint8_t *arena_at(const struct arena *a, size_t offset);
/* The keys for the n-th endpoint (from 0) the memory was registered with. */
uint32_t arena_lkey(const struct arena *a, uint32_t n);
uint32_t arena_rkey(const struct arena *a, uint32_t n);
size_t arena_bytes(const struct arena *a);	/* 0 for NULL */
uint32_t arena_mrs(const struct arena *a);	/* 0 for NULL */

#endif
