/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of suite.json, those of an entry's steps and of a comparison's alternatives alike, in tables and charts.
 * `steps` is an array of either, which may be damaged or hostile. */
#ifndef RAMPART_LOADGEN_REPORT_FIGURES_H
#define RAMPART_LOADGEN_REPORT_FIGURES_H

#include "loadgen/report/sections/page.h"

/* Steps of a curve or table; the others are not shown. */
#define FIGURES_STEPS_MAX 512u

/* True if one of the steps has the figure. */
bool figures_are_known(const json_t *steps, const char *name);
/* How often the figure changes from one step to the next, and once if there is one. */
size_t figures_count_distinct(const json_t *steps, const char *name);
/* Adds a curve of a figure (`path`, which no step needs to have) over another (`x_name`) to a chart. */
void figures_curve(struct page *p, struct chart *c, const json_t *steps, const char *x_name,
		   const struct page_column *curve);
/* A row for each of the first `max` steps, a column for each figure that one of them has. */
void figures_table(struct page *p, const char *name, const char *caption, const json_t *steps, size_t max);

#endif
