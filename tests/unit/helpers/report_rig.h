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

/* The report as text on one line, words apart by one space. Valid until the next call. */
const char *report_rig_text(const struct report_options *o);
/* What the last one returned, its warnings and its error. */
enum report_result report_rig_result(void);
const char *report_rig_error(void);
const char *report_rig_warnings(void);

/* Writes `run`, makes its report, and looks for `sentence` in it. */
void report_rig_expect(const json_t *run, const char *sentence);
void report_rig_expect_not(const json_t *run, const char *sentence);

#endif
