/* SPDX-License-Identifier: BSD-2-Clause */
/* The sizes of endpoints (common/rdma/ep.h) and of their pools of queue pairs that follow from the connections they are
 * for. docs/architecture.md, "Pools and sizes". Both programs make what is computed here, and `performance_test plan`
 * says beforehand what it will be. Pure; any thread.
 */
#ifndef RAMPART_COMMON_SIZES_H
#define RAMPART_COMMON_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#define SIZES_SHARD_RESERVE 256u	/* free queue pairs that a shard keeps, or as many as it has clients */

#define SIZES_WAITING_LEAST 64u		/* sockets of a shard that wait for a place, at least */
/* Most control sessions of a server at a time, over all shards. */
#define SIZES_CONTROL_SESSIONS_MAX 80u
/* Seats beside these for newcomers, until the main thread has made room for them or refused them. */
#define SIZES_CONTROL_SESSIONS_SPARE 8u

/* What devices allow; of several the lowest. */
struct sizes_device {
	uint64_t max_qp;
	uint64_t max_cqe;	/* of a completion queue: the device's, or fewer with --cq-depth */
	uint64_t max_srq_wr;
};

/* Of one endpoint: of a shard of the server, or of a worker of the load generator for one device. */
struct sizes {
	uint32_t clients;	/* connections at a time */
	uint32_t recv_depth;	/* messages that they may have in flight together; the SRQ holds EP_BATCH more */
	uint32_t spare_bufs;	/* buffers beside those of the SRQ */
	uint32_t sq_depth;	/* entries of a queue pair's send queue */
	uint32_t qps;		/* queue pairs, at most */
	uint32_t qp_reserve;	/* free ones that are kept */
};

/* What a shard is sized for. */
struct sizes_server {
	uint64_t max_clients, threads, credits;	/* of a rail */
	uint64_t srq_depth;	/* messages in flight of a shard, at most; 0: no limit but the device's */
	bool windows;
};

/* What an endpoint of clients is sized for. */
struct sizes_client {
	uint32_t max_conns;
	uint32_t depth, rma_depth;	/* SENDs, and requests on the region, in flight on a connection */
	uint32_t srq_depth;		/* as in struct sizes_server */
	bool all_inline;		/* every message is copied into the send queue */
};

/* Connections that one of `threads` threads may get when the kernel spreads `all` over them by hash: its share and six
 * standard deviations, never more than all. */
uint32_t sizes_share(uint64_t all, uint64_t threads);

void sizes_of_shard(const struct sizes_server *s, const struct sizes_device *d, struct sizes *out);

/* Messages that all connections of an endpoint of clients may have in flight at most. */
uint64_t sizes_client_depth_max(const struct sizes_client *c, const struct sizes_device *d);
/* `recv_depth` is what the connections need, whether or not sizes_client_depth_max allows it. */
void sizes_of_client(const struct sizes_client *c, struct sizes *out);

/* Queue pairs whose send queues one completion queue holds; 0: it does not hold one. */
uint64_t sizes_qps_per_cq(const struct sizes *s, const struct sizes_device *d);
/* Completion queues: one for receives, and as many for sends as the queue pairs need; 0 for sends if none holds one. */
uint64_t sizes_cqs(const struct sizes *s, const struct sizes_device *d);
/* Descriptors that a server keeps room for when it starts, and does not start without: of `shards` shards on all rails, each
 * with up to `handshakes` TLS connections. More are for sockets that wait for a place. */
uint64_t sizes_server_fds(uint64_t rails, uint64_t shards, uint64_t handshakes);

/* Accepted sockets of a shard of so many clients that may wait for a place, at most, with `spare_fds` descriptors beside
 * those of sizes_server_fds for all shards. */
uint32_t sizes_waiting(uint32_t clients, uint64_t spare_fds, uint64_t shards);

/* Bytes of the slab of message buffers of `buf_bytes` each. */
uint64_t sizes_slab_bytes(const struct sizes *s, uint64_t buf_bytes);

#endif
