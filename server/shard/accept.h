/* RDMA connections of a shard: requests are verified against their session before anything is spent on them.
 * Owning thread: the shard's. docs/protocol.md, "RDMA connection".
 */
#ifndef RAMPART_SERVER_ACCEPT_H
#define RAMPART_SERVER_ACCEPT_H

struct cm_event;

/* An event of the connection manager, for the pump of `shard` (struct shard). */
void accept_on_cm_event(void *shard, const struct cm_event *e);

#endif
