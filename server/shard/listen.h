/* A shard's listeners: the TLS socket that clients are accepted from, and the RDMA port they are sent to.
 *
 * Opened by the thread that starts the server; from listen_start on the shard's thread owns them.
 */
#ifndef RAMPART_SERVER_LISTEN_H
#define RAMPART_SERVER_LISTEN_H

#include <stddef.h>
#include <stdint.h>

struct shard;

/* Binds the shard's RDMA port and TLS socket; the first shard of all decides the TLS port if the system chooses. 0 or
 * -errno, with a line in `err`. */
int listen_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Starts accepting. */
void listen_start(struct shard *s);
/* Resumes accepting if it was paused and there is room again. */
void listen_resume(struct shard *s);
/* When a paused listener wants to be resumed, in ns from `now_ns`; UINT64_MAX: when there is room again. */
uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns);
/* No TLS connection is accepted any more. May be called twice. */
void listen_close(struct shard *s);

#endif
