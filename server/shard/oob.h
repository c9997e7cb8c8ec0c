/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that connect out of band, without rdmacm (docs/protocol.md, "Connecting out of band"): HELLO and GRANT
 * describe the queue pairs, and the proofs are the first messages. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_OOB_H
#define RAMPART_SERVER_OOB_H

#include <stdint.h>

#include "common/wire/frame.h"

struct conn;

/* HELLO, after everything else was taken: takes a queue pair, and programs it to RTS for the queue pair that the client
 * describes. Returns 0, or the code to refuse with, and its text in *why. */
enum refuse_code oob_take_qp(struct conn *c, const struct frame_hello *h, const char **why);

/* A receive completed before the connection is live: it must be the client's proof, which is answered with the
 * server's; anything else ends the connection. `bytes`: received by a SEND without immediate data; 0: by another
 * request. Consumes `buf`. */
void oob_on_first_message(struct conn *c, uint32_t buf, uint32_t bytes);

#endif
