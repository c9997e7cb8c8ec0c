/* The workers of a run as a group: orders are shared out to them, and what they publish is added up.
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_CREW_H
#define RAMPART_LOADGEN_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/addr.h"
#include "loadgen/config/config.h"
#include "loadgen/worker/worker.h"

struct hist;

struct crew {
	struct worker **workers;
	uint32_t n;
};

/* Makes and starts --threads workers. `server` and `verify_name` have an element for each rail: its address, and what
 * the certificate must name. `on_progress` is called on a worker's thread (worker.h). 0, or -errno with a line in
 * `err`; those made until then stay in the crew. */
int crew_start(struct crew *c, const struct loadgen_config *cfg, const struct addr *server,
	       const char *const *verify_name, void (*on_progress)(void *arg), void *arg, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Ends the threads and frees the workers. An empty crew is allowed. */
void crew_dismiss(struct crew *c);
/* Tells the threads to end, and does not wait. */
void crew_quit(struct crew *c);

/* The RDMA device of the first worker, a new reference. */
json_t *crew_device(const struct crew *c);

/* Gives every worker the order, with its share of the clients and of the active ones of `whole`. */
void crew_order(struct crew *c, enum worker_order order, const struct worker_task *whole);

/* The following four leave out workers whose device failed: these fulfil no order, and their clients are lost. */

/* True when every worker has fulfilled its last order. */
bool crew_is_done(const struct crew *c);
/* True when no worker records operations any more, after an ORDER_STOP. */
bool crew_has_measured(const struct crew *c);
/* Clients that are connected, and those that left on purpose and are not back yet. */
uint32_t crew_live(const struct crew *c);
uint32_t crew_away(const struct crew *c);

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
