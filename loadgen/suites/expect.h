/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges the expectations of a suite's entry against its figures (docs/suites.md, "Expectations"). Pure. */
#ifndef RAMPART_LOADGEN_EXPECT_H
#define RAMPART_LOADGEN_EXPECT_H

#include <jansson.h>

#include "loadgen/run/run.h"

/* The entry's `expectations` of suite.json: for each expectation of `expect` (expect_check) a row for each step, or
 * point of a comparison, that it is about. `entry` is the entry of suite.json, `entries` those before it.
 * `line_bytes_per_s` is NAN if it is not known. `excuse` says why expectations of hardware are not judged; NULL:
 * they are judged. NULL when out of memory. */
json_t *expect_judge(const json_t *expect, const json_t *entry, const json_t *entries, double line_bytes_per_s,
		     const char *excuse);

/* EXIT_CRITERION if one was missed, else EXIT_INCONCLUSIVE if one is unknown, else EXIT_OK. */
enum run_exit expect_status(const json_t *rows);

#endif
