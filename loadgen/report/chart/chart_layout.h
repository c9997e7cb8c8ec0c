/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a chart: scales, margins, rows of labels and legend. Pure. Only chart.c uses it. */
#ifndef RAMPART_LOADGEN_REPORT_CHART_LAYOUT_H
#define RAMPART_LOADGEN_REPORT_CHART_LAYOUT_H

#include "loadgen/report/chart/chart.h"
#include "loadgen/report/chart/chart_scale.h"

/* Units of the SVG. A page shows its 640 units in up to 736 pixels, a phone in about 330. On a phone letters are 20
 * units high instead of 12 (doc/style.h); the layout has room for 20. */
#define CHART_WIDTH 640
#define CHART_LINE_HEIGHT 26
#define CHART_SAMPLE 36		/* width of a series' sample in the legend */

/* Longer labels of series and axes, rules and categories are cut to this many characters. */
#define CHART_LABEL_CHARS 50
#define CHART_RULE_CHARS 26
#define CHART_CATEGORY_CHARS 14

struct chart_layout {
	struct chart_scale x, y, right;
	double left, right_edge, top, bottom;	/* edges of the plot */
	double legend_top, height;		/* height of the whole chart */
	size_t legend, legend_rows;		/* series in the legend; its rows */
	double legend_width;			/* of one of its columns */
	size_t each_category;			/* every n-th category has a label */
	bool angled;				/* these labels are at an angle */
	struct chart_rule_label {		/* of a vertical rule; it is above the plot */
		double from, to;
		size_t row;			/* 0 is the lowest */
	} rules[CHART_RULES_MAX];
};

/* False if the chart has no point. */
bool chart_layout_set(struct chart_layout *l, const struct chart *c);

const struct chart_scale *chart_scale_of(const struct chart_layout *l, const struct chart_series *s);
/* Does the series have a point at i, and how many points does it have? */
bool chart_point_at(const struct chart_layout *l, const struct chart_series *s, size_t i);
size_t chart_points(const struct chart_layout *l, const struct chart_series *s);
/* Stacks the series' bar at point i: sums[] holds the height of each category's bars so far, *bottom is set to the
 * value at which the bar begins, and the bar is added to sums[]. False if there is no bar. */
bool chart_stack_next(const struct chart_series *s, size_t i, double sums[CHART_CATEGORIES_MAX], double *bottom);
#define CHART_ON_THE_RIGHT " (right)"	/* appended to the label of a series on the right axis */
/* Is the series in the legend? */
bool chart_is_named(const struct chart_layout *l, const struct chart_series *s);
/* Number of characters of a label, at most `max`; 0 for NULL. */
size_t chart_chars(const char *label, size_t max);

#endif
