/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on several runs: report.html, report.md, tables/ and charts/ of a folder with suite.json, a chapter for each
 * entry. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_SUITE_REPORT_H
#define RAMPART_LOADGEN_REPORT_SUITE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loadgen/report/report.h"

/* True if the folder is that of a suite, and not that of a run. */
bool suite_report_is_for(const char *dir);

/* Makes the report into the folder, or into o->output; o->out gets it in o->format. 0, or -errno with a line in `err`. */
int suite_report_make(const struct report_options *o, char *err, size_t err_size) __attribute__((warn_unused_result));

/* The report of a suite that has just ended, into its folder. As suite_report_make. */
int suite_report_write(const char *dir, char *err, size_t err_size) __attribute__((warn_unused_result));

/* The end of a suite, `suite` being its suite.json in the folder `dir`: with `show` prints what it came to, in short or
 * with `details` as its report does, and with `report` makes that. 0, or what suite_report_make returned. */
int suite_report_end(const json_t *suite, const char *dir, bool show, bool details, bool report)
	__attribute__((warn_unused_result));

#endif
