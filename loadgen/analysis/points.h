/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a run by number of clients and message size: repetitions and probes of the same are one point. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_POINTS_H
#define RAMPART_LOADGEN_ANALYSIS_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/read.h"

struct point {
	double clients, bytes;		/* 0 bytes: the run does not say it */
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

/* Which steps are looked at, and by which number of clients. */
struct points_rule {
	const char *clients;		/* a path in the step; steps without a number above 0 there are left out */
	bool (*counts)(const json_t *step, const void *arg);	/* NULL: all */
	const void *arg;
};

/* Elements of `steps` that are no steps are left out. 0 or -ENOMEM. */
int points_by(const json_t *steps, const struct points_rule *rule, struct points **out)
	__attribute__((warn_unused_result));
/* All steps of a run by the clients that were asked for. */
int points_new(const json_t *run, struct points **out) __attribute__((warn_unused_result));
/* Of steps of one number of clients and size with several offered rates (a sweep): the highest rate that was kept up
 * with, else the lowest. NAN: it is no sweep. */
double points_main_rate(const json_t *steps);
/* All steps, or those offered that rate; NAN: all. 0 or -ENOMEM. */
int points_at(const json_t *run, double per_s, struct points **out) __attribute__((warn_unused_result));
void points_free(struct points *p);	/* NULL-safe */

/* The point of a number of clients and a size; NULL where there is none. */
const struct point *points_find(const struct points *p, double clients, double bytes);

/* Median of the figure at a path of each step, low and high its least and most; those are NAN with fewer than two. */
struct estimate point_range(const struct point *p, const char *path);

/* The same of what `figure` makes of each step. */
typedef double point_figure_fn(const json_t *step, const void *arg);
struct estimate point_range_of(const struct point *p, point_figure_fn *figure, const void *arg);

/* Throughput in messages a second: of several runs median and range, of one its figure with the 95 % interval of what
 * its intervals had. */
struct estimate point_throughput(const struct point *p);

/* The distribution of a step, read from the run's folder; NULL where there is none. `which` is connect, response or
 * service. Owned by the callee: valid until the next call. */
struct hist;
typedef const struct hist *point_hist_fn(void *arg, const json_t *step, const char *which);

/* A percentile of the response, service or connect time in ns, likewise; the interval of one run is that of the order
 * statistics of its histogram. NAN where the samples of a run do not support it. */
struct estimate point_percentile(const struct point *p, point_hist_fn *hist, void *arg, const char *which,
				 double percentile);

#endif
