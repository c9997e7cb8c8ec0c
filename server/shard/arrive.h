/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP connections of clients that were granted one (--transports tcp), from the accept until they prove which session
 * they belong to. A shard has room for --max-handshakes of these connections; one more evicts the oldest of the
 * address that has the most, counting the new one. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_ARRIVE_H
#define RAMPART_SERVER_ARRIVE_H

#include <stddef.h>

struct shard;

/* Allocates the slots and opens a listening socket, on the RDMA listener's port number if --rdma-port chose one. 0 or
 * -errno, with a line in `err`. */
int arrive_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void arrive_start(struct shard *s);
/* Stops accepting, and closes the connections that have not proved their session. May be called twice. */
void arrive_close(struct shard *s);
/* Frees the slots. */
void arrive_free(struct shard *s);

#endif
