/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the plan of a finished run with the resources that it used. Owning thread: main. */
#ifndef RAMPART_LOADGEN_PLANNED_H
#define RAMPART_LOADGEN_PLANNED_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/plan/plan_hosts.h"

/* Examines this machine before a run. False, with nothing to free: there is no plan, because the run has several load
 * hosts or servers, or this machine could not be examined. */
bool planned_look(const struct loadgen_config *cfg, struct hosts *out) __attribute__((warn_unused_result));

/* `plan` of run.json (docs/results.md) for the most clients that a step of `run` had connected. `info` is the server's
 * INFO, or NULL. null if no client connected, or a server that was running sent no report. NULL when out of memory. */
json_t *planned_json(struct hosts *before, json_t *info, const json_t *run);

#endif
