/* What of a chart is to be seen, and where. Pure. For chart.c alone. */
#ifndef RAMPART_LOADGEN_REPORT_CHART_LAYOUT_H
#define RAMPART_LOADGEN_REPORT_CHART_LAYOUT_H

#include "loadgen/report/chart/chart.h"
#include "loadgen/report/chart/chart_scale.h"

/* In the SVG's units, of which a page shows 640 in up to 736 pixels or, on a phone, in some 330: there letters are 20
 * units high instead of 12 (style.h), and the layout has room for those. */
#define CHART_WIDTH 640
#define CHART_LINE_HEIGHT 26
#define CHART_SAMPLE 36		/* of a series in the legend */

/* How many characters are shown of a label, of a rule's and of a category's. */
#define CHART_LABEL_CHARS 50
#define CHART_RULE_CHARS 26
#define CHART_CATEGORY_CHARS 14

struct chart_layout {
	struct chart_scale x, y, right;
	double left, right_edge, top, bottom;	/* of the plot */
	double legend_top, height;		/* of all */
	size_t legend, legend_rows;		/* series that are named, and in how many rows */
	double legend_width;			/* of a column */
	size_t each_category;			/* every n-th is named, */
	bool angled;				/* and those stand at an angle */
	struct chart_rule_label {		/* of a vertical rule, above the plot */
		double from, to;
		size_t row;			/* 0 is the lowest */
	} rules[CHART_RULES_MAX];
};

/* False where the chart has no point to show. */
bool chart_layout_set(struct chart_layout *l, const struct chart *c);

const struct chart_scale *chart_scale_of(const struct chart_layout *l, const struct chart_series *s);
/* Is there a point at i, and how many are there? */
bool chart_point_at(const struct chart_layout *l, const struct chart_series *s, size_t i);
size_t chart_points(const struct chart_layout *l, const struct chart_series *s);
/* Are its points drawn as boxes? A histogram of one point has none. */
bool chart_is_boxes(const struct chart_series *s);
/* The part of a stack at the series' point i: *bottom is where it begins; sums[] gets where it ends. False: none. */
bool chart_stack_next(const struct chart_series *s, size_t i, double sums[CHART_CATEGORIES_MAX], double *bottom);
/* Is the series in the legend? There it has this behind its label, if it is on the right axis. */
#define CHART_ON_THE_RIGHT " (right)"
bool chart_is_named(const struct chart_layout *l, const struct chart_series *s);
/* How many characters of a label are shown: `max` at most; 0 for NULL. */
size_t chart_chars(const char *label, size_t max);

#endif
