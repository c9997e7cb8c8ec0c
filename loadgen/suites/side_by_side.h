/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternatives of a comparison beside each other: what each had at a point, and the sizes at which one overtakes another.
 * Pure.
 */
#ifndef RAMPART_LOADGEN_SIDE_BY_SIDE_H
#define RAMPART_LOADGEN_SIDE_BY_SIDE_H

#include <jansson.h>

/* Medians over the steps of `run` ({steps}), which are the rounds of one alternative at one point: {name, response_p50_ns,
 * response_p95_ns, response_p99_ns, response_p99_9_ns, jitter_ratio, throughput_msgs_per_s, throughput_bytes_per_s,
 * server_cpu_ns_per_message, generator_cpu_ns_per_message, connect_p50_ns, connect_p99_ns, server_rss_bytes_per_client,
 * machine_kernel_bytes_per_client, connect_stages: {tcp_connect, ...: p50 in ns}}; null is not known, and a stage that the
 * connections do not have. NULL when out of memory. */
json_t *side_by_side_figures(const char *name, const json_t *run);

/* Which of each two alternatives is ahead at which sizes, of points ({clients, message_bytes, offered_per_s, figures}) with at
 * least two sizes and no offered rate: [{clients, metric ("response_p50_ns", "throughput_bytes_per_s"), names: [2], ahead: [{
 * from_bytes (null: the smallest), name}]}]. Between two sizes the figures are taken to be straight lines on logarithmic
 * axes. A size at which one lacks the figure is left out. NULL when out of memory. */
json_t *side_by_side_sizes(const json_t *points);

#endif
