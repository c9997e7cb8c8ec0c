/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection times in run.json, and the stage that takes the largest share of them. Pure. */
#ifndef RAMPART_LOADGEN_CONNECT_JSON_H
#define RAMPART_LOADGEN_CONNECT_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "common/wire/fail.h"

struct hist;

/* The stage in which connections spent the most time. */
struct longest {
	enum stage stage;		/* STAGE_TIMED: waiting, before the attempt that succeeded */
	double ns;			/* the stage's time at the percentile; for STAGE_TIMED its mean */
	double share;			/* `ns` over the whole connection's time at the percentile, or over its mean */
};

/* Finds the longest stage at a percentile of the latencies; 100 is the maximum. False without a sample. */
bool connect_longest(struct hist *const *stages, const struct hist *total, double percentile, struct longest *out);
/* The stage's name; for STAGE_TIMED "waiting". */
const char *connect_longest_name(const struct longest *l);

/* `connect_ns`: a latency object for each stage and the total; `psn_generate` is left out if it is NULL. */
json_t *connect_json(struct hist *const *stages, const struct hist *total, const struct hist *psn_generate);
/* {p50, p99}: each {stage, ns, ratio}, or null with too few samples. */
json_t *connect_longest_json(struct hist *const *stages, const struct hist *total);

#endif
