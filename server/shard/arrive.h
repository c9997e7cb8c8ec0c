/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP connections of clients that were granted one (--transports tcp), from the accept until they have shown whose they are.
 * Until then they are strangers: a shard has room for --max-handshakes of them, and where there is none, the oldest of the
 * address that has most, the newcomer counted, makes room. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_ARRIVE_H
#define RAMPART_SERVER_ARRIVE_H

#include <stddef.h>

struct shard;

/* Room, and a listening socket beside the RDMA listener, on its port's number if --rdma-port chose one. 0 or -errno, with a
 * line in `err`. */
int arrive_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void arrive_start(struct shard *s);
/* Nobody arrives any more; those who have shown nothing yet are closed. May be called twice. */
void arrive_close(struct shard *s);
/* Frees the room. */
void arrive_free(struct shard *s);

#endif
