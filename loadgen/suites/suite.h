/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a suite: its entries one after the other, each as a run (or a comparison) of its own below the suite's folder,
 * with one server for those that follow each other and whose settings allow it. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_H
#define RAMPART_LOADGEN_SUITE_H

#include "loadgen/run/run.h"
#include "loadgen/suites/suite_plan.h"

/* Runs all entries, whatever becomes of them, unless it is interrupted. Writes suite.json and the report, and prints
 * the summary. Returns the worst exit status: interrupted, environment, criterion, inconclusive, all met; an entry that
 * was skipped is inconclusive. `base` is the command line's configuration. */
enum run_exit suite_run(struct suite *s, const struct loadgen_config *base, int argc, char **argv);

#endif
