/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` checks of the kernel's modules for RDMA. */
#ifndef RAMPART_LOADGEN_DOCTOR_MODULES_H
#define RAMPART_LOADGEN_DOCTOR_MODULES_H

#include "loadgen/doctor/base/finding.h"

/* Of the machine whose files are below `root`; "": this one. */
void modules_check(const char *root, struct findings *out);

#endif
