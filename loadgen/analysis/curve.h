/* SPDX-License-Identifier: BSD-2-Clause */
/* Throughput and latency against clients from run.json's steps: the points in which knee and fit are found. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_CURVE_H
#define RAMPART_LOADGEN_ANALYSIS_CURVE_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/knee.h"
#include "loadgen/analysis/usl.h"

#define CURVE_POINTS_MAX USL_POINTS_MAX

/* The medians at each number of clients, in rising order. Of a search for capacity only the doublings count, of other
 * runs only numbers at least 1.5 times the one before: between closer numbers noise is larger than growth. If steps
 * have several message sizes, those with the first step's count. Returns how many; at most CURVE_POINTS_MAX. */
size_t curve_knee_points(const json_t *steps, struct knee_point *out);

/* Each step that has a throughput: the clients that sent, the throughput, and its standard error from the intervals. */
size_t curve_usl_points(const json_t *steps, struct usl_point *out);

/* The knee, as analysis.capacity.knee in run.json; the fit, as analysis.usl. NULL when out of memory. */
json_t *curve_knee_json(const json_t *steps);
json_t *curve_usl_json(const json_t *steps);

#endif
