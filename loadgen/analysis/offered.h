/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency against offered load: what the steps of a sweep (--rate A-B, --find-rate) say, at each rate. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_OFFERED_H
#define RAMPART_LOADGEN_ANALYSIS_OFFERED_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/knee.h"

#define OFFERED_MAX 96			/* rates of a sweep (OPT_LIST_MAX) or of a search (CAPACITY_PROBES_MAX), and
					 * more */

/* What was measured at an offered rate: medians over its repetitions; NAN: not known. */
struct offered_point {
	double per_s, achieved_per_s;
	double p50_ns, p95_ns, p99_ns, p99_9_ns;
	double lag_p99_ns;		/* how late operations were sent */
	bool behind;			/* a step ended fewer than 95 % of the operations that were due */
	bool saturated;			/* in a step the generator was at its own limit, or stood still */
};

/* The steps of a number of clients and a size, in rising order of rates. Returns how many rates. */
size_t offered_points(const json_t *steps, double clients, double bytes, struct offered_point out[OFFERED_MAX]);

/* The knee, with rates in the place of clients: up to it what is achieved grows with what is offered, and p99 stays
 * below twice that of the lowest rate. Rates at which the generator was at its limit are left out. */
void offered_knee(const struct offered_point *p, size_t n, struct knee *out);

#define OFFERED_CROSSINGS_MAX 16

/* Where two p99 curves cross: a rate, and whether beyond it the run is the faster one. */
struct offered_crossing {
	double per_s;
	bool faster_beyond;
};

/* The crossings within the rates that both have, in rising order; curves are straight between points on logarithmic
 * axes. Returns how many. */
size_t offered_crossings(const struct offered_point *base, size_t n_base, const struct offered_point *run, size_t n_run,
			 struct offered_crossing out[OFFERED_CROSSINGS_MAX]);

/* analysis.offered_load.curves of run.json: an element for each number of clients and size; null unless it is a sweep.
 * NULL when out of memory. */
json_t *offered_curves_json(const json_t *steps);
/* Their knee in words. Returns `text`. */
const char *offered_knee_text(const struct offered_point *p, size_t n, char *text, size_t size);

#endif
