/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` checks of a process' limits. */
#ifndef RAMPART_LOADGEN_DOCTOR_PROCESS_H
#define RAMPART_LOADGEN_DOCTOR_PROCESS_H

#include <stdbool.h>

#include <sys/resource.h>

#include "loadgen/doctor/base/finding.h"

struct process_limits {
	struct rlimit memlock, nofile;
	bool may_lock;		/* CAP_IPC_LOCK: memlock does not apply */
};

/* Those of this process. 0 or the -errno of getrlimit(2). */
int process_limits_read(struct process_limits *out) __attribute__((warn_unused_result));
void process_check(const struct process_limits *l, struct findings *out);

#endif
