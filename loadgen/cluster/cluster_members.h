/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what the rules of members.h want (joining, the seal, losses), and hands the changes of the store to them; from the seal on,
 * watches what the other hosts write for this one. Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_CLUSTER_MEMBERS_H
#define RAMPART_LOADGEN_CLUSTER_CLUSTER_MEMBERS_H

#include "loadgen/cluster/cluster_core.h"

/* Begins to join. */
void cluster_members_watch(struct cluster *c);
/* The wait for hosts is over: says how many were refused, if not all of them are named in the log. */
void cluster_log_refused(const struct cluster *c);

#endif
