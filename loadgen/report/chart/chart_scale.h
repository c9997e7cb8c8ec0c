/* SPDX-License-Identifier: BSD-2-Clause */
/* The scale of a chart's axis: the range of its values, the place of a value, and the ticks. Pure. */
#ifndef RAMPART_LOADGEN_REPORT_CHART_SCALE_H
#define RAMPART_LOADGEN_REPORT_CHART_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#define CHART_TICKS_MAX 24

struct chart_tick {
	double at;
	char label[24];
};

struct chart_scale {
	bool used, log;
	double lo, hi;		/* the values at its ends */
	double from, to;	/* the places of lo and hi in the chart; the caller sets them */
	size_t n_ticks;
	struct chart_tick ticks[CHART_TICKS_MAX];
};

/* True if `v` can be drawn on such an axis: not NAN, infinite, or so large that arithmetic with it overflows. */
bool chart_drawable(double v, bool log);
/* Widens the range to hold `v`, if it is drawable. A scale must begin with all fields 0 except `log`. */
void chart_scale_widen(struct chart_scale *s, double v);
/* Sets about `ticks` ticks and widens the range; a linear scale ends at round values, and includes 0 if `from_zero`. */
void chart_scale_round(struct chart_scale *s, bool from_zero, size_t ticks);
/* The same for a scale of 1 / (1 - quantile). */
void chart_scale_round_percentile(struct chart_scale *s);
/* The place of `v` in the chart; a value out of range is placed at the nearer end. */
double chart_scale_place(const struct chart_scale *s, double v);

#endif
