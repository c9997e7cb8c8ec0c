/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a run takes: queues by the code of the RDMA driver, processes by measurement. No I/O.
 *
 * rdma_rxe allocates its queues in the kernel and maps them into the process, so the same bytes count for both. Figures
 * for other drivers are rough, because their queue layouts are not known here. */
#ifndef RAMPART_LOADGEN_PLAN_DEVICE_MEMORY_H
#define RAMPART_LOADGEN_PLAN_DEVICE_MEMORY_H

#include <stdbool.h>

#define MEMORY_PAGE_BYTES 4096.0

/* Measured in runs of --workload echo with 100 to 1,000 clients and 1 or 2 threads on each side, on Soft-RoCE with
 * kernel 6.1, OpenSSL 3.0 and glibc 2.36, in a micro-VM with 2 CPUs. docs/capacity.md ("Before the run") compares the
 * sums with other runs; tests/soft_roce/test_capacity.sh repeats the comparison. */
/* A process without workers and clients: pages of the program and libraries, OpenSSL's tables, the log; in the
 * generator also the histograms of a step. */
#define MEMORY_SERVER_BYTES (13.5 * 1048576)
#define MEMORY_GENERATOR_BYTES 24217248.0
/* Loop, TLS context and stack: of a shard, with its histograms, and of a worker on one rail. The pool of queue pairs is
 * extra. */
#define MEMORY_SHARD_BYTES 1481305.6
#define MEMORY_WORKER_BYTES 104857.6
/* Kernel memory of a process: lists of free pages, stacks, page tables. */
#define MEMORY_PROCESS_KERNEL_BYTES (3 * 1048576.0)
#define MEMORY_POOL_SLOT_BYTES 60.0	/* slot of a queue pair in a shard or worker, used or not */
/* A client: its objects, and memory that connecting leaves in the libraries. Generator: also operation times. */
#define MEMORY_SERVER_CLIENT_BYTES 1000.0
#define MEMORY_CLIENT_BYTES 3520.0
#define MEMORY_TLS_BYTES (20 * 1024.0)	/* a TLS connection, at either end */
#define MEMORY_TIME_WAIT_BYTES 300.0	/* kernel memory of a TCP connection in TIME_WAIT */
/* Clients over sockets, measured in runs of --workload echo --transport tcp and tls with 10 to 10,000 clients and 2
 * threads on each side over loopback, with kernel 6.18, OpenSSL 3.0 and glibc 2.36. */
#define MEMORY_TLS_HELD_BYTES (17.5 * 1024)		/* server's end of a TLS connection in use */
#define MEMORY_TLS_CLIENT_HELD_BYTES (25.5 * 1024)	/* generator's end */
#define MEMORY_TLS_RECORD_BYTES 16384.0			/* RFC 8446, 5.1 */
#define MEMORY_SOCKET_GENERATOR_BYTES 29.7e6		/* as MEMORY_GENERATOR_BYTES */
#define MEMORY_SOCKET_CLIENT_BYTES 2070.0		/* a client of the generator: objects and buffers */
/* One end of a connection in the kernel: socket, file, place in epoll, small messages in flight. */
#define MEMORY_SOCKET_KERNEL_BYTES 5300.0
/* A connected queue pair in the kernel (CM ids and timewait, resources of READs and atomics) and in the process. */
#define MEMORY_CONNECTION_KERNEL_BYTES 1900.0
#define MEMORY_CONNECTION_PROCESS_BYTES 1100.0	/* librdmacm's id */
/* A queue pair without its queue: struct rxe_qp, UDP socket and inode, timers; objects of library and program. */
#define MEMORY_QP_KERNEL_BYTES 5000.0
#define MEMORY_QP_PROCESS_BYTES 600.0
#define MEMORY_PSN_PAGES 512.0		/* pages of a PSN registry; only written ones are resident */

enum memory_driver { MEMORY_RXE, MEMORY_OTHER };

/* Bytes of one object, or a sum. */
struct memory_use {
	double shared;		/* in the process and in the kernel */
	double kernel;		/* in the kernel only */
	double process;		/* in the process only */
};

/* `name` is rdma_device.driver of run.json; NULL is allowed. */
enum memory_driver memory_driver_of(const char *name);

struct memory_use memory_of_qp(enum memory_driver d, double sq_depth, double inline_bytes);
struct memory_use memory_of_cq(enum memory_driver d, double entries);
struct memory_use memory_of_srq(enum memory_driver d, double entries);
/* One end of a connection: objects of the connection manager, and of the driver for a connected queue pair. */
struct memory_use memory_of_connection(enum memory_driver d);

/* *sum += n * one */
void memory_add(struct memory_use *sum, double n, struct memory_use one);

#endif
