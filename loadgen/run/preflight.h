/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be known before anything is started. */
#ifndef RAMPART_LOADGEN_PREFLIGHT_H
#define RAMPART_LOADGEN_PREFLIGHT_H

#include "loadgen/config/config.h"

/* Whether descriptors, files and devices allow the run; raises the limits of open files and locked memory as far as they go. 0,
 * or -errno after a line in the log that says what is missing. */
int preflight_check(const struct loadgen_config *c) __attribute__((warn_unused_result));

#endif
