/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports on the whole server as JSON: STATS and INFO of docs/protocol.md, "Reports".
 *
 * Statistics are read while the shards write them (relaxed atomics); gauges have the values that each shard published
 * last. Owning thread: the main thread.
 */
#ifndef RAMPART_SERVER_REPORT_H
#define RAMPART_SERVER_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "server/shard/shard_data.h"

struct hist;

/* A copy of the stage histograms at one moment. */
struct report_mark;

/* 0 or -ENOMEM, with *out NULL. */
int report_mark_new(const struct server *server, struct report_mark **out) __attribute__((warn_unused_result));
size_t report_mark_bytes(const struct report_mark *m);	/* approximate; NULL: 0 */
void report_mark_free(struct report_mark *m);	/* NULL-safe */

/* STATS. Stage histograms start at `mark` (NULL: server start). The caller owns it; NULL when out of memory. */
json_t *report_stats(const struct server *server, const struct report_mark *mark);
/* STATS without the stage histograms. The caller owns it; NULL when out of memory. */
json_t *report_counts(const struct server *server);
/* The histograms of a stage (enum server_stage) since the server's start, summed over all shards, in ns. The caller
 * frees it; NULL when out of memory. */
struct hist *report_stage(const struct server *server, int stage);
/* INFO. The caller owns it; NULL when out of memory. */
json_t *report_info(const struct server *server);

/* The counter at `offset` of struct stats, summed over all shards and control sessions. */
uint64_t report_sum(const struct server *server, size_t offset);

#endif
