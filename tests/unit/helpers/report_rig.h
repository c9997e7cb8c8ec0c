/* SPDX-License-Identifier: BSD-2-Clause */
/* Folders of runs made by hand, and reports on them. */
#ifndef RAMPART_TESTS_UNIT_REPORT_RIG_H
#define RAMPART_TESTS_UNIT_REPORT_RIG_H

#include <stdint.h>

#include <jansson.h>

#include "loadgen/report/report.h"

#define REPORT_RIG_DIR "run"		/* the folder, below the one that report_rig_set_up makes and enters */

int report_rig_set_up(void **state);
int report_rig_tear_down(void **state);

/* A file of the run's folder, or of another. */
void report_rig_file(const char *dir, const char *name, const char *text);
void report_rig_run(const char *dir, const json_t *run);
/* <name>.hlog with as many samples from 1 to `count` times `unit_ns`. */
void report_rig_histogram(const char *dir, const char *name, unsigned count, uint64_t unit_ns);

/* Writes the run and makes its report, which must not fail. */
enum report_result report_rig_make(const json_t *run);
/* A file's text. Valid until the next call. */
const char *report_rig_read(const char *dir, const char *name);

/* Looks for a statement in a folder's report.html by its id (doc.h), and in it for figures, in their order, each as a
 * word of its own; NULL ends them. What stands around the figures is not looked at, so that it can be worded anew. */
void report_rig_look(const char *dir, const char *id, ...) __attribute__((sentinel));
/* The same in the report of `run`, which it makes. */
void report_rig_expect(const json_t *run, const char *id, ...) __attribute__((sentinel));
void report_rig_expect_none(const json_t *run, const char *id);

/* Some row of tables/<table>.csv has the text, which may be several cells. */
bool report_rig_has_row(const char *dir, const char *table, const char *row);
void report_rig_expect_row(const json_t *run, const char *table, const char *row);

#endif
