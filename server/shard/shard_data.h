/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of a shard, and data that the shards of a server share. The shard's thread owns struct shard; other threads read
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
#include "server/tables/handover.h"
#include "server/shard/listen.h"
#include "server/shard/probe.h"
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
struct service;
struct ticket_seed;
struct sock_ctx;
struct tls_ctx;
struct tls_files;

/* Data that shards share. */
struct server {
	const struct server_config *cfg;
	struct psn_registry *psns;
	struct registrar *registrar;	/* NULL without regions */
	_Atomic uint32_t admitted[RAILS_MAX];	/* clients granted or connected, by rail */
	struct peers *peers;		/* peers of all shards, by address; NULL without --max-per-address */
	struct dev devices[RAILS_MAX];	/* by rail: name and attributes; not open here */
	struct port *ports[RAILS_MAX];	/* counters of the devices; the main thread reads them */
	uint32_t n_ports;
	/* Valid only while TLS contexts are made, on the main thread. */
	const struct ticket_seed *tickets;	/* NULL: TLS sessions are not resumed */
	const struct tls_files *tls_files;	/* NULL: read the files that the options name */
	struct service *service;	/* owned by the main thread */
	struct certificates *certificates;	/* owned by the main thread; NULL: none */
	struct shard **shards;
	uint32_t n_shards;
	uint64_t started_ns;
	uint16_t tls_port;		/* the port that was bound, the same on all rails */
	struct handover_queue handovers;
	_Atomic uint64_t publish_wanted;	/* number of times that the main thread asked for fresh gauges */
	size_t marks_bytes;		/* memory of all control sessions' marks; main thread only */
	struct stats control_stats;	/* of control sessions; main thread only; its only gauge is `controls` */
	/* Called by a shard, on its thread, after it handed a control session over, published the gauges that the main
	 * thread asked for, or ended. */
	void (*wake_main)(void *arg);
	void *arg;
};

struct psn_pair {
	uint32_t client, server;
	bool used;
};

struct shard {
	struct server *server;
	const struct server_config *cfg;
	const struct server_rail *rail;
	_Atomic uint32_t *admitted;	/* the count of its rail, in `server` */
	uint32_t index;			/* among the shards of all rails */
	pthread_t thread;
	bool running;
	int exit_status;		/* of the thread: 0 or -errno */
	_Atomic bool ended;		/* the thread has released everything; `exit_status` is valid */

	struct ev_loop *loop;
	struct pump pump;
	ev_async drain;			/* shard_drain was called */
	ev_async publish_now;		/* shard_ask_publish was called */
	ev_async relieve;		/* another shard has set relieve_for */
	_Atomic uint64_t relieve_for;	/* network (addr_network) of a client that needs a place; 0: none */
	_Atomic uint64_t published;	/* value of the server's publish_wanted at the last publish_now */
	ev_timer housekeeping, probe, publish_timer;
	bool publish_due;
	uint64_t publish_at_ns;		/* when publish_timer should run */
	uint64_t housekeeping_due_ns;
	uint64_t trim_due_ns;	/* earliest time at which unused buffers are given back */
	ev_prepare turn_end;
	struct listen_state listen;	/* of listen.c */
	uint64_t accept_log_ns;		/* earliest time of the next log line about clients that were not accepted */
	uint64_t failed_log_ns;		/* the same for clients that the server failed to serve */
	char refusal[FRAME_REFUSE_TEXT_MAX + 1];	/* text of the last refusal that names numbers */
	struct peers *peers;		/* by address: TLS connections, unused grants, waiting and arriving sockets */
	uint32_t tls_open;		/* TLS connections, including those open after GRANT or REFUSE */
	uint64_t drain_deadline_ns;	/* 0: not draining */

	struct dev dev;
	struct ep *ep;
	struct ep *sock_ep;		/* endpoint of clients over sockets: no device */
	struct sock_ctx *socks;
	uint8_t *pushed;		/* data that follow a PUSHED over a socket, for any sequence */
	struct arrivals *arrivals;	/* NULL: the server does not serve TCP */
	uint16_t tcp_port;
	struct qp_pool *qps;
	struct region_pool *regions;
	bool regions_to_clear;
	uint32_t regions_awaited;	/* HELLOs that wait for a region */
	ev_async registered;		/* a region was registered, or a registration failed */
	struct cm_channel *cm;
	struct rdma_cm_id *listener;
	struct addr rdma_addr;
	struct tls_ctx *tls_ctx;
	_Atomic(struct tls_ctx *) tls_offered;	/* replaces tls_ctx; NULL: none offered */
	ev_async tls_offer;		/* shard_offer_tls was called */
	ev_timer ticket_step;		/* time of the next step of the ticket keys */
	struct auth_mac *mac;

	struct conn *conns;
	uint32_t conns_used;		/* the first ones, used at least once; the others are zero, in no list */
	struct conn_list lists[CONN_ST_N];	/* by state */
	uint32_t counts[CONN_ST_N];	/* connections in each state */
	/* Connections waiting for boot_serve_next, which takes one of each list in turn, first come first served: [1]
	 * those of the addresses that have the most TLS connections, [0] others. */
	struct conn_list ready[2];
	bool crowd_is_next;
	struct session_table *sessions;
	struct psn_pair *resting;	/* by QP slot: PSNs in quarantine together with the QP */
	struct probe_state probing;	/* of probe.c */
	uint32_t credits_granted;
	uint32_t credit_holders;	/* connections with credits, including closing ones */
	struct stats stats;
};

#endif
