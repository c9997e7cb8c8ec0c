/* SPDX-License-Identifier: BSD-2-Clause */
/* Throughput and latency against clients: the points of run.json's steps, their knee and their fit. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_CURVE_H
#define RAMPART_LOADGEN_ANALYSIS_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/knee.h"
#include "loadgen/analysis/usl.h"

#define CURVE_POINTS_MAX USL_POINTS_MAX

/* The medians at each number of clients, in rising order. A search for capacity counts only its doublings, and any run
 * only numbers at least 1.5 times the one before: between closer numbers noise is larger than growth. If steps have
 * several message sizes, only the first step's size counts. Returns how many points: at most CURVE_POINTS_MAX. */
size_t curve_knee_points(const json_t *steps, struct knee_point *out);

/* A point for each step with a throughput: the clients that sent, the throughput, and its error over the intervals. */
size_t curve_usl_points(const json_t *steps, struct usl_point *out);

/* analysis.capacity.knee and analysis.usl of run.json. NULL when out of memory. `threads_sleep`: threads of server and
 * generator sleep when they have nothing to do, so that CPU time tells whether the CPUs were full. */
json_t *curve_knee_json(const json_t *steps, bool threads_sleep);
json_t *curve_usl_json(const json_t *steps);

#endif
