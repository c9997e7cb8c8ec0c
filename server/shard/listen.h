/* A shard's listeners: the TLS socket that clients are accepted from, and the RDMA port they are sent to.
 *
 * Opened by the thread that starts the server; from listen_start on the shard's thread owns them.
 */
#ifndef RAMPART_SERVER_LISTEN_H
#define RAMPART_SERVER_LISTEN_H

#include <stddef.h>
#include <stdint.h>

struct shard;

/* Binds the shard's RDMA port and TLS socket. If the system is to choose the TLS port, the first shard of all decides
 * it. 0 or -errno, with a line in `err`. */
int listen_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Starts accepting. */
void listen_start(struct shard *s);
/* Accepts again, if accepting was paused and there is room. */
void listen_resume(struct shard *s);
/* Time until listen_resume should be called, in ns from `now_ns`; UINT64_MAX: nothing to wait for but room. */
uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns);
/* Stops accepting TLS connections for good. May be called twice. */
void listen_close(struct shard *s);

#endif
