/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of a report on a suite, made from suite.json. */
#ifndef RAMPART_LOADGEN_REPORT_SUITE_H
#define RAMPART_LOADGEN_REPORT_SUITE_H

#include "loadgen/report/sections/page.h"

/* All entries in tables that lead to their chapters. */
void section_suite_summary(struct page *p, const json_t *suite);
/* What is printed at the end: the summary; of a suite that is one comparison, what that came to. */
void section_suite_brief(struct page *p, const json_t *suite);
/* The chapter of an entry; `next` is the entry behind it, or NULL. */
void section_suite_entry(struct page *p, const json_t *entry, const json_t *next);

#endif
