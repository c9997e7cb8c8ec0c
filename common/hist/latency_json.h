/* SPDX-License-Identifier: BSD-2-Clause */
/* The latency object of run.json and of the server's reports (docs/results.md). */
#ifndef RAMPART_COMMON_LATENCY_JSON_H
#define RAMPART_COMMON_LATENCY_JSON_H

#include <jansson.h>

struct hist;

/* The percentiles of a latency object. */
enum { LATENCY_P50, LATENCY_P90, LATENCY_P95, LATENCY_P99, LATENCY_P99_9, LATENCY_P99_99, LATENCY_PERCENTILES };
extern const struct latency_percentile {
	const char *name;
	double percentile;
} latency_percentiles[LATENCY_PERCENTILES];

/* p99 / p50; NAN if the samples do not support it. */
double latency_jitter(const struct hist *h);

/* {count, min, mean, max, p50, p90, p95, p99, p99_9, p99_99, jitter}: times in ns; jitter is p99 / p50. A percentile
 * that the samples do not support (hist_supports) is null; so are min, mean and max of an empty histogram. Any thread,
 * on a histogram that nobody records into. The caller owns the reference; NULL if memory runs out. */
json_t *latency_json(const struct hist *h) __attribute__((warn_unused_result));

#endif
