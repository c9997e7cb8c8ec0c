/* SPDX-License-Identifier: BSD-2-Clause */
/* Where hosts wait for each other: arrivals at barriers, with notes for the leader, and the leader's word to go on. What is called here
 * by the watches may be hostile. Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_GATES_H
#define RAMPART_LOADGEN_CLUSTER_GATES_H

#include "loadgen/cluster/cluster_core.h"

/* Leader: a key below "up/at/" or "up/part/"; `rest` is what stands behind that. */
void cluster_on_arrival(struct cluster *c, const char *rest, const struct etcd_entry *e);
void cluster_on_part(struct cluster *c, const char *rest, const struct etcd_entry *e);
/* Leader: puts out the hosts that have not arrived. */
void cluster_put_out_late(struct cluster *c, const char *barrier, const char *why);
/* Leader: reports barriers at which everybody is. To be called after losses too. */
void cluster_look_at_barriers(struct cluster *c);

/* Member: the leader let `barrier` go. */
void cluster_on_go(struct cluster *c, const char *barrier, const struct etcd_entry *e);

#endif
