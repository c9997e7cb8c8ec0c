/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of a shard, and what the shards of a server share. The shard's thread owns struct shard; other threads read
 * only its atomic fields and its statistics. Functions that work on a whole shard are in shard.h.
 */
#ifndef RAMPART_SERVER_SHARD_DATA_H
#define RAMPART_SERVER_SHARD_DATA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "common/rdma/dev.h"
#include "common/rdma/pump.h"
#include "server/config/config.h"
#include "server/shard/conn.h"
#include "server/shard/handover.h"
#include "server/tables/stats.h"

struct cm_channel;
struct ep;
struct peers;
struct psn_registry;
struct qp_pool;
struct region_pool;
struct registrar;
struct session_table;
struct arrivals;
struct certificates;
struct ticket_seed;
struct sock_ctx;
struct tls_ctx;
struct tls_files;

/* What shards share. */
struct server {
	const struct server_config *cfg;
	struct psn_registry *psns;
	struct registrar *registrar;	/* NULL without regions */
	_Atomic uint32_t admitted[RAILS_MAX];	/* by rail: clients granted or connected, of all its shards */
	struct peers *peers;		/* TLS connections and clients of all shards by address; NULL without --max-per-address */
	struct dev devices[RAILS_MAX];	/* of the rails: names and attributes; not open here */
	struct port *ports[RAILS_MAX];	/* their counters; the main thread reads them */
	uint32_t n_ports;
	/* Set while TLS contexts are made, which happens on the main thread. */
	const struct ticket_seed *tickets;	/* NULL: TLS sessions are not resumed */
	const struct tls_files *tls_files;	/* NULL: the files that the options name are read */
	struct certificates *certificates;	/* the main thread's; NULL: there is none */
	struct shard **shards;
	uint32_t n_shards;
	uint64_t started_ns;
	uint16_t tls_port;		/* the bound one, the same on all rails */
	struct handover_queue handovers;
	_Atomic uint64_t publish_wanted;	/* number of times that the main thread asked for fresh gauges */
	size_t marks_bytes;		/* that all marks of control sessions take; the main thread's */
	struct stats control_stats;	/* of control sessions; the main thread's; the only gauge is `controls` */
	/* Shards call it, on their threads, after they handed a control session over, published the gauges that the
	 * main thread asked for, or ended. */
	void (*wake_main)(void *arg);
	void *arg;
};

TAILQ_HEAD(waiting_list, waiting);

struct psn_pair {
	uint32_t client, server;
	bool used;
};

struct shard {
	struct server *server;
	const struct server_config *cfg;
	const struct server_rail *rail;
	_Atomic uint32_t *admitted;	/* its rail's count, in `server` */
	uint32_t index;			/* among the shards of all rails */
	pthread_t thread;
	bool running;
	int exit_status;		/* of the thread: 0 or -errno */
	_Atomic bool ended;		/* the thread has released everything; `exit_status` is valid */

	struct ev_loop *loop;
	struct pump pump;
	ev_io listen_io;
	ev_async drain;			/* shard_drain was called */
	ev_async publish_now;		/* shard_ask_publish was called */
	ev_async relieve;		/* relieve_for was set, by another shard */
	_Atomic uint64_t relieve_for;	/* a client of that network (addr_network) wants one of the places; 0: nobody */
	_Atomic uint64_t published;	/* the server's publish_wanted of the last publish_now */
	ev_timer housekeeping, probe, publish_timer;
	bool publish_due;
	uint64_t housekeeping_due_ns;
	uint64_t trim_due_ns;	/* earliest time at which unused buffers are given back */
	ev_prepare turn_end;
	int listen_fd;
	bool accept_paused;		/* for want of descriptors or memory, until accept_not_before_ns */
	uint64_t accept_not_before_ns;
	uint64_t accept_log_ns;		/* earliest time of the next log line about clients that were not accepted */
	uint64_t failed_log_ns;		/* and about clients that the server failed to serve */
	char refusal[FRAME_REFUSE_TEXT_MAX + 1];	/* words of the last one that names numbers */
	uint64_t crowd_log_ns;		/* and about an address that has too many connections */
	uint64_t reader_log_ns;		/* and about clients that read too slowly */
	struct waiting *waiting;	/* listen.c: room for the sockets that were accepted and wait */
	struct waiting_list waiting_free;
	uint32_t n_waiting;
	uint64_t cut_from_ns;		/* listen.c: what is left of the budget of busy connections closed for others */
	uint64_t look_not_before_ns;	/* earliest time to look again which connections could make room for them */
	struct peers *peers;		/* by address: its TLS connections, grants without an RDMA connection, waiting sockets */
	uint32_t tls_open;		/* TLS connections, also those that clients have not closed after GRANT or REFUSE */
	uint64_t drain_deadline_ns;	/* 0: not draining */

	struct dev dev;
	struct ep *ep;
	struct ep *sock_ep;		/* of clients over sockets: no device */
	struct sock_ctx *socks;
	uint8_t *pushed;		/* what follows a PUSHED over a socket, from any sequence on */
	struct arrivals *arrivals;	/* NULL: none come over TCP */
	uint16_t tcp_port;
	struct qp_pool *qps;
	struct region_pool *regions;
	bool regions_to_clear;
	uint32_t regions_awaited;	/* HELLOs that wait for a region to be registered */
	ev_async registered;		/* a region was registered, or could not be */
	struct cm_channel *cm;
	struct rdma_cm_id *listener;
	struct addr rdma_addr;
	struct tls_ctx *tls_ctx;
	_Atomic(struct tls_ctx *) tls_offered;	/* takes its place; NULL: none */
	ev_async tls_offer;		/* shard_offer_tls was called */
	ev_timer ticket_step;		/* the next step of the ticket keys */
	struct auth_mac *mac;

	struct conn *conns;
	struct conn_list lists[CONN_ST_N];	/* by state */
	uint32_t counts[CONN_ST_N];	/* how many are in each */
	/* Those that boot_serve_next serves, one of each in turn, the first come first: [1] of the address that has most TLS
	 * connections, [0] of others. */
	struct conn_list ready[2];
	bool crowd_is_next;
	struct session_table *sessions;
	struct psn_pair *resting;	/* by QP slot: PSNs in quarantine with its QP */
	uint64_t probe_slice;		/* slices of the probe interval that have passed */
	uint32_t probe_next;		/* index of the connection that the liveness probe checks next */
	uint32_t credits_granted;
	uint32_t credit_holders;	/* connections with credits, closing ones included */
	struct stats stats;
};

#endif
