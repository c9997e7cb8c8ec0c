/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the suite of --suite and the entries of --only. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_FIND_H
#define RAMPART_LOADGEN_SUITE_FIND_H

#include <stddef.h>

#include "loadgen/suites/suite_file.h"

/* Reads `--suite WHAT`: a file if WHAT has a slash or ends with .json; else the shipped suite of that name, or for
 * "all" the suites of a full run. Returns 0, or -errno with a line in `err`. Call suite_free also after an error. */
int suite_read(const char *what, const char *only, int argc, char **argv, struct suite **out, char *err,
	       size_t err_size)
	__attribute__((warn_unused_result));

#endif
