/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures against the number of clients, for charts, tables and statements alike, and points as bars side by side. The
 * page owns their memory. */
#ifndef RAMPART_LOADGEN_REPORT_TREND_H
#define RAMPART_LOADGEN_REPORT_TREND_H

#include "loadgen/report/sections/page.h"

struct trend {
	double *x, *y, *low, *high;	/* clients; the figure, and its range or interval; NAN: not known */
	size_t n;			/* points; 0 also if memory ran out */
	size_t known;			/* points whose figure is known */
	size_t first, last;		/* the first and last of these; 0 if there are none */
};

/* The figure at a path of the steps (as in page_figure), multiplied by `scale`, at all points with messages of `bytes`.
 * Throughput has the interval of point_throughput. */
#define TREND_THROUGHPUT "throughput_msgs_per_s"
struct trend trend_figure(struct page *p, const struct points *points, double bytes, const char *path, double scale);
/* A percentile of the response time, in us. */
struct trend trend_response_us(struct page *p, const struct points *points, struct source *source, double bytes,
			       double percentile);

/* Adds a trend to the chart, with its ranges if it has any; `dim`: in the background, without ranges. Adds nothing if
 * all figures are unknown. */
void trend_draw(struct chart *c, const struct trend *v, const char *label, bool dim);

/* The index of the highest figure; 0 when none is known. */
size_t trend_top(const struct trend *v);

/* True if the numbers of clients span so much that they need a logarithmic axis. */
bool trend_wants_log(const struct points *points);

/* Several figures of the steps: a chart and the table of its numbers. */

#define FIGURES_MAX 8

struct figures {
	const char *id, *title;		/* the table is <id>, the chart <id>-chart */
	const char *y_label, *description;
	bool logarithmic;		/* both axes are */
	size_t drawn;			/* the chart shows this many of the first columns */
	struct page_column v[FIGURES_MAX + 1];
};

/* Reads the trend of each column into `out`. Returns how many figures are known in all; 0 if memory ran out. */
size_t figures_read(struct page *p, const struct figures *f, double bytes, struct trend out[FIGURES_MAX]);
void figures_show(struct page *p, const struct figures *f, const struct trend v[FIGURES_MAX]);

#define BARS_MAX 24

/* The points shown as bars: as many as can be told apart. */
struct bars {
	const struct point *v[BARS_MAX];
	size_t n;
};

/* Chooses all points, or if there are too many, evenly spaced ones with the first and the last among them. */
void bars_choose(const struct points *points, struct bars *out);

/* Names the chart's categories after the points. */
void bars_name(struct page *p, const struct bars *bars, struct chart *c);

/* Adds a stacked series. `y` has a number for each bar, is not copied and must outlive the chart. True if at least one
 * number is known (not NAN). */
bool bars_add(struct page *p, const struct bars *bars, struct chart *c, const char *label, const double *y);

#endif
