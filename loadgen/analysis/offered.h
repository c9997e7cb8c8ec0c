/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency against offered load, at each rate of a sweep (--rate A-B, --find-rate). Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_OFFERED_H
#define RAMPART_LOADGEN_ANALYSIS_OFFERED_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/knee.h"

#define OFFERED_MAX 96			/* at least OPT_LIST_MAX (a sweep) and CAPACITY_PROBES_MAX (a search) */

/* The figures at an offered rate: medians over its repetitions; NAN: not known. */
struct offered_point {
	double per_s, achieved_per_s;
	double p50_ns, p95_ns, p99_ns, p99_9_ns;
	double lag_p99_ns;		/* how late operations were sent */
	bool behind;			/* a step ended fewer than 95 % of the operations that were due */
	bool saturated;			/* in a step the generator was at its own limit, or stood still */
};

/* The points of a number of clients and a message size, in rising order of rates. Returns how many. */
size_t offered_points(const json_t *steps, double clients, double bytes, struct offered_point out[OFFERED_MAX]);

/* The knee, with rates in the place of clients: up to it the achieved rate grows with the offered rate, and p99 stays
 * below twice that of the lowest rate. Rates at which the generator was at its limit are left out. */
void offered_knee(const struct offered_point *p, size_t n, struct knee *out);

#define OFFERED_CROSSINGS_MAX 16

/* A rate at which two p99 curves cross. faster_beyond: above this rate the run is faster than the base. */
struct offered_crossing {
	double per_s;
	bool faster_beyond;
};

/* The crossings in the range of rates that both curves cover, in rising order. Curves are interpolated between points
 * on logarithmic axes. Returns how many. */
size_t offered_crossings(const struct offered_point *base, size_t n_base, const struct offered_point *run, size_t n_run,
			 struct offered_crossing out[OFFERED_CROSSINGS_MAX]);

/* analysis.offered_load.curves of run.json: an element for each number of clients and size; null without a sweep.
 * NULL when out of memory. */
json_t *offered_curves_json(const json_t *steps);
/* Writes the knee of the points in words. Returns `text`. */
const char *offered_knee_text(const struct offered_point *p, size_t n, char *text, size_t size);

#endif
