/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test plan`: predicts what a run with given options would need. (`report --plan`
 * instead computes from the figures of a run how many servers a number of clients needs.) */
#ifndef RAMPART_LOADGEN_PLAN_COMMAND_H
#define RAMPART_LOADGEN_PLAN_COMMAND_H

#include <jansson.h>

#include "loadgen/config/config.h"

/* Call it after loadgen_config_check and workloads_apply, on the machine of the planned run. CPU times are those of
 * `run`, the run.json of a run with these options; NULL: those of the run in the folder cfg->from, if there is one.
 * Prints to stdout. Returns the exit status: 0 the clients fit, 1 they do not, 3 unknown, or not written. */
int estimate_command(const struct loadgen_config *cfg, const json_t *run);

#endif
