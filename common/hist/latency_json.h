/* The latency object of run.json and of the server's reports (docs/results.md). */
#ifndef RAMPART_COMMON_LATENCY_JSON_H
#define RAMPART_COMMON_LATENCY_JSON_H

#include <jansson.h>

struct hist;

/* {count, min, mean, max, p50, p90, p95, p99, p99_9, p99_99, jitter}: values in ns, null where there
 * are too few samples for the percentile. NULL when out of memory. */
json_t *latency_json(const struct hist *h);

#endif
