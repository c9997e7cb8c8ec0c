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

/* Can `v` be drawn on such an axis? It is neither NAN nor infinite nor so large that arithmetic with it overflows. */
bool chart_drawable(double v, bool log);
/* Widens the range to hold `v`, if it is drawable. A scale begins as zeros and `log`. */
void chart_scale_widen(struct chart_scale *s, double v);
/* Sets about `ticks` ticks, and widens the range: of a linear scale to round values, and to 0 if `from_zero`. */
void chart_scale_round(struct chart_scale *s, bool from_zero, size_t ticks);
/* The same for a scale of 1 / (1 - quantile). */
void chart_scale_round_percentile(struct chart_scale *s);
/* The place of `v` in the chart; for a value out of range, that of the nearer end. */
double chart_scale_place(const struct chart_scale *s, double v);

#endif
