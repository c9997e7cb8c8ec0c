/* SPDX-License-Identifier: BSD-2-Clause */
/* READs, WRITEs and atomics on the clients' regions, for the workloads made of them: memory layout, requests, and
 * checks of the data. Owning thread: the worker's.
 *
 * Operation n of a client works on slot n modulo --inflight, so that no two operations in flight share memory. With
 * --verify a slot is written with a part of the payload's text that differs from client to client and from operation to
 * operation, read back and compared; a READ must return the data written last. Atomics add 1 to the last 8 bytes of the
 * region, and the old value must be the number of earlier atomics.
 */
#ifndef RAMPART_LOADGEN_RMA_H
#define RAMPART_LOADGEN_RMA_H

#include <stdint.h>

#include "loadgen/traffic/traffic.h"

#define RMA_ATOMIC_BYTES UINT64_C(8)

/* Implements struct workload's `needs`: a region for the operations in flight and the counter of atomics. */
void rma_needs(const struct loadgen_config *c, struct workload_needs *out);

/* Implement struct workload's `start` and `on_rma`, for workloads of one stream that set `rma` or `rma_of`. */
void rma_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
void rma_on_done(struct traffic *t, struct wclient *wc, uint32_t lane, uint32_t n);

struct rma_slot;

/* Memory for the bookkeeping of a worker's clients. */
struct rma {
	struct rma_slot *slots;
	bool *ends;
};

/* Allocates the memory for `t`'s clients, if the workload uses rma_start. 0 or -ENOMEM; call rma_release either way. */
int rma_init(struct rma *r, struct traffic *t) __attribute__((warn_unused_result));
void rma_release(struct rma *r);

/* Call when a client's first connection begins: its region is all zero, and no request has been made. */
void rma_reset(struct wclient *wc);

#endif
