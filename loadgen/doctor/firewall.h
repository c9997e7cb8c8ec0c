/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` checks of packet filters: whether they let in what RDMA and its clients need. */
#ifndef RAMPART_LOADGEN_DOCTOR_FIREWALL_H
#define RAMPART_LOADGEN_DOCTOR_FIREWALL_H

#include "loadgen/doctor/base/finding.h"

/* Of the machine whose files are below `root`; rules are those that programs print here (base/run.h). */
void firewall_check(const char *root, struct findings *out);

#endif
