/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the alternatives in pairs: the sizes at which one overtakes another. Pure. */
#ifndef RAMPART_LOADGEN_SIDE_BY_SIDE_H
#define RAMPART_LOADGEN_SIDE_BY_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* True if no earlier element of `points` has the same number at `name` as the element `at`. */
bool side_by_side_is_first(const json_t *points, size_t at, const char *name);

/* For each pair of alternatives, which one is ahead at which sizes: [{clients, metric ("response_p50_ns",
 * "throughput_bytes_per_s"), names: [2], ahead: [{from_bytes (null: the smallest), name}]}]. `points` are {clients,
 * message_bytes, offered_per_s, figures}; pairs need two sizes or more, and points with an offered rate are left out.
 * Between two sizes figures are interpolated on logarithmic axes. A size at which one of the pair lacks the figure is
 * left out. NULL when out of memory. */
json_t *side_by_side_sizes(const json_t *points);

#endif
