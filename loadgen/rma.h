/* Operations on the clients' regions, for the workloads that make them: where they read and write, and what must
 * stand there. Owning thread: the worker's.
 *
 * Operation n of a client works on slot n modulo the operations under way, so that no two of those share memory.
 * With --verify a slot is written with a part of the payload's text that differs from client to client and from
 * operation to operation, read back and compared; a READ must find what was written last. Atomics add 1 to the last 8
 * bytes of the region, and the old value must be the number of those before.
 *
 * An operation of a stream that the server pushes is one message that asks for it. With --verify what is to be
 * pushed is written first, and asked for when that is done.
 */
#ifndef RAMPART_LOADGEN_RMA_H
#define RAMPART_LOADGEN_RMA_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct wclient;
struct worker;

#define RMA_ATOMIC_BYTES UINT64_C(8)

/* struct workload's start, on_rma and on_pushed, for workloads that say rma or rma_of. */
void rma_start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n);
void rma_on_done(struct worker *w, struct wclient *wc, uint32_t n);
void rma_on_pushed(struct worker *w, struct wclient *wc, uint64_t sequence);

/* Requests of a client under way, at most. */
uint32_t rma_requests(const struct worker *w);

/* A client connects: what comes back to it is where the server may WRITE. */
void rma_use_window(struct worker *w, struct wclient *wc);

/* A client connected: its region is all zero, and nothing of it was read yet. */
void rma_reset(struct worker *w, struct wclient *wc);

#endif
