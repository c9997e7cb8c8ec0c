/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures against the number of clients, for charts, tables and statements alike; points side by side as bars. The page
 * owns their memory. */
#ifndef RAMPART_LOADGEN_REPORT_TREND_H
#define RAMPART_LOADGEN_REPORT_TREND_H

#include "loadgen/report/sections/page.h"

struct trend {
	double *x, *y, *low, *high;	/* clients; the figure and its range or interval, NAN where there is none */
	size_t n;			/* points of that size; 0 also when memory ran out */
	size_t known;			/* with a figure */
	size_t first, last;		/* of those; 0 when there are none */
};

/* Of all points with messages of `bytes`: the figure at a path of the steps, multiplied by `scale`. The path is
 * as of page_figure; throughput has the interval of point_throughput. */
#define TREND_THROUGHPUT "throughput_msgs_per_s"
struct trend trend_figure(struct page *p, const struct points *points, double bytes, const char *path, double scale);
/* A percentile of the response time, in us. */
struct trend trend_response_us(struct page *p, const struct points *points, struct source *source, double bytes,
			       double percentile);

/* Adds it to the chart, with its ranges if it has any; `dim`: in the background, without ranges. Adds nothing if no
 * figure is known. */
void trend_draw(struct chart *c, const struct trend *v, const char *label, bool dim);

/* The index of the highest figure; 0 when none is known. */
size_t trend_top(const struct trend *v);

/* True if the numbers of clients span so much that they need a logarithmic axis. */
bool trend_wants_log(const struct points *points);

/* --- several figures of the steps: a chart and the table of its numbers --- */

#define FIGURES_MAX 8

struct figures {
	const char *id, *title;		/* of the table; the chart is <id>-chart */
	const char *y_label, *description;
	bool logarithmic;		/* both axes */
	size_t drawn;			/* the first ones of the columns, by the chart */
	struct page_column v[FIGURES_MAX + 1];
};

/* Their trends, into `out`; returns how many of all their points are known. Out of memory: none is. */
size_t figures_read(struct page *p, const struct figures *f, double bytes, struct trend out[FIGURES_MAX]);
void figures_show(struct page *p, const struct figures *f, const struct trend v[FIGURES_MAX]);

/* --- bars --- */

#define BARS_MAX 24

/* A bar for each number of clients and size, as many as can be told apart. */
struct bars {
	const struct point *v[BARS_MAX];
	size_t n;
};

/* All points, or as many as there is room for, evenly, the first and the last among them. */
void bars_choose(const struct points *points, struct bars *out);

/* Names the chart's categories after the points. */
void bars_name(struct page *p, const struct bars *bars, struct chart *c);

/* Adds a stacked series, a number for each bar, which the chart keeps. True if one of them is known. */
bool bars_add(struct page *p, const struct bars *bars, struct chart *c, const char *label, const double *y);

#endif
