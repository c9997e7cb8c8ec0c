/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA connections of a shard: verifies that a request belongs to a session, then takes a queue pair and accepts.
 * Owning thread: the shard's. docs/protocol.md, "RDMA connection".
 */
#ifndef RAMPART_SERVER_ACCEPT_H
#define RAMPART_SERVER_ACCEPT_H

struct async_event;
struct cm_event;

/* Handles an event of the connection manager, for the pump of `shard` (struct shard). */
void accept_on_cm_event(void *shard, const struct cm_event *e);
/* Handles an asynchronous event of a queue pair of `shard` (struct shard): an error, which ends its connection, or
 * "last WQE reached", after which the queue pair takes nothing more from the SRQ. */
void accept_on_qp_event(void *shard, const struct async_event *e);

#endif
