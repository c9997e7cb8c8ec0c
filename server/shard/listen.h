/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard's listeners: the TLS socket that clients are accepted from, and the RDMA port they are sent to.
 *
 * Every socket is accepted at once and judged by its address: only accepting shows who comes. Who cannot be let in waits in
 * a bounded list. Its order is that of the addresses with the fewest TLS connections, so nobody can be in front of an
 * address that has less. When the list is full, the address that has most in it loses the socket that came last.
 *
 * Opened by the thread that starts the server; from listen_start on the shard's thread owns them.
 */
#ifndef RAMPART_SERVER_LISTEN_H
#define RAMPART_SERVER_LISTEN_H

#include <stddef.h>
#include <stdint.h>

struct shard;
struct waiting;

/* Binds the shard's RDMA port and TLS socket. If the system is to choose the TLS port, the first shard of all decides
 * it. 0 or -errno, with a line in `err`. */
int listen_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Memory for the sockets that wait, all of it in the list of free ones; the caller frees it. NULL: out of memory. */
struct waiting *listen_make_waiting(struct shard *s);
/* Starts accepting. */
void listen_start(struct shard *s);
/* At the end of a turn: lets in who waits if there is room, or if room can be made; accepts again if that was paused and
 * its time has come. */
void listen_resume(struct shard *s);
/* Time until listen_resume should be called, in ns from `now_ns`; UINT64_MAX: nobody waits. */
uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns);
/* Stops accepting TLS connections for good. May be called twice. */
void listen_close(struct shard *s);

#endif
