/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes test cases of the verdict of a run and of the entries of a suite. No I/O; owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_RUN_CASES_H
#define RAMPART_LOADGEN_REPORT_RUN_CASES_H

#include "loadgen/report/cases/cases.h"

/* Adds a case for each criterion of `run` (the content of run.json, whose exit status is known), and one for an error
 * that ended the run early or cost it a file. `of`, unless NULL, precedes the name of each group. */
void run_cases_add(struct cases *c, const char *of, const json_t *run);

/* Adds a case for each expectation of an entry of suite.json, whose runs were added before. If no run added a
 * case, one says why. */
void run_cases_add_entry(struct cases *c, const json_t *entry);

#endif
