/* Throughput and latency against clients, out of run.json's steps: what the knee and the fit are found in. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_CURVE_H
#define RAMPART_LOADGEN_ANALYSIS_CURVE_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/knee.h"
#include "loadgen/analysis/usl.h"

#define CURVE_POINTS_MAX USL_POINTS_MAX

/* The medians over what was measured at each number of clients held, rising. Of a search for capacity only the doublings
 * are taken, and of others only numbers that are half as many again as the last: nearer ones differ by less than noise
 * does. Steps of several message sizes: those of the first. Returns how many; at most CURVE_POINTS_MAX. */
size_t curve_knee_points(const json_t *steps, struct knee_point *out);

/* Each step with a throughput: clients that sent, throughput, and its standard error by the step's intervals. */
size_t curve_usl_points(const json_t *steps, struct usl_point *out);

/* The knee, as analysis.capacity.knee in run.json; the fit, as analysis.usl. NULL when out of memory. */
json_t *curve_knee_json(const json_t *steps);
json_t *curve_usl_json(const json_t *steps);

#endif
