/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` checks of RDMA devices, their network interfaces and their device files. */
#ifndef RAMPART_LOADGEN_DOCTOR_DEVICES_H
#define RAMPART_LOADGEN_DOCTOR_DEVICES_H

#include "loadgen/doctor/base/finding.h"

/* Adds what there is to say of what is below `root` ("" is this machine). */
void devices_check(const char *root, struct findings *out);

#endif
