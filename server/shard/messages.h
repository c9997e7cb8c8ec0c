/* The data path of a shard: checks and answers clients' messages. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_MESSAGES_H
#define RAMPART_SERVER_MESSAGES_H

#include <infiniband/verbs.h>

/* A completion of the endpoint of `shard` (struct shard). */
void messages_on_wc(void *shard, const struct ibv_wc *wc);

#endif
