/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients over a socket, from their GRANT to LIVE: over the TLS connection of the bootstrap, or over a TCP connection
 * that proves to belong to it (docs/protocol.md, "Over a socket"). Their messages are handled like those over RDMA
 * (messages.h). Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_SOCKET_H
#define RAMPART_SERVER_SOCKET_H

#include <stddef.h>

#include "common/wire/auth.h"
#include "common/wire/frame.h"

/* Number of sequences after which the bytes that follow a PUSHED repeat (msg_pushed_byte). */
#define SOCKET_PUSHED_BEGINNINGS 256u

struct addr;
struct conn;
struct shard;

/* Makes the endpoint and everything else that clients over sockets share. 0 or -ENOMEM, with a line in `err`. */
int socket_make(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void socket_release(struct shard *s);

/* Makes a client with TRANSPORT_TLS live, once its GRANT is written. */
void socket_go_over_tls(struct conn *c);
/* Checks the proof that came over TCP connection `fd` from `peer` to `local`. 0: the client is live, has been sent the
 * server's proof, and owns `fd`. Otherwise the code to refuse it with, and the caller still owns `fd`. */
enum refuse_code socket_take(struct shard *s, int fd, const struct pdata_proof *proof, const struct addr *peer,
			     const struct addr *local) __attribute__((warn_unused_result));

#endif
