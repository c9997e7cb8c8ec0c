/* SPDX-License-Identifier: BSD-2-Clause */
/* What a suite came to, as suite.json has it (docs/suites.md). Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_RESULTS_H
#define RAMPART_LOADGEN_SUITE_RESULTS_H

#include <jansson.h>

/* The figures of suite.json of an array of steps of run.json: the median of each, null if no step has it. Those in
 * connect_stages are of the stages that the connections had. NULL when out of memory. */
json_t *suite_results_figures(const json_t *steps);

/* Adds to the entry `o` what a run says: folder, stop, environment, steps, and what of its verdict is no pass. `run` is
 * run.json, or NULL: then nothing is added. */
void suite_results_of_run(json_t *o, const json_t *run);

#endif
