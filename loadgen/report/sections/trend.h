/* A figure against the number of clients: one array for chart, table and sentence alike. Kept by the page. */
#ifndef RAMPART_LOADGEN_REPORT_TREND_H
#define RAMPART_LOADGEN_REPORT_TREND_H

#include "loadgen/report/sections/page.h"

struct trend {
	double *x, *y, *low, *high;	/* clients; the figure and its range or interval, NAN where there is none */
	size_t n;			/* points of that size; 0 also when memory ran out */
	size_t known;			/* with a figure */
	size_t first, last;		/* of those; 0 when there are none */
};

/* Of all points with messages of `bytes`. */
struct trend trend_throughput(struct page *p, const struct points *points, double bytes);
/* In us. `which` is connect, response or service. */
struct trend trend_percentile_us(struct page *p, const struct points *points, struct source *source, double bytes,
				 const char *which, double percentile);
/* The figure at a path of the steps, multiplied by `scale`. */
struct trend trend_figure(struct page *p, const struct points *points, double bytes, const char *path, double scale);

/* What `figure` makes of each step. */
struct trend trend_computed(struct page *p, const struct points *points, double bytes, point_figure_fn *figure,
			    const void *arg);

/* Adds it to the chart, with its ranges where it has any; nothing where no figure is known. */
void trend_draw(struct chart *c, const struct trend *v, const char *label);
/* The same in the background. */
void trend_draw_dim(struct chart *c, const struct trend *v, const char *label);

/* The index of a number of clients; v->n where it is not in it. */
size_t trend_at(const struct trend *v, double clients);
/* The index of the highest figure; 0 when none is known. */
size_t trend_top(const struct trend *v);

/* True where clients span so much that a logarithmic axis shows them better. */
bool trend_wants_log(const struct points *points);

#endif
