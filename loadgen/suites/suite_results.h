/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a suite, as suite.json has them (docs/suites.md). Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_RESULTS_H
#define RAMPART_LOADGEN_SUITE_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

/* True if steps of suite.json have a figure of this name. */
bool suite_results_has_figure(const char *name);

/* The figures of suite.json for an array of steps of run.json: the median of each figure, null if no step has it.
 * connect_stages has the stages of connecting. NULL when out of memory. */
json_t *suite_results_figures(const json_t *steps);

/* Adds the results of a run to the entry `o`: folder, stop, environment, steps, and the criteria that did not pass.
 * `run` is run.json; if it is NULL, nothing is added. */
void suite_results_of_run(json_t *o, const json_t *run);

#endif
