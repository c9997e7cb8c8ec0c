/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` notes of the machine around the devices. */
#ifndef RAMPART_LOADGEN_DOCTOR_MACHINE_H
#define RAMPART_LOADGEN_DOCTOR_MACHINE_H

#include "loadgen/doctor/base/finding.h"

/* Of the machine whose files are below `root`; "": this one. */
void machine_check(const char *root, struct findings *out);

#endif
