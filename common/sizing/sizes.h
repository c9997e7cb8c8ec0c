/* SPDX-License-Identifier: BSD-2-Clause */
/* The only model of capacity: computes, from a number of clients and the options, the sizes of queues, queue pairs and
 * buffers, the number of descriptors, and the memory that peers can take. Both programs create what is computed here,
 * `performance_test plan` predicts it, and the analysis of a run computes how many clients it allows.
 * docs/architecture.md, "Pools and sizes". Pure; any thread.
 */
#ifndef RAMPART_COMMON_SIZES_H
#define RAMPART_COMMON_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct dev;

#define SIZES_SHARD_RESERVE 256u	/* free queue pairs that a shard keeps ready, but not more than clients */
#define SIZES_SPARES_MAX 4096u	/* enough if messages go inline: a buffer is kept only while the send queue is full */

/* Maximum number of control sessions of a server at a time, over all shards. */
#define SIZES_CONTROL_SESSIONS_MAX 80u
/* Further places, for new sessions until the main thread has made room for them or refused them. */
#define SIZES_CONTROL_SESSIONS_SPARE 8u

/* Limits of a device; of several devices, the lowest of each. */
struct sizes_device {
	uint64_t max_qp, max_cqe, max_srq_wr;
};

/* Sizes of one endpoint (common/rdma/ep.h): a shard of the server, or a worker of the load generator on one device. */
struct sizes {
	uint32_t clients;	/* maximum number of connections at a time */
	uint32_t recv_depth;	/* messages that they may have in flight together; the SRQ holds EP_BATCH more */
	uint32_t spare_bufs;	/* buffers in addition to those of the SRQ */
	uint32_t sq_depth;	/* entries of a queue pair's send queue */
	uint32_t qps;		/* maximum number of queue pairs */
	uint32_t qp_reserve;	/* free queue pairs that are kept ready */
	uint64_t max_cqe;	/* maximum number of entries of a completion queue */
	uint64_t qps_per_cq;	/* queue pairs whose send queues fit in one completion queue; 0: not even one */
	uint64_t cqs;		/* maximum number of completion queues: one for receives, and as many for sends as `qps`
				 * queue pairs need, or none if qps_per_cq is 0 */
	uint64_t slab_bytes;	/* size of all registered message buffers */
};

/* The options of a server that decide its sizes. */
struct sizes_server {
	uint64_t rails, threads;	/* threads of a rail: each has a shard */
	uint64_t max_clients;		/* of a rail */
	uint64_t credits, message_bytes, region_bytes;
	uint64_t max_handshakes;	/* maximum number of TLS connections of a shard in the bootstrap */
	uint64_t srq_depth, cq_depth;	/* limits: messages in flight of a shard, entries of a completion queue; 0:
					 * the device's */
	unsigned transport_mask;	/* a bit for each transport that clients may use (1 << TRANSPORT_RDMA, ...) */
	bool windows;
	bool zerocopy;			/* the kernel may still send from buffers of earlier messages */
};

/* The options that decide the sizes of an endpoint on the client side. */
struct sizes_client {
	uint32_t max_conns;
	uint32_t depth, rma_depth;	/* SENDs, and requests on the region, in flight on a connection */
	uint64_t srq_depth, cq_depth;	/* as in struct sizes_server */
	uint64_t buffer_bytes;
	bool all_inline;		/* every message is copied into the send queue */
};

struct sizes_device sizes_of_device(const struct dev *dev);

/* Number of connections that one of `threads` threads may get when the kernel spreads `all` over them by hash: its
 * share plus six standard deviations, but never more than all. */
double sizes_share(double all, double threads);
/* The inverse: the largest number of connections of which one thread gets at most `of_thread`. */
double sizes_share_of(double of_thread, double threads);

void sizes_of_shard(const struct sizes_server *s, const struct sizes_device *d, struct sizes *out);
/* `recv_depth` is what the connections need, whether or not sizes_client_depth_max allows it. */
void sizes_of_client(const struct sizes_client *c, const struct sizes_device *d, struct sizes *out);
/* Maximum number of messages that all connections of a client-side endpoint together may have in flight. */
uint64_t sizes_client_depth_max(const struct sizes_client *c, const struct sizes_device *d);

/* Number of descriptors that a server needs, or it does not start. Further ones are for clients over sockets, and for
 * sockets that wait for a place. */
uint64_t sizes_server_fds(const struct sizes_server *s);
/* Number of descriptors that a load generator needs: `connecting` of its `clients` have a TLS connection open at once,
 * and over sockets each client keeps one. */
uint64_t sizes_generator_fds(uint64_t clients, uint64_t connecting, bool sockets);

/* Maximum number of accepted sockets that may wait in one shard that takes at most `clients` clients. All shards
 * together have `spare_fds` descriptors besides those of sizes_server_fds. */
uint32_t sizes_waiting(uint32_t clients, uint64_t spare_fds, uint64_t shards);

/* The kinds of memory that peers can make a server hold. docs/security.md ("Memory that peers
 * can take") explains each row. Socket memory of the kernel is not included: net.ipv4.tcp_mem limits it. */
enum {
	HELD_OBJECTS,		/* resident from their first use */
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
