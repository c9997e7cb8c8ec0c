/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's metrics for --metrics (docs/metrics.md): what STATS reports, for Prometheus and its like.
 *
 * No shard is asked anything: counters are read while the shards write them, and gauges are those that each shard
 * published last. Main thread.
 */
#ifndef RAMPART_SERVER_METRICS_H
#define RAMPART_SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>

/* The document for common/metrics/exporter.h; `server` is a struct server, of which only the configuration and what
 * main.c opens must be there. */
char *metrics_text(void *server, bool openmetrics, size_t *len) __attribute__((warn_unused_result));

#endif
