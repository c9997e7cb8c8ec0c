/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of a report on a suite, made from suite.json. */
#ifndef RAMPART_LOADGEN_REPORT_SUITE_H
#define RAMPART_LOADGEN_REPORT_SUITE_H

#include "loadgen/report/sections/page.h"

/* Tables of all entries, with links to their chapters. */
void section_suite_summary(struct page *p, const json_t *suite);
/* The short form that a run of the suite prints: the summary, or if the suite is a single comparison, its result. */
void section_suite_brief(struct page *p, const json_t *suite);
/* The chapter of an entry. `next` is the entry after it, to which the chapter links; NULL: none. */
void section_suite_entry(struct page *p, const json_t *entry, const json_t *next);

#endif
