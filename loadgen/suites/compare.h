/* SPDX-License-Identifier: BSD-2-Clause */
/* --compare and --compare-set: the same run with different settings, interleaved, and a table of what each alternative is
 * worth. Owning thread: main. */
#ifndef RAMPART_LOADGEN_COMPARE_H
#define RAMPART_LOADGEN_COMPARE_H

#include <jansson.h>

#include "loadgen/suites/alternatives.h"
#include "loadgen/run/run.h"

/* Runs all alternatives in turn, for as many rounds as they say, each round in the opposite order. Writes
 * compare.json and each run's folder into a results folder of its own, and prints the table. The exit status is that of the
 * last run. With `out` nothing is printed, and compare.json's contents go there, the caller's reference; NULL if no round was
 * complete. */
enum run_exit compare_run(struct alternatives *a, const struct loadgen_config *base, int argc, char **argv, json_t **out);

#endif
