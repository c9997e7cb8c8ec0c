/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows test cases on the page of a job of GitHub Actions: appends them to the file that GITHUB_STEP_SUMMARY names
 * (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands). Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_STEP_SUMMARY_H
#define RAMPART_LOADGEN_REPORT_STEP_SUMMARY_H

#include "loadgen/report/cases/cases.h"

#define STEP_SUMMARY_VARIABLE "GITHUB_STEP_SUMMARY"

/* Appends a summary in Markdown. `folder` is where the results are, NULL: nowhere. Does nothing without
 * the variable. An error is only logged, as a warning. */
void step_summary_append(const struct cases *c, const char *folder);

#endif
