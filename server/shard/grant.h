/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client gets when its HELLO is granted: a pair of PSNs, a place among the clients, credits, a region. Each is refused
 * with a code and words if there is none, and the connection's end gives back what was taken (conn.c). No TLS here: the
 * frames are boot.c's.
 *
 * Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GRANT_H
#define RAMPART_SERVER_GRANT_H

#include <stdbool.h>

#include <ev.h>

#include "common/wire/frame.h"

struct conn;

/* Takes all that a grant needs but a region. 0, or the code to refuse with and its words in `why`, which are valid until the
 * shard's next refusal. A PSN conflict, after which the client may try again, takes nothing. */
enum refuse_code grant_take(struct conn *c, const struct frame_hello *h, const char **why);
/* True if the HELLO has to wait until another thread has registered a region, which takes long; boot_go_on then
 * handles it again. The socket is not watched meanwhile, and the state's deadline runs. */
bool grant_waits_for_region(struct conn *c, const struct frame_hello *h);
/* Takes the region, too, if one is asked for, and says what was taken. 0, or the code to refuse with, as grant_take. */
enum refuse_code grant_fill(struct conn *c, const struct frame_hello *h, struct frame_grant *g, const char **why);
/* Another shard has set relieve_for, as the rail is full: takes one of this shard's unused sessions back, if there is one
 * that makes room for that client. */
void grant_on_relieve(struct ev_loop *loop, ev_async *w, int revents);

#endif
