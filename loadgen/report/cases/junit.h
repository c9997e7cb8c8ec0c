/* SPDX-License-Identifier: BSD-2-Clause */
/* Test cases as a JUnit file (--junit), which most CI systems read. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_JUNIT_H
#define RAMPART_LOADGEN_REPORT_JUNIT_H

#include "loadgen/report/cases/cases.h"

/* Writes the file as path_write does. Returns 0, also if `path` is NULL; or -errno after logging that it could not. */
int junit_write(const struct cases *c, const char *path) __attribute__((warn_unused_result));

#endif
