/* SPDX-License-Identifier: BSD-2-Clause */
/* The comparison of a suite's entry: the same run with different settings, interleaved, and what each alternative is
 * worth. Owning thread: main. */
#ifndef RAMPART_LOADGEN_COMPARE_H
#define RAMPART_LOADGEN_COMPARE_H

#include <jansson.h>

#include "loadgen/suites/alternatives.h"
#include "loadgen/run/run.h"

/* Runs all alternatives in turn, for as many rounds as they say, each round in the opposite order. The runs' folders
 * are made in `output`; their names are `prefix` with the round and the number of the alternative. Returns the exit
 * status of the last run. The `comparison` of suite.json goes to *out, the caller's reference; NULL if no round was
 * complete. */
enum run_exit compare_run(struct alternatives *a, const char *output, const char *prefix, int argc, char **argv,
			  json_t **out);

#endif
