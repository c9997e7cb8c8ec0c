/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a run, grouped into points: all steps with the same number of clients and message size. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_POINTS_H
#define RAMPART_LOADGEN_ANALYSIS_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/read.h"

struct point {
	double clients, bytes;		/* 0 bytes: the run does not state the size */
	const json_t **steps;		/* borrowed from the run, in the order they ran */
	size_t n;
};

struct points {
	struct point *v;		/* by size, then by clients */
	size_t n;
	double *sizes;			/* rising */
	size_t n_sizes;
	size_t left_out;		/* steps beyond READ_STEPS_MAX */
};

/* Which steps count, and which of their fields is the number of clients. */
struct points_rule {
	const char *clients;		/* a path in the step; steps without a number above 0 there are left out */
	bool (*counts)(const json_t *step, const void *arg);	/* NULL: all */
	const void *arg;
};

/* Groups the steps that the rule admits, and leaves out elements that are not steps. Returns 0 or -ENOMEM. */
int points_by(const json_t *steps, const struct points_rule *rule, struct points **out)
	__attribute__((warn_unused_result));
/* All steps of a run, grouped by their target of clients; in a sweep, only those at the main rate. */
int points_new(const json_t *run, struct points **out) __attribute__((warn_unused_result));
/* The main rate of a sweep (several offered rates at one number of clients and size): the highest rate without the
 * flag behind_schedule, else the lowest. NAN: the steps are no sweep. */
double points_main_rate(const json_t *steps);
/* The steps at an offered rate; NAN: all steps. Returns 0 or -ENOMEM. */
int points_at(const json_t *run, double per_s, struct points **out) __attribute__((warn_unused_result));
void points_free(struct points *p);	/* NULL-safe */

/* The point of a number of clients and a size; NULL where there is none. */
const struct point *points_find(const struct points *p, double clients, double bytes);

/* Median of the figure at a path of each step; low and high are the range, NAN with fewer than two figures. */
struct estimate point_range(const struct point *p, const char *path);

/* The same for figures that a function computes from each step. */
typedef double point_figure_fn(const json_t *step, const void *arg);
struct estimate point_range_of(const struct point *p, point_figure_fn *figure, const void *arg);

/* Throughput in messages a second: median and range of several repetitions, or the figure of a single one with the
 * 95 % interval of the mean over its intervals. */
struct estimate point_throughput(const struct point *p);

/* The distribution of a step, read from the run's folder; NULL where there is none. `which` is connect, response or
 * service. Owned by the callee: valid until the next call. */
struct hist;
typedef const struct hist *point_hist_fn(void *arg, const json_t *step, const char *which);

/* A percentile of the response, service or connect time in ns: median and range of several repetitions, or the figure
 * of a single one with the interval of its histogram's order statistics. NAN if a repetition has too few samples. */
struct estimate point_percentile(const struct point *p, point_hist_fn *hist, void *arg, const char *which,
				 double percentile);

#endif
