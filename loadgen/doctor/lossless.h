/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` looks at of what keeps RoCE from losing packets: DSCP, pause frames, PFC. */
#ifndef RAMPART_LOADGEN_DOCTOR_LOSSLESS_H
#define RAMPART_LOADGEN_DOCTOR_LOSSLESS_H

#include "loadgen/doctor/base/finding.h"

/* Of the devices whose files are below `root`; drivers are asked on this machine (base/driver.h). */
void lossless_check(const char *root, struct findings *out);

#endif
