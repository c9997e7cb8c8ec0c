/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on a suite: report.html, report.md, tables/ and charts/ made from a folder with suite.json, with a chapter
 * for each entry. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_SUITE_REPORT_H
#define RAMPART_LOADGEN_REPORT_SUITE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loadgen/report/report.h"

/* True if the folder holds a suite rather than a run. */
bool suite_report_is_for(const char *dir);

/* Writes the report to the folder, or to o->output, and in o->format to o->out. Returns 0, or -errno with a line in
 * `err`. */
int suite_report_make(const struct report_options *o, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Writes the report of a suite that has just ended to its folder. Returns the same as suite_report_make. */
int suite_report_write(const char *dir, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Ends a suite; `suite` is the suite.json of the folder `dir`. With `show` its results are printed, in short or with
 * `details` as the whole report. With `report` the report is written. Returns 0, or suite_report_make's error. */
int suite_report_end(const json_t *suite, const char *dir, bool show, bool details, bool report)
	__attribute__((warn_unused_result));

#endif
