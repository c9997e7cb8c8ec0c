/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers of a run as a group: gives orders to all of them, and adds up their counters. Each worker uses one
 * server: worker i uses server i % n_targets. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_CREW_H
#define RAMPART_LOADGEN_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>

#include <jansson.h>

#include "common/base/addr.h"
#include "common/base/rails.h"
#include "loadgen/config/config.h"
#include "loadgen/server_under_test/place.h"
#include "loadgen/worker/worker.h"

struct hist;

#define CREW_PORTS_MAX MAX(RAILS_MAX, TARGETS_MAX)

struct crew {
	struct worker **workers;
	uint32_t n, n_targets;
	uint32_t host, hosts;		/* this load host's rank; how many hosts share the clients */
	struct port *ports[CREW_PORTS_MAX];	/* ports of the rails' devices */
	uint32_t n_ports;
	/* PSNs of the live connections of each server and rail. A rail may lead to a server of its own, which draws
	 * PSNs by itself, so equal ones on different rails are no conflict. NULL: without RDMA. */
	struct psn_registry *psns[TARGETS_MAX][RAILS_MAX];
	bool loopback;			/* a server is on this machine, so RDMA traffic to it stays on the machine */
};

/* Settings of the connections of a worker on one rail; server and device are set per rail. */
void crew_client_config(const struct loadgen_config *c, struct client_config *out);

/* Makes and starts --threads workers for `n_targets` servers; there are at least as many threads as servers. The array
 * `targets` is read during the call only. `on_progress` is called on a worker's thread (worker.h). 0, or -errno with a
 * line in `err`; workers made before the failure stay in the crew. */
int crew_start(struct crew *c, const struct loadgen_config *cfg, const struct sut_place *targets, uint32_t n_targets,
	       void (*on_progress)(void *arg), void *arg, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Ends the threads and frees the workers. An empty crew is allowed. */
void crew_dismiss(struct crew *c);
/* Tells the threads to end, without waiting. */
void crew_quit(struct crew *c);

/* Describes the RDMA device of the first worker. A new reference. */
json_t *crew_device(const struct crew *c);

/* Counters of the ports of the rails' devices (port_read_all). A new reference. */
json_t *crew_network(const struct crew *c);

/* This host's share of the clients that each server gets from all hosts. */
void crew_share(const struct crew *c, const uint32_t *of_target, uint32_t *share);
/* False if a worker would get more clients than it has memory for. */
bool crew_has_room(const struct crew *c, const uint32_t *of_target);
/* Gives the order to every worker. `whole` has the clients and active clients of all hosts; each worker gets its share
 * of both. `of_target` is the number of clients that each server gets (deal.h); NULL: the first server gets all. */
void crew_order(struct crew *c, enum worker_order order, const struct worker_task *whole, const uint32_t *of_target);

/* The functions from here to crew_iterations, except crew_has_unproved, leave out workers whose device failed: such
 * workers fulfil no order, and their clients are lost. */

/* True when every worker has fulfilled its last order. */
bool crew_is_done(const struct crew *c);
/* True when no worker records operations any more, after an ORDER_STOP. */
bool crew_has_measured(const struct crew *c);
/* True if a server failed to prove its identity to a worker (connector_note_end); *target gets the server. */
bool crew_has_unproved(const struct crew *c, uint32_t *target);
/* Clients that are connected; clients that left or were lost, and have not returned yet. */
uint32_t crew_live(const struct crew *c);
uint32_t crew_away(const struct crew *c);
/* The same numbers for one server. */
uint32_t crew_live_of(const struct crew *c, uint32_t target);
uint32_t crew_away_of(const struct crew *c, uint32_t target);
/* With --iterations: number of operations that every client has ended by now, except clients that are gone. */
uint64_t crew_iterations(const struct crew *c);

/* -errno of the first worker whose devices failed, with their names in `devices` unless NULL; 0: no worker failed. */
int crew_failure(const struct crew *c, const char **devices);

/* The sum over the workers of the counter at `offset` in struct worker_stats. */
uint64_t crew_sum(const struct crew *c, size_t offset);
#define CREW_SUM(crew, field) crew_sum(crew, offsetof(struct worker_stats, field))
/* Connections made in this step, including those of clients that returned. */
uint64_t crew_connects(const struct crew *c);
/* Replaces the contents of `out` by the response times of all workers. */
void crew_response(const struct crew *c, struct hist *out);

#endif
