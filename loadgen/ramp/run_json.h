/* run.json, which has everything a run measured (docs/results.md). Owning thread: main. */
#ifndef RAMPART_LOADGEN_RUN_JSON_H
#define RAMPART_LOADGEN_RUN_JSON_H

#include <jansson.h>

#include "loadgen/ramp/ramp.h"

/* The whole of it; `argc` and `argv` as main got them. NULL when out of memory. */
json_t *run_json(const struct ramp *r, int argc, char **argv, int exit_status);

/* A step as a row of the summary's table. */
json_t *run_json_row(const struct step *s);

#endif
