/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test plan`: what the run of a command line would need, said before it is made. No client is connected.
 * Not `report --plan`, which says from a run's figures how many servers a number of clients takes. */
#ifndef RAMPART_LOADGEN_PLAN_COMMAND_H
#define RAMPART_LOADGEN_PLAN_COMMAND_H

#include "loadgen/config/config.h"

/* After loadgen_config_check and workloads_apply, on the machine where the run would be. Prints to stdout. Returns the exit
 * status: 0 the clients fit, 1 they do not, 3 it cannot be known or written. */
int estimate_command(const struct loadgen_config *cfg);

#endif
