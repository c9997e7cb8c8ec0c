/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that are made one at a time on a server that has no other clients: the floor of connection times, and the
 * proof that clients can connect. Before the first step of a run and after its last, and after steps that failed. */
#ifndef RAMPART_LOADGEN_FLOOR_H
#define RAMPART_LOADGEN_FLOOR_H

#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail_table.h"

struct floor;
struct worker_stats;

/* 0 or -ENOMEM. */
int floor_new(struct floor **out) __attribute__((warn_unused_result));
void floor_free(struct floor *f);	/* NULL-safe */

/* One client tried. `st` is what the worker published that had it. True if it connected. */
bool floor_add(struct floor *f, const struct worker_stats *st);

/* Clients that tried, and those that connected. */
uint32_t floor_tried(const struct floor *f);
uint32_t floor_connected(const struct floor *f);

/* `floor.before` and `floor.after` of run.json. NULL when out of memory. */
json_t *floor_json(const struct floor *f);

#endif
