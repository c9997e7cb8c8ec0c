/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs all steps one after the other, each through its phases. Owning thread: main. */
#ifndef RAMPART_LOADGEN_RAMP_H
#define RAMPART_LOADGEN_RAMP_H

#include <stddef.h>

#include "loadgen/output/outcome.h"

struct results;

/* Runs all steps that `oc` is configured for, writing files to the results folder. `oc` was set up by outcome_init, and
 * gets the results. Returns 0, or -errno with a line in `err` if the run could not start. */
int ramp_run(struct outcome *oc, struct results *results, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
