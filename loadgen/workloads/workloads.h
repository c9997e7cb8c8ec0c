/* SPDX-License-Identifier: BSD-2-Clause */
/* The workloads, and the parts of a run's configuration that depend on the chosen one.
 *
 * To add a workload, write its file here and add its name to LOADGEN_WORKLOADS (loadgen/config/config.h).
 */
#ifndef RAMPART_LOADGEN_WORKLOADS_H
#define RAMPART_LOADGEN_WORKLOADS_H

#include <stddef.h>

#include "loadgen/config/config.h"
#include "loadgen/traffic/workload.h"

#define X(name) extern const struct workload workload_##name;
LOADGEN_WORKLOADS(X)
#undef X

/* Sets the workload, fills in its defaults, and checks the options that depend on it. Call after loadgen_config_check.
 * 0, or -EINVAL with a line in `err`. */
int workloads_apply(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
