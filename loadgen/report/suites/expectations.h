/* SPDX-License-Identifier: BSD-2-Clause */
/* Expectations of a suite's entries beside what was measured, from suite.json, which may be damaged or hostile. */
#ifndef RAMPART_LOADGEN_REPORT_EXPECTATIONS_H
#define RAMPART_LOADGEN_REPORT_EXPECTATIONS_H

#include "loadgen/report/sections/page.h"

/* Adds a table with the expectations of all entries; none if no entry has any. */
void expectations_summary(struct page *p, const json_t *entries);
/* The same for one entry, with the source of each. `id` is the entry's. */
void expectations_of_entry(struct page *p, const char *id, const json_t *entry);

/* An element of an entry's `expectations` in words: "at most 90 % of the first alternative", "4.5 us (85 % of 5.3 us)",
 * "unknown: the figure is not known". */
const char *expectations_wanted(struct page *p, const json_t *row);
const char *expectations_measured(struct page *p, const json_t *row);
const char *expectations_verdict(struct page *p, const json_t *row);

#endif
