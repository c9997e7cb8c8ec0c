/* Points side by side as bars: one for each number of clients and size, as many as can be told apart. */
#ifndef RAMPART_LOADGEN_REPORT_BARS_H
#define RAMPART_LOADGEN_REPORT_BARS_H

#include "loadgen/report/sections/page.h"

#define BARS_MAX 24

struct bars {
	const struct point *v[BARS_MAX];
	size_t n;
};

/* All points, or as many as there is room for, evenly, the first and the last among them. */
void bars_choose(const struct points *points, struct bars *out);

/* Names the chart's categories after them. */
void bars_name(struct page *p, const struct bars *bars, struct chart *c);

/* Adds a stacked series: n numbers, from `value`. True if one of them is known. */
typedef double bars_value_fn(const struct point *at, const void *arg);
bool bars_add(struct page *p, const struct bars *bars, struct chart *c, const char *label, bars_value_fn *value,
	      const void *arg);

#endif
