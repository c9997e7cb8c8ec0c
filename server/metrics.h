/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's metrics for --metrics (docs/metrics.md): the figures of STATS in the format of Prometheus.
 *
 * Shards are not asked for anything: counters are read while the shards write them, and gauges have the values that
 * each shard published last. Main thread.
 */
#ifndef RAMPART_SERVER_METRICS_H
#define RAMPART_SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>

/* The document for common/metrics/exporter.h. `server` is a struct server; only its configuration and what main.c opens
 * need to be set. */
char *metrics_text(void *server, bool openmetrics, size_t *len) __attribute__((warn_unused_result));

#endif
