/* SPDX-License-Identifier: BSD-2-Clause */
/* Network traffic of one side between two readings of its ports' counters (common/port/port.h). Pure. */
#ifndef RAMPART_LOADGEN_NETWORK_H
#define RAMPART_LOADGEN_NETWORK_H

#include <stdbool.h>

#include <jansson.h>

/* The side's object of steps[].network (docs/results.md, "network"). The readings need not be valid: whatever is not a
 * reading, or does not match the other one, counts as unknown. `loopback`: both ends are on one machine, so their
 * traffic does not leave it. A new reference; null without two readings; NULL when out of memory. */
json_t *network_side_json(const json_t *begin, const json_t *end, bool loopback);

/* Merges the sides of two hosts, without their ports: figures are added, used_ratio is the greater one, and a figure
 * unknown for one host is unknown for both. `a` NULL: `b` alone. A new reference; null if one side is null; NULL when
 * out of memory. */
json_t *network_side_merge(const json_t *a, const json_t *b);
/* True if `side` has the form that network_side_json gives it; its ports are not checked. */
bool network_side_is_sound(const json_t *side);

#endif
