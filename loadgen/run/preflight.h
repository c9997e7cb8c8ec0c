/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks, before a run starts anything, whether this machine has what the run needs. */
#ifndef RAMPART_LOADGEN_PREFLIGHT_H
#define RAMPART_LOADGEN_PREFLIGHT_H

#include "loadgen/config/config.h"

/* Raises the limits of open files and locked memory to their maximum, and checks that descriptors, files and devices
 * suffice for the run. Returns 0, or -errno after logging what is missing. */
int preflight_check(const struct loadgen_config *c) __attribute__((warn_unused_result));

#endif
