/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternatives of a comparison beside each other: the sizes at which one overtakes another. Pure. */
#ifndef RAMPART_LOADGEN_SIDE_BY_SIDE_H
#define RAMPART_LOADGEN_SIDE_BY_SIDE_H

#include <jansson.h>

/* Which of each two alternatives is ahead at which sizes, of points ({clients, message_bytes, offered_per_s, figures}) with at
 * least two sizes and no offered rate: [{clients, metric ("response_p50_ns", "throughput_bytes_per_s"), names: [2], ahead: [{
 * from_bytes (null: the smallest), name}]}]. Between two sizes the figures are taken to be straight lines on logarithmic
 * axes. A size at which one lacks the figure is left out. NULL when out of memory. */
json_t *side_by_side_sizes(const json_t *points);

#endif
