/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` looks at of memory: huge pages, and the NUMA nodes of machine and devices. */
#ifndef RAMPART_LOADGEN_DOCTOR_MEMORY_H
#define RAMPART_LOADGEN_DOCTOR_MEMORY_H

#include "loadgen/doctor/base/finding.h"

/* Of the machine whose files are below `root`; which CPUs may be run on is that of this thread. */
void memory_check(const char *root, struct findings *out);

#endif
