/* SPDX-License-Identifier: BSD-2-Clause */
/* What a suite came to, as suite.json has it (docs/suites.md). Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_RESULTS_H
#define RAMPART_LOADGEN_SUITE_RESULTS_H

#include <jansson.h>

/* Adds to the entry `o` what a run says: folder, stop, environment, steps, and what of its verdict is no pass. `run` is
 * run.json, or NULL: then nothing is added. */
void suite_results_of_run(json_t *o, const json_t *run);

#endif
