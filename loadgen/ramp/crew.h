/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers of a run as a group: orders are shared out to them, and what they publish is added up. A worker serves one
 * server: of `n_targets`, the i-th worker that of number i % n_targets.
 * Owning thread: main.
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
#include "loadgen/sut/place.h"
#include "loadgen/worker/worker.h"

struct hist;

#define CREW_PORTS_MAX MAX(RAILS_MAX, TARGETS_MAX)

struct crew {
	struct worker **workers;
	uint32_t n, n_targets;
	uint32_t host, hosts;		/* which of the run's load hosts this is; the workers of all share out the clients */
	struct port *ports[CREW_PORTS_MAX];	/* of the rails' devices */
	uint32_t n_ports;
	bool loopback;			/* a server is on this machine, so RDMA to it does not leave it */
};

/* What the connections of a worker on one rail are made with; server and device are the rail's. */
void crew_client_config(const struct loadgen_config *c, struct client_config *out);

/* Makes and starts --threads workers for `n_targets` servers, which are read here only; there are no fewer threads than
 * servers. `on_progress` is called on a worker's thread (worker.h). 0, or -errno with a line in `err`; those made until
 * then stay in the crew. */
int crew_start(struct crew *c, const struct loadgen_config *cfg, const struct sut_place *targets, uint32_t n_targets,
	       void (*on_progress)(void *arg), void *arg, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Ends the threads and frees the workers. An empty crew is allowed. */
void crew_dismiss(struct crew *c);
/* Tells the threads to end, and does not wait. */
void crew_quit(struct crew *c);

/* The RDMA device of the first worker, a new reference. */
json_t *crew_device(const struct crew *c);

/* What the ports of the rails' devices have counted (port_read_all), a new reference. */
json_t *crew_network(const struct crew *c);

/* What this host's workers have of the clients that each server gets from all hosts. */
void crew_share(const struct crew *c, const uint32_t *of_target, uint32_t *share);
/* False if a worker would get more clients than it was made for: it has memory for those alone. */
bool crew_has_room(const struct crew *c, const uint32_t *of_target);
/* Gives every worker the order, with its share of the clients and of the active ones of `whole`, which is of all hosts.
 * `of_target` is how many of the clients each server gets (deal.h); NULL: the first server gets all. */
void crew_order(struct crew *c, enum worker_order order, const struct worker_task *whole, const uint32_t *of_target);

/* The following seven leave out workers whose device failed: these fulfil no order, and their clients are lost. */

/* True when every worker has fulfilled its last order. */
bool crew_is_done(const struct crew *c);
/* True when no worker records operations any more, after an ORDER_STOP. */
bool crew_has_measured(const struct crew *c);
/* True if a server failed to prove itself to a worker (connector_note_end): which one, in *target. */
bool crew_has_unproved(const struct crew *c, uint32_t *target);
/* Clients that are connected, and those that left on purpose and are not back yet. */
uint32_t crew_live(const struct crew *c);
uint32_t crew_away(const struct crew *c);
/* Both, of one server. */
uint32_t crew_live_of(const struct crew *c, uint32_t target);
uint32_t crew_away_of(const struct crew *c, uint32_t target);
/* With --iterations: operations that each client has ended, if it is not gone. */
uint64_t crew_iterations(const struct crew *c);

/* -errno of the first worker whose devices failed, and their names in `devices` unless NULL; 0: all workers work. */
int crew_failure(const struct crew *c, const char **devices);

/* A counter of struct worker_stats summed over the workers, by its offset. */
uint64_t crew_sum(const struct crew *c, size_t offset);
#define CREW_SUM(crew, field) crew_sum(crew, offsetof(struct worker_stats, field))
/* Connections made in this step, of clients that came back too. */
uint64_t crew_connects(const struct crew *c);
/* Puts the response times of all workers into `out`. */
void crew_response(const struct crew *c, struct hist *out);

#endif
