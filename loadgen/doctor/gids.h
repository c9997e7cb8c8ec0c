/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` checks of a port's GIDs: which addresses they are, and of which type. */
#ifndef RAMPART_LOADGEN_DOCTOR_GIDS_H
#define RAMPART_LOADGEN_DOCTOR_GIDS_H

#include "loadgen/doctor/base/finding.h"
#include "loadgen/doctor/base/ports.h"

void gids_check(const char *root, const struct rdma_port *p, struct findings *out);

#endif
