/* SPDX-License-Identifier: BSD-2-Clause */
/* What the network of one side did between two readings of its ports (common/port/port.h). Pure. */
#ifndef RAMPART_LOADGEN_NETWORK_H
#define RAMPART_LOADGEN_NETWORK_H

#include <stdbool.h>

#include <jansson.h>

/* The side's object of steps[].network (docs/results.md, "network"), from readings of any origin: what is no reading, or
 * does not fit the other one, is not known. `loopback`: the two ends are one machine, so their traffic does not leave it.
 * A new reference; null if there are no two readings. NULL when out of memory. */
json_t *network_side_json(const json_t *begin, const json_t *end, bool loopback);

/* Two hosts' sides as one, without ports: figures are added, the share of the line that was used is the greater one, and what
 * is not known of one is not known of both. `a` NULL: `b` alone. A new reference; null if one of them is null; NULL when out of
 * memory. */
json_t *network_side_merge(const json_t *a, const json_t *b);
/* False for what network_side_json does not make, apart from its ports. */
bool network_side_is_sound(const json_t *side);

/* A counter's growth. It may have begun anew at 2^32, but a counter of 32 bits that stands at its end is stuck there, as
 * those of the InfiniBand port are (IBTA 16.1.3.5): NAN, as for one that went back otherwise. */
double network_growth(const json_t *begin, const json_t *end);

#endif
