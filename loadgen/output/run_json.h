/* SPDX-License-Identifier: BSD-2-Clause */
/* run.json, which has everything a run measured (docs/results.md). Owning thread: main. */
#ifndef RAMPART_LOADGEN_RUN_JSON_H
#define RAMPART_LOADGEN_RUN_JSON_H

#include <jansson.h>

#include "loadgen/output/outcome.h"

struct results;

/* Makes run.json. `argc` and `argv` are those of main. NULL when out of memory. */
json_t *run_json(const struct outcome *oc, const struct results *results, int argc, char **argv, int exit_status);

#endif
