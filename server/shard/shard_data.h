/* What a shard has, and what the shards of a server share. The shard's thread owns its struct; others read only what
 * is atomic. The functions are in the headers of the modules, those of the whole shard in shard.h.
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
#include "server/shard/stats.h"

struct cm_channel;
struct ep;
struct psn_registry;
struct qp_pool;
struct region_pool;
struct registrar;
struct session_table;
struct ticket_seed;
struct tls_ctx;

/* What shards share. */
struct server {
	const struct server_config *cfg;
	struct psn_registry *psns;
	struct registrar *registrar;	/* NULL without regions */
	_Atomic uint32_t admitted[RAILS_MAX];	/* clients granted or connected, of all shards of a rail */
	struct dev devices[RAILS_MAX];	/* of the rails: what they are like; not open here */
	const struct ticket_seed *tickets;	/* while shards are made; NULL: no TLS session is resumed */
	struct shard **shards;
	uint32_t n_shards;
	uint64_t started_ns;
	uint16_t tls_port;		/* the one really used, on all rails */
	struct handover_queue handovers;
	_Atomic uint64_t publish_wanted;	/* grows by 1 whenever the main thread asks for gauges of now */
	struct stats control;		/* of control sessions, by the main thread; no stages, of the gauges `controls` only */
	/* Called on a shard's thread when there is something for the main thread: a control session, gauges that it
	 * asked for, or the shard's end. */
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
	_Atomic uint32_t *admitted;	/* the count of its rail in the server's admission */
	uint32_t index;			/* of all rails' shards */
	pthread_t thread;
	bool running;
	int exit_status;		/* of the thread: 0 or -errno */
	_Atomic bool ended;		/* the thread serves nobody any more; `exit_status` says why */

	struct ev_loop *loop;
	struct pump pump;
	ev_io listen_io;
	ev_async wake;			/* told to drain */
	ev_async publish_now;		/* told to publish its gauges */
	_Atomic uint64_t published;	/* the server's publish_wanted when it last did so */
	ev_timer housekeeping, probe, publish_timer;
	bool publish_due;
	uint64_t housekeeping_due_ns;
	ev_prepare turn_end;
	int listen_fd;
	bool accept_paused;		/* too many TLS connections, or the system refused one */
	uint64_t accept_not_before_ns;	/* after running out of descriptors or memory */
	uint64_t accept_log_ns;		/* the earliest time of the next line about clients that are not accepted */
	uint32_t tls_open;		/* TLS connections, lingering ones among them */
	uint64_t drain_deadline_ns;	/* 0: not draining */

	struct dev dev;
	struct ep *ep;
	struct qp_pool *qps;
	struct region_pool *regions;
	bool regions_to_clear;
	uint32_t regions_awaited;	/* HELLOs that wait for one to be registered */
	ev_async registered;		/* one was, or could not be */
	struct cm_channel *cm;
	struct rdma_cm_id *listener;
	struct addr rdma_addr;
	struct tls_ctx *tls_ctx;
	struct auth_mac *mac;

	struct conn *conns;
	struct conn_list lists[CONN_ST_N];	/* by state */
	uint32_t counts[CONN_ST_N];	/* how many are in each */
	struct session_table *sessions;
	struct psn_pair *resting;	/* by QP slot: PSNs that rest with it */
	uint64_t probe_slice;		/* slices of the probe interval that are over */
	uint32_t probe_next;		/* index of the connection the liveness probe looks at next */
	uint32_t credits_granted;
	uint32_t credit_holders;	/* connections that have some of them, closing ones among them */
	uint32_t recv_deficit;		/* receive buffers to put back when buffers come free */
	struct stats stats;
};

#endif
