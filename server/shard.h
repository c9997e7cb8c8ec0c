/* A shard: one thread, one loop, and everything it needs to serve clients of its rail alone.
 *
 * Shared between shards are only the PSN registry, the admission count and the statistics (which
 * have one writer each).
 */
#ifndef RAMPART_SERVER_SHARD_H
#define RAMPART_SERVER_SHARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "common/rdma/dev.h"
#include "common/rdma/pump.h"
#include "server/config.h"
#include "server/conn.h"
#include "server/stats.h"

struct cm_channel;
struct ep;
struct psn_registry;
struct qp_pool;
struct region_pool;
struct session_table;
struct ticket_seed;
struct tls_ctx;

/* What shards share. */
struct server {
	const struct server_config *cfg;
	struct psn_registry *psns;
	_Atomic uint32_t admitted[RAILS_MAX];	/* clients granted or connected, of all shards of a rail */
	_Atomic bool draining;
	struct dev devices[RAILS_MAX];	/* of the rails: what they are like; not open here */
	const struct ticket_seed *tickets;	/* while shards are made; NULL: no TLS session is resumed */
	struct shard **shards;
	uint32_t n_shards;
	uint64_t started_ns;
	uint16_t tls_port;		/* the one really used, on all rails */
	/* Called on a shard's thread when the shard has failed; may be NULL. */
	void (*on_broken)(void *arg);
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
	uint32_t index;			/* of all rails' shards */
	pthread_t thread;
	bool running;
	int exit_status;		/* of the thread: 0 or -errno */
	_Atomic bool failed;		/* it has ended with an error */

	struct ev_loop *loop;
	struct pump pump;
	ev_io listen_io;
	ev_async wake;			/* told to drain */
	ev_timer housekeeping, probe, publish_timer;
	bool publish_due;
	uint64_t housekeeping_due_ns;
	ev_prepare turn_end;
	int listen_fd;
	bool accept_paused;		/* too many TLS connections, or no descriptors */
	uint64_t accept_not_before_ns;	/* after running out of descriptors */
	uint32_t tls_open;		/* TLS connections, control sessions and lingering ones among them */
	uint64_t drain_deadline_ns;	/* 0: not draining */

	struct dev dev;
	struct ep *ep;
	struct qp_pool *qps;
	struct region_pool *regions;
	bool regions_to_clear;
	struct cm_channel *cm;
	struct rdma_cm_id *listener;
	struct addr rdma_addr;
	struct tls_ctx *tls_ctx;
	struct auth_mac *mac;

	struct conn *conns;
	struct conn_list lists[CONN_ST_N];
	struct session_table *sessions;
	struct psn_pair *resting;	/* by QP slot: PSNs that rest with it */
	uint64_t probe_slice;		/* slices of the probe interval that are over */
	uint32_t probe_next;		/* index of the connection the liveness probe looks at next */
	uint32_t credits_granted;
	uint32_t credit_holders;	/* connections that have some of them, closing ones among them */
	uint32_t recv_deficit;		/* receive buffers to put back when buffers come free */
	struct stats stats;
};

/* Creates a shard's resources in the calling thread and binds its sockets; the first shard of all decides
 * the TLS port if the system chooses. 0 or -errno, with a line in `err`. */
int shard_new(struct server *server, uint32_t index, struct shard **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Starts the thread. 0 or -errno, with a line in `err`. */
int shard_start(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Any thread: tells the shard to drain and stop. */
void shard_wake(struct shard *s);
/* Waits for the thread's end and returns its status. */
int shard_join(struct shard *s);
/* Tears down what is connected and gives back what clients hold, the device, and the sockets; statistics stay,
 * with gauges of nothing. The thread does so at its end, or else whoever owns a shard that does not run. May be
 * called twice. */
void shard_release(struct shard *s);
/* Frees everything of a shard that does not run. NULL-safe. */
void shard_free(struct shard *s);

/* The count of the shard's rail in the server's admission. */
_Atomic uint32_t *shard_admitted(const struct shard *s);
/* Clients in handshake, from accept to GRANT. */
uint32_t shard_handshakes(const struct shard *s);
/* Makes the gauges of the statistics those of now; happens at the end of every turn by itself. */
void shard_publish(struct shard *s);

/* listen.c: binds the shard's RDMA port and TLS socket; the first shard of all decides the TLS port if the
 * system chooses. 0 or -errno, with a line in `err`. */
int listen_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* listen.c: starts accepting. */
void listen_start(struct shard *s);
/* listen.c: true if one more TLS connection may be open. */
bool listen_has_room(const struct shard *s);
/* listen.c: resumes accepting if it was paused and there is room again. */
void listen_resume(struct shard *s);
/* listen.c: no TLS connection is accepted any more. May be called twice. */
void listen_close(struct shard *s);
/* probe.c: starts the timer, if there is to be a probe. */
void probe_start(struct shard *s);
/* rdma.c */
void rdma_on_cm_event(void *shard, const struct cm_event *e);
/* echo.c */
void echo_on_wc(void *shard, const struct ibv_wc *wc);
/* echo.c: the connection counts as connected from now on. */
void echo_set_live(struct conn *c);

#endif
