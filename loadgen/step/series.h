/* SPDX-License-Identifier: BSD-2-Clause */
/* What both machines used as the run went on: samples in the order in which they came, and the peaks of a step.
 *
 * The series keeps SERIES_MAX samples of each side at most. When it is full, every second one is
 * dropped, and from then on half as many are kept: it always reaches from the run's begin to its end. Peaks are of all
 * samples.
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_SERIES_H
#define RAMPART_LOADGEN_SERIES_H

#include <stdint.h>

#include <jansson.h>

#include "common/host/sample.h"
#include "loadgen/config/targets.h"

#define SERIES_MAX 1024

enum series_side { SIDE_SERVER, SIDE_GENERATOR, SIDE_N, SIDES_MAX = SIDE_N + TARGETS_MAX };
extern const char *const series_side_names[SIDE_N];	/* server, generator */

/* The side of a server. One of several has a side of its own, of which only peaks are kept: SIDE_SERVER has no samples
 * then. */
static inline enum series_side series_server(uint32_t target, uint32_t n_targets)
{
	return (enum series_side)(n_targets > 1 ? SIDE_N + target : SIDE_SERVER);
}

/* The most of each figure, and of the machine's available memory the least; NAN: no sample told it. Counters are not
 * there. */
struct series_peak {
	uint64_t samples;
	double v[SAMPLE_N];
	double cpus;			/* of the process between two samples, in CPUs */
	double machine_busy_ratio;	/* of all CPUs of the machine between two samples */
};

struct series;

/* 0 or -ENOMEM. */
int series_new(struct series **out) __attribute__((warn_unused_result));
void series_free(struct series *s);	/* NULL-safe */

/* A sample that came `t_s` after the run's folder was made. */
void series_add(struct series *s, enum series_side side, double t_s, const struct sample *sample);
/* A phase of the run began. */
void series_phase(struct series *s, double t_s, const char *name);

/* CPU that the process used between the side's newest two samples, in CPUs; NAN if that is not known. */
double series_cpus(const struct series *s, enum series_side side);

/* A step begins: its peaks begin anew. */
void series_begin_step(struct series *s);
const struct series_peak *series_peak(const struct series *s, enum series_side side);
/* `peak` of steps[].resources in run.json: null if there was no sample. NULL when out of memory. */
json_t *series_peak_json(const struct series_peak *p) __attribute__((warn_unused_result));

/* `resources_series` of run.json: for each side an array of each figure, counters as what was added since the side's
 * first sample. Null for a side without samples. NULL when out of memory. */
json_t *series_json(const struct series *s, double interval_s) __attribute__((warn_unused_result));

#endif
