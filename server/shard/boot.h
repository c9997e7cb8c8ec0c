/* The bootstrap of a client inside TLS: handshake, HELLO, GRANT or REFUSE. docs/protocol.md.
 *
 * Owning thread: the shard's. A session can be used only after its GRANT was written completely.
 */
#ifndef RAMPART_SERVER_BOOT_H
#define RAMPART_SERVER_BOOT_H

#include "common/wire/frame.h"

struct conn;

/* For conn_new: goes on with the bootstrap of `conn` (struct conn) when its socket is ready. */
void boot_on_ready(void *conn);
/* Sends a REFUSE; the connection then waits for the peer to close. */
void boot_refuse(struct conn *c, enum refuse_code code, const char *text);
/* Handles the HELLO of a connection that awaits a region again: one was registered, or could not be. */
void boot_go_on(struct conn *c);

#endif
