/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the memory of queues. See device_memory.h.
 *
 * Sources for rdma_rxe: rxe_queue_init() of the kernel's drivers/infiniband/sw/rxe/rxe_queue.c (a header of 384 bytes;
 * one entry more than asked for, rounded up to a power of two; an entry is a cache line at least, and a power of two;
 * vmalloc_user, so whole pages), rxe_qp.c and rxe_srq.c for the contents of an entry, and rdma/rdma_user_rxe.h for its
 * size. The other memory of an object was measured on kernel 6.1 by creating many of them (/proc/slabinfo,
 * VmallocUsed). */
#include "loadgen/plan/device_memory.h"

#include <math.h>
#include <string.h>

#define RXE_HEADER_BYTES 384.0
#define RXE_ENTRY_LEAST 64.0
#define RXE_SEND_BYTES 208.0		/* struct rxe_send_wqe without SGEs and inline data */
#define RXE_SGE_BYTES 16.0
#define RXE_RECEIVE_BYTES 56.0		/* struct rxe_recv_wqe with one SGE */
#define RXE_CQE_BYTES 72.0		/* struct rxe_cqe: the kernel's struct ib_wc */
#define OTHER_CQE_BYTES 64.0
/* Unknown drivers: a send queue entry has 64 bytes, and a request with inline data takes several. */
#define OTHER_SEND_BYTES 256.0
#define OTHER_QP_BYTES 4096.0

enum memory_driver memory_driver_of(const char *name)
{
	return name && strcmp(name, "rdma_rxe") == 0 ? MEMORY_RXE : MEMORY_OTHER;
}

static double power_of_two(double v)
{
	return exp2(ceil(log2(v)));
}

static double rxe_queue(double entries, double entry_bytes)
{
	double bytes = RXE_HEADER_BYTES + power_of_two(entries + 1) * power_of_two(fmax(entry_bytes, RXE_ENTRY_LEAST));

	return ceil(bytes / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES;
}

/* A queue of any other driver: it is in the memory of the process. */
static struct memory_use other_queue(double entries, double entry_bytes)
{
	return (struct memory_use){ .process = ceil(entries * entry_bytes / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES };
}

struct memory_use memory_of_qp(enum memory_driver d, double sq_depth, double inline_bytes)
{
	struct memory_use u;

	if (d == MEMORY_RXE)
		u = (struct memory_use){ .shared = rxe_queue(sq_depth,
							     RXE_SEND_BYTES + fmax(RXE_SGE_BYTES, inline_bytes)),
					 .kernel = MEMORY_QP_KERNEL_BYTES };
	else
		u = other_queue(sq_depth, fmax(OTHER_SEND_BYTES, inline_bytes));
	if (d != MEMORY_RXE)
		u.kernel = OTHER_QP_BYTES;
	u.process += MEMORY_QP_PROCESS_BYTES;
	return u;
}

struct memory_use memory_of_cq(enum memory_driver d, double entries)
{
	struct memory_use rxe = { .shared = rxe_queue(entries, RXE_CQE_BYTES) };

	return d == MEMORY_RXE ? rxe : other_queue(entries, OTHER_CQE_BYTES);
}

struct memory_use memory_of_srq(enum memory_driver d, double entries)
{
	struct memory_use rxe = { .shared = rxe_queue(entries, RXE_RECEIVE_BYTES) };

	return d == MEMORY_RXE ? rxe : other_queue(entries, RXE_RECEIVE_BYTES);
}

struct memory_use memory_of_connection(enum memory_driver d)
{
	(void)d;	/* the connection manager is the same for all */
	return (struct memory_use){ .kernel = MEMORY_CONNECTION_KERNEL_BYTES,
				    .process = MEMORY_CONNECTION_PROCESS_BYTES };
}

void memory_add(struct memory_use *sum, double n, struct memory_use one)
{
	sum->shared += n * one.shared;
	sum->kernel += n * one.kernel;
	sum->process += n * one.process;
}
