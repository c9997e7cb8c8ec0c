/* What the run's state machine does to its workers and asks of its server; no phase is decided here.
 * For ramp.c and progress.c. Owning thread: main. */
#ifndef RAMPART_LOADGEN_RAMP_UTIL_H
#define RAMPART_LOADGEN_RAMP_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/ramp/ramp.h"
#include "loadgen/traffic/worker.h"

/* Gives every worker the order, with its share of the step's clients. */
void ramp_order_all(struct ramp *r, enum worker_order order);
/* True when every worker has fulfilled its last order. */
bool ramp_all_done(const struct ramp *r);

/* A counter of struct worker_stats summed over the workers, by its offset. */
uint64_t ramp_sum(const struct ramp *r, size_t offset);
#define RAMP_SUM(r, field) ramp_sum(r, offsetof(struct worker_stats, field))

/* Asks the server, now or as soon as the question under way is answered. */
void ramp_ask(struct ramp *r, enum control_what what);
void ramp_send_next_question(struct ramp *r);

/* True if the server's pools are as they were before the first client came. QPs and PSNs in quarantine
 * are at rest, not lost. */
bool ramp_is_restored(const struct ramp *r, const json_t *now);

/* How many clients there are and how far they came, into events.ndjson: at every call while that changes, else once a
 * second. */
void ramp_sample(struct ramp *r);

/* The figures of an interval of the measured phase, for steadiness, progress and events.ndjson. */
void ramp_begin_intervals(struct ramp *r);
void ramp_end_interval(struct ramp *r);

#endif
