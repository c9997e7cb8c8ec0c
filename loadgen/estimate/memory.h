/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that queues of an RDMA driver take. Pure.
 *
 * rdma_rxe allocates its queues in the kernel and maps them into the process: the same bytes are resident in the process
 * and the kernel's. What other drivers take is not known here; figures for them are rough (memory_is_known).
 */
#ifndef RAMPART_LOADGEN_ESTIMATE_MEMORY_H
#define RAMPART_LOADGEN_ESTIMATE_MEMORY_H

#include <stdbool.h>

enum memory_driver { MEMORY_RXE, MEMORY_OTHER };

/* Bytes of one object, or of all. */
struct memory_use {
	double shared;		/* resident in the process and also the kernel's */
	double kernel;		/* the kernel's alone */
	double process;		/* the process's alone */
};

/* `name` is that of run.json (rdma_device.driver); NULL is allowed. */
enum memory_driver memory_driver_of(const char *name);

struct memory_use memory_of_qp(enum memory_driver d, double sq_depth, double inline_bytes);
struct memory_use memory_of_cq(enum memory_driver d, double entries);
struct memory_use memory_of_srq(enum memory_driver d, double entries);
/* One end of a connection: the connection manager's, and what the driver makes when the queue pair is connected. */
struct memory_use memory_of_connection(enum memory_driver d);

/* *sum += n * one */
void memory_add(struct memory_use *sum, double n, struct memory_use one);

#endif
