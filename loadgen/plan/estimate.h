/* SPDX-License-Identifier: BSD-2-Clause */
/* What a number of clients needs on each host, resource by resource, against what the host has. Pure: what is known of
 * hosts and settings is the caller's to find out (hosts.h), what the numbers rest on is in estimate.c.
 *
 * Numbers are doubles: INFINITY is no limit, NAN is not known. Bytes and counts.
 */
#ifndef RAMPART_LOADGEN_ESTIMATE_H
#define RAMPART_LOADGEN_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sizing/sizes.h"
#include "loadgen/plan/device_memory.h"

/* A host before the run. */
struct estimate_host {
	enum memory_driver driver;
	double max_qp, max_qp_wr, max_cq, max_cqe, max_mr, max_mw, max_srq_wr;	/* of each of its devices */
	double nofile, memlock;			/* of the process */
	double memory_bytes, available_bytes;	/* of the machine */
	double kernel_bytes;			/* that the kernel uses already (res_machine_kernel_bytes) */
	double ports, ports_resting;		/* of one address; those of TCP connections that are or were */
	/* Descriptors of a process that watches a port of its device, and that samples itself and the machine, beside one for
	 * each of its threads and a control session; 0: it does not. */
	double port_fds, sampler_fds;
};

struct estimate_server {
	bool own;			/* performance_test starts it; else it runs, and has what it was sized for */
	struct sizes_server size;	/* srq_depth of one that runs: what its shards have */
	uint64_t inline_bytes;
	uint64_t max_per_address;	/* 0: no limit */
	/* Of one that runs, in its report now; NAN otherwise. */
	double clients, fds, process_threads, rss_bytes, pinned_bytes, qps, cqs, mrs;
};

struct estimate_generator {
	uint64_t rails, workers;
	struct sizes_client client;	/* of a worker on one rail */
	uint64_t inline_bytes;
	double region_bytes;		/* that each client asks for; 0: none */
	double landing_bytes;		/* registered, of each client, or of a worker if shared; 0: none */
	bool landing_shared;
	double text_bytes;		/* registered source of what is written, of a worker; 0: none */
	uint64_t connecting;		/* connections that are made at once, at most */
	bool phased;			/* all of them are */
	uint64_t alone;			/* clients that connect alone before the first step, and again after the last */
	double resting_per_s;		/* clients that leave and come back per second (--churn) */
	double memory_floor_ratio;	/* of the machine's memory, that is to stay free; 0: none */
};

struct estimate_in {
	uint64_t clients;
	bool over_sockets;		/* of the run: then the rows are few */
	bool same_machine;		/* then `hosts` are the same but for limits of processes */
	struct estimate_host server_host, generator_host;
	struct estimate_server server;
	struct estimate_generator generator;
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
	X(threads, "threads") \
	X(pinned_bytes, "registered memory") \
	X(pinned_at_start_bytes, "registered memory, checked at start") \
	X(memory_at_start_bytes, "memory that peers can take") \
	X(rss_bytes, "resident memory") \
	X(kernel_bytes, "memory of the kernel, all") \
	X(memory_bytes, "memory of the machine")
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
	double needed;		/* the peak; _at_start: what the programs check before they begin */
	double limit;		/* INFINITY: none; NAN: not known */
	/* The most clients for which `needed` is within the limit; INFINITY: any number that a run may have. By
	 * estimate_reach. */
	double clients;
};

#define ESTIMATE_ROWS_MAX (2 * ESTIMATE_N + 8)
/* The largest --clients. */
#define ESTIMATE_CLIENTS_MAX 100000

/* Fills `rows`; returns how many, which does not depend on in->clients. */
size_t estimate_rows(const struct estimate_in *in, struct estimate_row rows[ESTIMATE_ROWS_MAX]);

/* Memory that peers can make the server hold. */
void estimate_held(const struct estimate_in *in, struct held_row rows[HELD_N]);

/* Within the limit, or there is none. */
bool estimate_fits(const struct estimate_row *r);

/* Fills in what the settings of a run with `clients` are. */
typedef void estimate_fill_fn(void *arg, uint64_t clients, struct estimate_in *out);
/* Sets `clients` of the rows that estimate_rows gave. */
void estimate_reach(estimate_fill_fn *fill, void *arg, struct estimate_row *rows, size_t n);

/* Index of the row that gives out first: of those that do not fit, or of all, the one with the fewest clients, or if
 * none has a number of clients, with the largest share of its limit; n: there is no limit. */
size_t estimate_first(const struct estimate_row *rows, size_t n);

#endif
