/* SPDX-License-Identifier: BSD-2-Clause */
/* What a report says of a comparison: the `comparison` of an entry of suite.json, which may be damaged or hostile. */
#ifndef RAMPART_LOADGEN_REPORT_COMPARISON_H
#define RAMPART_LOADGEN_REPORT_COMPARISON_H

#include "loadgen/report/sections/page.h"

/* How many of its figures are better and worse than the baseline's, of how many. */
void comparison_verdicts(const json_t *comparison, size_t *better, size_t *worse, size_t *all);
/* The answer that a chapter begins with. */
void comparison_answer(struct page *p, const json_t *comparison);
/* Curves and tables; names of charts and tables begin with `id`. */
void comparison_show(struct page *p, const char *id, const json_t *comparison);
/* What is to know of it, and a row for each candidate at each point. */
void comparison_brief(struct page *p, const json_t *comparison);

#endif
