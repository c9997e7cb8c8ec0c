/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the comparison of an entry of a suite: a run with different settings, which take turns. Owning thread: main. */
#ifndef RAMPART_LOADGEN_COMPARE_H
#define RAMPART_LOADGEN_COMPARE_H

#include <jansson.h>

#include "loadgen/suites/alternatives.h"
#include "loadgen/report/cases/cases.h"
#include "loadgen/run/run.h"

/* Runs all alternatives in turn, for a->rounds rounds; the order is reversed from round to round. The runs' folders are
 * made in `output`; their names are `prefix` with the round and the number of the alternative. Returns the worst
 * exit status of all runs. The test cases of all runs are added to `cases`. *out is set to the `comparison` of
 * suite.json, a reference that the caller owns; NULL if no round was complete. */
enum run_exit compare_run(struct alternatives *a, const char *output, const char *prefix, int argc, char **argv,
			  struct cases *cases, json_t **out);

#endif
