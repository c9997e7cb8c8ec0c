/* The bootstrap of a client inside TLS: handshake, HELLO, GRANT or REFUSE. docs/protocol.md.
 *
 * Owning thread: the shard's. A session becomes usable only when its GRANT was written whole.
 */
#ifndef RAMPART_SERVER_BOOT_H
#define RAMPART_SERVER_BOOT_H

#include "common/wire/frame.h"

struct conn;

/* The TLS connection of `conn` (struct conn) goes on: its socket is ready. */
void boot_on_ready(void *conn);
/* Sends a REFUSE; the connection then waits for the peer to close. */
void boot_refuse(struct conn *c, enum refuse_code code, const char *text);
/* Looks at the HELLO again of a connection that awaits a region (awaits_region): one was registered, or could not be. */
void boot_go_on(struct conn *c);

#endif
