/* The scale of a chart's axis: which values it spans, where each of them stands, and the ticks. Pure. */
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
	double from, to;	/* the ends' places in the chart, set by the caller */
	size_t n_ticks;
	struct chart_tick ticks[CHART_TICKS_MAX];
};

/* Can `v` be drawn on such an axis? Not NAN, not infinite, not so large that arithmetic with it overflows. */
bool chart_drawable(double v, bool log);
/* Widens a scale to show `v`, if it is drawable. Begin with one of zeros but for `log`. */
void chart_scale_widen(struct chart_scale *s, double v);
/* Rounds the ends of a linear scale, with 0 as one of them if `from_zero`, and sets about `ticks` ticks. */
void chart_scale_round(struct chart_scale *s, bool from_zero, size_t ticks);
/* The same for a scale of 1 / (1 - quantile). */
void chart_scale_round_percentile(struct chart_scale *s);
/* The place of `v`; of one beyond an end, the end's. */
double chart_scale_place(const struct chart_scale *s, double v);

#endif
