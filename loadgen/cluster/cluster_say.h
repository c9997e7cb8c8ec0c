/* SPDX-License-Identifier: BSD-2-Clause */
/* The latest words of hosts, for live progress: best effort, a newer one takes the place of one that nobody saw. Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_SAY_H
#define RAMPART_LOADGEN_CLUSTER_SAY_H

#include "loadgen/cluster/cluster_core.h"

/* The host of this rank said something; both may be anything. */
void cluster_on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e);

#endif
