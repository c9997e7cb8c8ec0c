/* SPDX-License-Identifier: BSD-2-Clause */
/* How this host's clock stands to the leader's: round trips over the store, of one host at a time. Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_CLOCK_H
#define RAMPART_LOADGEN_CLUSTER_CLOCK_H

#include "loadgen/cluster/cluster_core.h"

void cluster_clock_init(struct cluster *c);
/* This host leads: its clock is the run's, and it answers the others. 0 or -ENOMEM. */
int cluster_clock_lead(struct cluster *c) __attribute__((warn_unused_result));
void cluster_clock_free(struct cluster *c);

/* Leader: the host of this rank asks; both may be anything. */
void cluster_on_question(struct cluster *c, uint32_t rank, const struct etcd_entry *e);

#endif
