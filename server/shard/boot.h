/* SPDX-License-Identifier: BSD-2-Clause */
/* The bootstrap of a client inside TLS: handshake, HELLO, GRANT or REFUSE. docs/protocol.md. What a grant takes: grant.h.
 *
 * Strangers' work comes after clients' data: a connection whose socket is ready waits in the shard's queue, and each turn
 * of the loop serves some of them, one step each, at its end (pump.h).
 *
 * Owning thread: the shard's. A session can be used only after its GRANT was written completely.
 */
#ifndef RAMPART_SERVER_BOOT_H
#define RAMPART_SERVER_BOOT_H

#include <stdbool.h>

#include "common/wire/frame.h"

struct conn;

/* For conn_new: queues `conn` (struct conn), whose socket is ready. */
void boot_on_ready(void *conn);
/* For pump_set_rest: goes on with the bootstrap of the connection that was queued first, or ends it if its deadline has
 * passed. False: no more is queued. */
bool boot_serve_next(void *shard);
/* Sends a REFUSE; the connection then waits for the peer to close. */
void boot_refuse(struct conn *c, enum refuse_code code, const char *text);
/* Handles the HELLO of a connection that awaits a region again: one was registered, or could not be. */
void boot_go_on(struct conn *c);

#endif
