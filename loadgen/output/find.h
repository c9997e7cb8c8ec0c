/* SPDX-License-Identifier: BSD-2-Clause */
/* The capacities of run.json, found in a run's steps, and the verdict of a search for them. Owning thread: main. */
#ifndef RAMPART_LOADGEN_FIND_H
#define RAMPART_LOADGEN_FIND_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/output/outcome.h"

/* The hard_failure of the step at the breaking point, borrowed; NULL when nothing broke. */
const json_t *find_breaking(const struct outcome *oc);

/* Adds the verdict of a search: whether it found a capacity or rate. */
void find_add_verdict(struct outcome *oc);

/* analysis.offered_load.slo_rate of run.json; null unless the run searched for a rate. NULL when out of memory. */
json_t *find_rate_json(const struct outcome *oc);

/* analysis.capacity of run.json (docs/results.md), for searches and ramps. NULL when out of memory. */
json_t *find_json(const struct outcome *oc);

/* Names the load hosts that were saturated at `number` clients (--find-rate: operations a second): "load2 had no more
 * to give: add hosts". "" if no host was saturated, or if there is only one. */
const char *find_hosts_at_limit(const struct outcome *oc, double number, char *text, size_t size);

#endif
