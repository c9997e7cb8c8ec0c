/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run's steps came to: the capacities of run.json, and the verdict of a search for them. Owning thread: main. */
#ifndef RAMPART_LOADGEN_FIND_H
#define RAMPART_LOADGEN_FIND_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/output/outcome.h"

/* The hard_failure of the step at the breaking point, borrowed; NULL when nothing broke. */
const json_t *find_breaking(const struct outcome *oc);

/* Adds the verdict of a search: whether it found what was looked for. */
void find_add_verdict(struct outcome *oc);

/* analysis.offered_load.slo_rate of run.json: of a search for a rate, else null. NULL when out of memory. */
json_t *find_rate_json(const struct outcome *oc);

/* analysis.capacity of run.json (docs/results.md), of a ramp too. NULL when out of memory. */
json_t *find_json(const struct outcome *oc);

/* Of a run on several hosts: those that had no more to give with `number` clients, or operations a second, as in
 * "load2 had no more to give: add hosts"; else "". */
const char *find_hosts_at_limit(const struct outcome *oc, double number, char *text, size_t size);

#endif
