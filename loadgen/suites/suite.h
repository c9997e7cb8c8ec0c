/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the entries of a suite one after the other, each as a run (or a comparison) of its own below the suite's folder.
 * Successive entries share a server if their settings allow it. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_H
#define RAMPART_LOADGEN_SUITE_H

#include "loadgen/run/run.h"
#include "loadgen/suites/suite_file.h"

/* Runs all entries, even if some fail, until interrupted or until the team of load hosts ends. Writes suite.json and
 * the report, and prints the summary. Returns the worst exit status, from the worst: interrupted, environment,
 * criterion, inconclusive, all met. A skipped entry is inconclusive. `base` is the command line's configuration. */
enum run_exit suite_run(struct suite *s, const struct loadgen_config *base, int argc, char **argv);

#endif
