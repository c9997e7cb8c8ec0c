/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that come over a socket, from their GRANT to LIVE: over the TLS connection of the bootstrap, or over a TCP connection
 * that proves to belong to it (docs/protocol.md, "Over a socket"). Their messages are handled as those over RDMA (messages.h).
 * Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_SOCKET_H
#define RAMPART_SERVER_SOCKET_H

#include <stddef.h>

#include "common/wire/auth.h"
#include "common/wire/frame.h"

/* Bytes behind a PUSHED begin anew after so many sequences (msg_pushed_byte). */
#define SOCKET_PUSHED_BEGINNINGS 256u

struct addr;
struct conn;
struct shard;

/* The endpoint and what else clients over sockets share. 0 or -ENOMEM, with a line in `err`. */
int socket_make(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void socket_release(struct shard *s);

/* The GRANT of a client with TRANSPORT_TLS is written: it is live. */
void socket_go_over_tls(struct conn *c);
/* A TCP connection `fd` from `peer` to `local` brings a proof. Takes the descriptor: the client is live, and has the server's
 * proof. Else the code to refuse it with, and the descriptor is still the caller's. */
enum refuse_code socket_take(struct shard *s, int fd, const struct pdata_proof *proof, const struct addr *peer,
			     const struct addr *local) __attribute__((warn_unused_result));

#endif
