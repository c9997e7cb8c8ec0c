/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a run takes: of queues as an RDMA driver makes them, and of processes as it was measured. Pure.
 *
 * rdma_rxe allocates its queues in the kernel and maps them into the process: the same bytes are resident in the process
 * and the kernel's. What other drivers take is not known here; figures for them are rough.
 */
#ifndef RAMPART_LOADGEN_PLAN_DEVICE_MEMORY_H
#define RAMPART_LOADGEN_PLAN_DEVICE_MEMORY_H

#include <stdbool.h>

#define MEMORY_PAGE_BYTES 4096.0

/* Measured in runs of --workload echo with 100 to 1,000 clients and 1 or 2 threads on each side, on Soft-RoCE with kernel 6.1,
 * OpenSSL 3.0 and glibc 2.36, in a micro-VM with 2 CPUs. docs/capacity.md ("Before the run") compares the sums with other
 * runs; tests/soft_roce/test_capacity.sh does so again. */
/* A process without threads that work and without clients: pages of the program and libraries, OpenSSL's tables, the log; of
 * the generator also a step's histograms. */
#define MEMORY_SERVER_BYTES (12 * 1048576.0)
#define MEMORY_GENERATOR_BYTES 24217248.0
/* A shard with its histograms, and a worker on a rail without them: loop, TLS context, stack. Tables come on top. */
#define MEMORY_SHARD_BYTES 1481305.6
#define MEMORY_WORKER_BYTES 104857.6
/* The kernel's, of a process: lists of free pages, stacks, page tables. */
#define MEMORY_PROCESS_KERNEL_BYTES (3 * 1048576.0)
/* A shard's slots for a connection with its session and address, whether or not it is used, and for a socket that waits. */
#define MEMORY_SERVER_CONN_BYTES 1326.0
#define MEMORY_SERVER_WAITING_BYTES 464.0
#define MEMORY_POOL_SLOT_BYTES 60.0	/* of a queue pair */
/* A client: at the server what connecting leaves in the libraries; at the generator that, its objects, and its operations' times. */
#define MEMORY_SERVER_CLIENT_BYTES 500.0
#define MEMORY_CLIENT_BYTES 3520.0
#define MEMORY_TLS_BYTES (20 * 1024.0)	/* a TLS connection, at either end */
#define MEMORY_TIME_WAIT_BYTES 300.0	/* the kernel's, of a TCP connection that rests */
/* The kernel's and the process's, of a connected queue pair: the CM's ids and timewait, resources of READs and atomics. */
#define MEMORY_CONNECTION_KERNEL_BYTES 1900.0
#define MEMORY_CONNECTION_PROCESS_BYTES 1100.0	/* librdmacm's id */
/* A queue pair beside its queue: struct rxe_qp, its UDP socket and inode, timers; the library's object, and the program's slot. */
#define MEMORY_QP_KERNEL_BYTES 5000.0
#define MEMORY_QP_PROCESS_BYTES 600.0
#define MEMORY_PSN_PAGES 512.0		/* the server's registry of PSNs: those that were written are resident */

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
