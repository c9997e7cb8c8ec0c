/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource usage of both sides over the run: samples in order of arrival, and the peaks of each step.
 *
 * The series keeps at most SERIES_MAX samples of each side. When it is full, every second sample is dropped and the
 * sampling rate is halved, so that the series always spans the whole run. Peaks take every sample into account. Owning
 * thread: main.
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

/* The side of a server. Each of several servers has a side of its own, of which only the peaks are kept; SIDE_SERVER
 * then has no samples. */
static inline enum series_side series_server(uint32_t target, uint32_t n_targets)
{
	return (enum series_side)(n_targets > 1 ? SIDE_N + target : SIDE_SERVER);
}

/* Maximum of each figure, but minimum of the machine's available memory; NAN: no sample had the figure. Counters have
 * no peak. */
struct series_peak {
	uint64_t samples;
	double v[SAMPLE_N];
	double cpus;			/* CPUs that the process used between two samples */
	double machine_busy_ratio;	/* share of the machine's CPU time in use between two samples */
};

struct series;

/* 0 or -ENOMEM. */
int series_new(struct series **out) __attribute__((warn_unused_result));
void series_free(struct series *s);	/* NULL-safe */

/* Adds a sample that arrived `t_s` after the run's folder was created. */
void series_add(struct series *s, enum series_side side, double t_s, const struct sample *sample);
/* Records that a phase of the run began. */
void series_phase(struct series *s, double t_s, const char *name);

/* CPU that the process used between the side's newest two samples, in CPUs; NAN if that is not known. */
double series_cpus(const struct series *s, enum series_side side);

/* Resets the peaks at the beginning of a step. */
void series_begin_step(struct series *s);
const struct series_peak *series_peak(const struct series *s, enum series_side side);
/* `peak` of steps[].resources in run.json: null if there was no sample. NULL when out of memory. */
json_t *series_peak_json(const struct series_peak *p) __attribute__((warn_unused_result));

/* `resources_series` of run.json: for each side an array per figure, counters relative to the side's first sample. Null
 * for a side without samples. NULL when out of memory. */
json_t *series_json(const struct series *s, double interval_s) __attribute__((warn_unused_result));

#endif
