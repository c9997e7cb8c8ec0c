/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the resources for a client whose HELLO is granted: a pair of PSNs, a place among the clients, credits, a
 * region. If one is unavailable, the client is refused with a code and a text; the end of the connection gives
 * everything back (conn.c). No TLS here: boot.c writes the frames.
 *
 * Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GRANT_H
#define RAMPART_SERVER_GRANT_H

#include <stdbool.h>

#include <ev.h>

#include "common/wire/frame.h"

struct conn;

/* Takes everything a grant needs except a region. 0, or the code to refuse with and its text in `why`, valid until the
 * shard's next refusal. A PSN conflict, after which the client may try again, takes nothing. */
enum refuse_code grant_take(struct conn *c, const struct frame_hello *h, const char **why);
/* True if the HELLO has to wait until another thread has registered a region, which is slow; boot_go_on then handles
 * the HELLO again. Until then the socket is not watched, and the state's deadline runs. */
bool grant_waits_for_region(struct conn *c, const struct frame_hello *h);
/* Takes the region, if one is asked for, and fills in the GRANT. 0, or the code to refuse with, as grant_take. */
enum refuse_code grant_fill(struct conn *c, const struct frame_hello *h, struct frame_grant *g, const char **why);
/* The client has its GRANT: counts it, and enters CONN_ST_GRANTED. */
void grant_finish(struct conn *c);
/* Another shard has set relieve_for because the rail is full: takes back the oldest unused session of the address that
 * has the most here, if the client's address will still have fewer with one more. */
void grant_on_relieve(struct ev_loop *loop, ev_async *w, int revents);

#endif
