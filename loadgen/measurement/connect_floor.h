/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections made one at a time to a server that has no other clients: they give the floor of connection times and
 * prove that clients can connect. They are made before the first step, after the last, and after steps that failed. */
#ifndef RAMPART_LOADGEN_CONNECT_FLOOR_H
#define RAMPART_LOADGEN_CONNECT_FLOOR_H

#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail_table.h"

struct connect_floor;
struct worker_stats;

/* 0 or -ENOMEM. */
int connect_floor_new(struct connect_floor **out) __attribute__((warn_unused_result));
void connect_floor_free(struct connect_floor *f);	/* NULL-safe */

/* Adds the attempt of one client; `st` are the counters of its worker. True if the client connected. */
bool connect_floor_add(struct connect_floor *f, const struct worker_stats *st);

/* Number of clients that tried to connect, and number of clients that did. */
uint32_t connect_floor_tried(const struct connect_floor *f);
uint32_t connect_floor_connected(const struct connect_floor *f);

/* `floor.before` and `floor.after` of run.json. NULL when out of memory. */
json_t *connect_floor_json(const struct connect_floor *f);

#endif
