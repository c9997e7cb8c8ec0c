/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the `comparison` of an entry of suite.json in a report. The file may be damaged or hostile. */
#ifndef RAMPART_LOADGEN_REPORT_COMPARISON_H
#define RAMPART_LOADGEN_REPORT_COMPARISON_H

#include "loadgen/report/sections/page.h"

/* Counts the figures that are better and worse than the baseline's, and all figures. */
void comparison_verdicts(const json_t *comparison, size_t *better, size_t *worse, size_t *all);
/* Adds the answer that a chapter begins with. */
void comparison_answer(struct page *p, const json_t *comparison);
/* Adds charts and tables, whose names begin with `id`. */
void comparison_show(struct page *p, const char *id, const json_t *comparison);
/* Adds the short form: statements, and a row for each candidate at each point. */
void comparison_brief(struct page *p, const json_t *comparison);

#endif
