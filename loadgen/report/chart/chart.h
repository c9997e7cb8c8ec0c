/* SPDX-License-Identifier: BSD-2-Clause */
/* Charts as SVG. Their colours are CSS variables of the page (doc/style.h), so they follow light and dark. Does no I/O.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_CHART_H
#define RAMPART_LOADGEN_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

enum chart_mark {
	CHART_LINE,		/* with points */
	CHART_LINE_PLAIN,	/* a line alone: a fit, a distribution */
	CHART_BAND,		/* filled between low and high: an interval */
	CHART_STEPS,
	CHART_STACK,		/* bars on top of the previous series' bars; x is the category's number, from 0 */
	CHART_BARS,		/* bars of a histogram: each reaches from its x to the next point's */
};

struct chart_series {
	const char *label;
	enum chart_mark mark;
	const double *x, *y;		/* n of them, borrowed; NAN: no point */
	const double *low, *high;	/* bounds of an error bar or band; NULL: none */
	size_t n;
	bool right;			/* on the right axis */
	bool dim;			/* in the background, such as a baseline */
};

struct chart_rule {			/* a line across, with its label */
	double at;
	bool vertical;
	bool bad;			/* a limit, in the colour of a problem */
	const char *label;
};

#define CHART_SERIES_MAX 16
#define CHART_RULES_MAX 8
#define CHART_CATEGORIES_MAX 64

struct chart {
	const char *x_label, *y_label, *right_label;
	bool x_log, y_log;
	bool x_percentile;		/* x is 1 / (1 - percentile / 100), log: ticks 0, 90 %, 99 %, 99.9 %, ... */
	const char *categories[CHART_CATEGORIES_MAX];	/* names of x = 0, 1, ...; none: x is a number */
	size_t n_categories;
	struct chart_series series[CHART_SERIES_MAX];
	size_t n_series;
	struct chart_rule rules[CHART_RULES_MAX];
	size_t n_rules;
};

/* Draws a chart. *svg is set to its SVG, which the caller frees; NULL if the chart has no point. Labels may be any
 * text, because they are escaped. Returns 0 or -ENOMEM. */
int chart_draw(const struct chart *c, char **svg) __attribute__((warn_unused_result));

#endif
