/* What a run leaves: run.json, the table and the verdict for people. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_H
#define RAMPART_LOADGEN_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "loadgen/ramp.h"

/* The whole of run.json (docs/results.md); `argc` and `argv` as main got them. NULL when out of memory. */
json_t *report_run_json(const struct ramp *r, int argc, char **argv, int exit_status);

/* A step as a row of the table. */
json_t *report_row(const struct step *s);

/* The table of steps, the verdict with its environment, and where the results are. */
void report_print(const struct ramp *r, const json_t *run, FILE *out);

#endif
