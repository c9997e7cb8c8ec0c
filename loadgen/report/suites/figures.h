/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of suite.json in tables and charts. `steps` is an array of either an entry's steps or a comparison's
 * alternatives; it may be damaged or hostile. */
#ifndef RAMPART_LOADGEN_REPORT_FIGURES_H
#define RAMPART_LOADGEN_REPORT_FIGURES_H

#include "loadgen/report/sections/page.h"

/* A curve or table shows at most this many steps; the rest are left out. */
#define FIGURES_STEPS_MAX 512u

/* True if one of the steps has the figure. */
bool figures_are_known(const json_t *steps, const char *name);
/* Number of different values of a figure, in steps that are sorted by it. */
size_t figures_count_distinct(const json_t *steps, const char *name);
/* Adds to a chart a curve of one figure (its path) over another (`x_name`). Adds none if no step has the figure. */
void figures_curve(struct page *p, struct chart *c, const json_t *steps, const char *x_name,
		   const struct page_column *curve);
/* Adds a table with a row for each of the first `max` steps, and a column for each figure that a step has. */
void figures_table(struct page *p, const char *name, const char *caption, const json_t *steps, size_t max);

#endif
