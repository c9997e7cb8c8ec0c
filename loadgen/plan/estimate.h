/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares what a number of clients needs on each host with what the host has, resource by resource. No I/O: the caller
 * examines hosts and settings (plan_hosts.h). estimate.c explains the numbers.
 *
 * Numbers are doubles: INFINITY means no limit, NAN unknown. They are bytes or counts. */
#ifndef RAMPART_LOADGEN_ESTIMATE_H
#define RAMPART_LOADGEN_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sizing/sizes.h"
#include "common/wire/transport.h"
#include "loadgen/plan/device_memory.h"

/* How long a queue pair rests after its client has left, in seconds. */
#define ESTIMATE_REST_S 6.0

/* Limits and free resources of a host before the run. */
struct estimate_host {
	enum memory_driver driver;
	double max_qp, max_qp_wr, max_cq, max_cqe, max_mr, max_mw, max_srq_wr;	/* of each device */
	double nofile, memlock;			/* limits of the process */
	double memory_bytes, available_bytes;	/* memory of the machine, or of the control group if that is less */
	double kernel_bytes;			/* already used by the kernel (res_machine_kernel_bytes) */
	double tasks;				/* processes and threads */
	double cpus;				/* that its process may use at once */
	double line_bits_per_s;			/* of the link; also NAN if both hosts are one machine */
	double ports, ports_resting;		/* local ports of one address; those that TCP sockets occupy already */
	/* Descriptors to watch a port of the device, and to sample the process and the machine, without those for its
	 * threads and the control session; 0: no sampling. */
	double port_fds, sampler_fds;
};

struct estimate_server {
	bool own;			/* performance_test starts it; otherwise it is running already */
	struct sizes_server size;	/* srq_depth of a running server: as its shards have it */
	uint64_t inline_bytes;
	uint64_t max_per_address;	/* 0: no limit */
	/* Current figures in the report of a running server; NAN otherwise. */
	double clients, fds, process_threads, rss_bytes, pinned_bytes, qps, cqs, mrs;
};

struct estimate_generator {
	uint64_t rails, workers;
	struct sizes_client client;	/* a worker on one rail */
	uint64_t inline_bytes;
	double region_bytes;		/* region that each client requests; 0: none */
	double landing_bytes;		/* registered memory of each client, or of a worker if shared; 0: none */
	bool landing_shared;
	double text_bytes;		/* a worker's registered source for writes; 0: none */
	uint64_t connecting;		/* most connections being made at once */
	bool phased;			/* all connections are made at once */
	uint64_t alone;			/* clients that connect one by one before the first step and after the last */
	double resting_per_s;		/* clients that leave and come back per second (--churn) */
	double left;			/* clients of earlier steps whose queue pairs still rest */
	double memory_floor_ratio;	/* share of the machine's memory to keep free; 0: none */
};

/* The planned load; NAN where the rate of operations, or their CPU time, is not known. */
struct estimate_load {
	double bytes_per_s;		/* payload in each direction */
	double server_cpus, generator_cpus;
};

struct estimate_in {
	uint64_t clients;
	enum transport transport;
	bool same_machine;		/* both hosts are one machine; only process limits differ */
	struct estimate_host server_host, generator_host;
	struct estimate_server server;
	struct estimate_generator generator;
	struct estimate_load load;
};

/* The resources, in the order of the table. */
#define ESTIMATE_RESOURCES(X) \
	X(max_clients, "clients (--max-clients)") \
	X(max_per_address, "clients of an address") \
	X(handshakes, "TLS connections of a shard") \
	X(qps, "queue pairs") \
	X(cqs, "completion queues") \
	X(mrs, "memory regions") \
	X(mws, "memory windows") \
	X(sq_entries, "entries of a send queue") \
	X(cq_entries, "entries of a completion queue") \
	X(receives, "entries of a receive queue") \
	X(fds, "descriptors, at the peak") \
	X(fds_at_start, "descriptors, checked at start") \
	X(ports, "local ports") \
	X(threads, "processes and threads") \
	X(cpus, "CPUs") \
	X(line_bytes_per_s, "payload on the link, a second") \
	X(pinned_bytes, "registered memory") \
	X(pinned_at_start_bytes, "registered memory, checked at start") \
	X(memory_at_start_bytes, "memory that peers can take") \
	X(rss_bytes, "resident memory") \
	X(kernel_bytes, "memory of the kernel, all") \
	X(memory_bytes, "memory of machine or control group")
enum estimate_resource {
#define X(name, title) ESTIMATE_##name,
	ESTIMATE_RESOURCES(X)
#undef X
	ESTIMATE_N
};
extern const char *const estimate_resource_names[], *const estimate_resource_titles[];

enum estimate_side { ESTIMATE_SERVER, ESTIMATE_GENERATOR, ESTIMATE_BOTH };
extern const char *const estimate_side_names[];

struct estimate_row {
	enum estimate_resource resource;
	enum estimate_side side;
	double needed;		/* the peak; _at_start: the amount that the programs check at start */
	double limit;		/* INFINITY: none; NAN: not known */
	/* Largest number of clients for which `needed` is within the limit; INFINITY: any. Set by estimate_reach. */
	double clients;
};

#define ESTIMATE_ROWS_MAX (2 * ESTIMATE_N + 8)
/* The largest --clients. */
#define ESTIMATE_CLIENTS_MAX 100000

/* Fills `rows` and returns their number, which does not depend on in->clients. */
size_t estimate_rows(const struct estimate_in *in, struct estimate_row rows[ESTIMATE_ROWS_MAX]);

/* Memory that peers can make the server hold. */
void estimate_held(const struct estimate_in *in, struct held_row rows[HELD_N]);

/* Resources that depend on the load, whose need is only known with a rate and the figures of a run. */
static inline bool estimate_is_of_load(enum estimate_resource r)
{
	return r == ESTIMATE_cpus || r == ESTIMATE_line_bytes_per_s;
}

/* True if the need is within the limit, or if there is no limit. */
bool estimate_fits(const struct estimate_row *r);

/* Fills in the settings of a run with `clients` clients. */
typedef void estimate_fill_fn(void *arg, uint64_t clients, struct estimate_in *out);
/* Sets `clients` of the rows that estimate_rows gave. */
void estimate_reach(estimate_fill_fn *fill, void *arg, struct estimate_row *rows, size_t n);

/* Index of the row that runs out first: the one with the fewest clients and, among equals, the largest share of its
 * limit. n: no row has a limit. */
size_t estimate_first(const struct estimate_row *rows, size_t n);

#endif
