/* SPDX-License-Identifier: BSD-2-Clause */
/* Where throughput falls as the number of clients grows, and which of the devices' counters grew with it. Pure. */
#ifndef RAMPART_LOADGEN_FALLS_H
#define RAMPART_LOADGEN_FALLS_H

#include <jansson.h>

/* For each alternative and size that was measured with three numbers of clients or more, and no offered rate:
 * [{name, message_bytes, best_clients, best_msgs_per_s, above_clients, below_clients, below_msgs_per_s, counters}].
 * `best_` is the largest median. `below_clients` is the smallest number beyond it from which on every median is below
 * 90 % of the best, and `above_clients` the measured number before that one; null: throughput does not fall.
 * `counters` are at most 8 counters of the RDMA ports whose growth for each operation is more than 10 % larger at
 * `below_clients` than at `best_clients`: [{name (the kernel's), best_per_op, below_per_op}], medians of the rounds.
 *
 * `points` are {clients, message_bytes, offered_per_s, figures: [an object for each alternative], runs: [{steps: [a
 * step of run.json for each round]} for each alternative]}. NULL when out of memory. */
json_t *falls_json(const json_t *points);

#endif
