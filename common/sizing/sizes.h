/* SPDX-License-Identifier: BSD-2-Clause */
/* The one model of capacity: what follows from a number of clients and the options, such as queues, queue pairs, buffers,
 * descriptors, and memory that peers can take. Both programs make what is computed here, `performance_test plan` says
 * beforehand what it will be, and the analysis of a run says how far it goes. docs/architecture.md, "Pools and sizes". Pure;
 * any thread.
 */
#ifndef RAMPART_COMMON_SIZES_H
#define RAMPART_COMMON_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct dev;

#define SIZES_SHARD_RESERVE 256u	/* free queue pairs that a shard keeps, or as many as it has clients */
#define SIZES_SPARES_MAX 4096u	/* where messages go inline: a buffer is kept only while the send queue is full */

/* Most control sessions of a server at a time, over all shards. */
#define SIZES_CONTROL_SESSIONS_MAX 80u
/* Seats beside these for newcomers, until the main thread has made room for them or refused them. */
#define SIZES_CONTROL_SESSIONS_SPARE 8u

/* Limits of a device; of several devices, the lowest of each. */
struct sizes_device {
	uint64_t max_qp, max_cqe, max_srq_wr;
};

/* Sizes of one endpoint (common/rdma/ep.h): a shard of the server, or a worker of the load generator on one device. */
struct sizes {
	uint32_t clients;	/* connections at a time */
	uint32_t recv_depth;	/* messages that they may have in flight together; the SRQ holds EP_BATCH more */
	uint32_t spare_bufs;	/* buffers beside those of the SRQ */
	uint32_t sq_depth;	/* entries of a queue pair's send queue */
	uint32_t qps;		/* queue pairs, at most */
	uint32_t qp_reserve;	/* free ones that are kept */
	uint64_t max_cqe;	/* entries of a completion queue, at most */
	uint64_t qps_per_cq;	/* queue pairs whose send queues one completion queue holds; 0: it does not hold one */
	uint64_t cqs;		/* one for receives, and as many for sends as the queue pairs need, or none if none holds one */
	uint64_t slab_bytes;	/* registered message buffers */
};

/* The options of a server that its sizes follow from. */
struct sizes_server {
	uint64_t rails, threads;	/* threads of a rail: each has a shard */
	uint64_t max_clients;		/* of a rail */
	uint64_t credits, message_bytes, region_bytes;
	uint64_t max_handshakes;	/* TLS connections of a shard before their clients are connected, at most */
	uint64_t srq_depth, cq_depth;	/* messages in flight of a shard, entries of a completion queue; 0: the device's */
	unsigned transport_mask;	/* a bit for each way that clients may come */
	bool windows;
	bool zerocopy;			/* buffers may wait for the kernel, too */
};

/* The options that the sizes of an endpoint of clients follow from. */
struct sizes_client {
	uint32_t max_conns;
	uint32_t depth, rma_depth;	/* SENDs, and requests on the region, in flight on a connection */
	uint64_t srq_depth, cq_depth;	/* as in struct sizes_server */
	uint64_t buffer_bytes;
	bool all_inline;		/* every message is copied into the send queue */
};

struct sizes_device sizes_of_device(const struct dev *dev);

/* Connections that one of `threads` threads may get when the kernel spreads `all` over them by hash: its share and six
 * standard deviations, never more than all. */
double sizes_share(double all, double threads);
/* The inverse: the most connections of which a thread gets `of_thread` at most. */
double sizes_share_of(double of_thread, double threads);

void sizes_of_shard(const struct sizes_server *s, const struct sizes_device *d, struct sizes *out);
/* `recv_depth` is what the connections need, whether or not sizes_client_depth_max allows it. */
void sizes_of_client(const struct sizes_client *c, const struct sizes_device *d, struct sizes *out);
/* Messages that all connections of an endpoint of clients may have in flight at most. */
uint64_t sizes_client_depth_max(const struct sizes_client *c, const struct sizes_device *d);

/* Descriptors that a server keeps room for when it starts, and does not start without. More are for sockets that wait for a
 * place. */
uint64_t sizes_server_fds(const struct sizes_server *s);
/* Descriptors that a load generator wants to have before it begins: of `clients`, `connecting` have a TLS connection open at
 * once, and over sockets each keeps one. */
uint64_t sizes_generator_fds(uint64_t clients, uint64_t connecting, bool sockets);

/* Most accepted sockets that may wait for a place in a shard for `clients` clients. All shards together have
 * `spare_fds` descriptors besides those of sizes_server_fds. */
uint32_t sizes_waiting(uint32_t clients, uint64_t spare_fds, uint64_t shards);

/* Memory that peers can make a server hold: its kind, for whom, and its maximum. docs/security.md ("Memory that peers
 * can take") explains each row. Socket memory of the kernel is not included: net.ipv4.tcp_mem limits it. */
enum {
	HELD_REGISTERED,	/* receive buffers for RDMA; resident from the start */
	HELD_REGIONS,
	HELD_SOCKET_BUFFERS,	/* resident only while they are used (ep_trim) */
	HELD_TLS,
	HELD_REPORTS,
	HELD_MARKS,
	HELD_N
};

struct held_row {
	const char *what, *per;
	uint64_t number, each_bytes;	/* number of `per`; bytes for each */
};

/* Memory of all control sessions' marks (server/report.h). */
#define HELD_MARKS_BYTES (16u << 20)

/* `shard` is what sizes_of_shard gave. */
void held_by_server(const struct sizes_server *s, const struct sizes *shard, struct held_row out[HELD_N]);
uint64_t held_bytes(const struct held_row *row);
uint64_t held_sum(const struct held_row rows[HELD_N]);

#endif
