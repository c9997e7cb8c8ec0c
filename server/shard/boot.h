/* SPDX-License-Identifier: BSD-2-Clause */
/* The bootstrap of a client inside TLS: handshake, HELLO, GRANT or REFUSE (docs/protocol.md). grant.h takes resources.
 *
 * Bootstraps are served after clients' data: a ready connection waits in the shard's queue, and each turn of the loop
 * ends by serving some of them, one step each (pump.h).
 *
 * Owning thread: the shard's. A session is usable only after its GRANT was written completely.
 */
#ifndef RAMPART_SERVER_BOOT_H
#define RAMPART_SERVER_BOOT_H

#include <stdbool.h>

#include "common/wire/frame.h"

struct conn;

/* For conn_new: queues `conn` (struct conn), whose socket is ready. */
void boot_on_ready(void *conn);
/* For pump_set_rest: takes the next bootstrap step of the first queued connection, or ends the connection if its
 * deadline has passed. False: the queue is empty. */
bool boot_serve_next(void *shard);
/* Sends a REFUSE; the connection then waits for the peer to close. */
void boot_refuse(struct conn *c, enum refuse_code code, const char *text);
/* Handles again the HELLO of a connection that awaited a region: one was registered, or the registration failed. */
void boot_go_on(struct conn *c);

#endif
