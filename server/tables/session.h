/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of granted sessions: finds the connection that a session id was granted to.
 *
 * A session is used once: session_take removes the session it finds. A session expires at the deadline of its
 * connection. Owning thread: the shard's. No I/O.
 */
#ifndef RAMPART_SERVER_SESSION_H
#define RAMPART_SERVER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/frame.h"

#define SESSION_NONE UINT32_MAX

struct session_table;

/* Room for `max` sessions. 0 or -ENOMEM. */
int session_table_new(uint32_t max, struct session_table **out) __attribute__((warn_unused_result));
void session_table_free(struct session_table *t);

/* Adds the session of connection `conn`, which is below the table's max and has no session yet. The id is random, so it
 * is not in the table yet. `takes_qp`: the client will come over RDMA. */
void session_put(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES], uint32_t conn, bool takes_qp);
/* Removes the session and returns its connection, or SESSION_NONE. */
uint32_t session_take(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES]);
/* Remembers a session whose connection failed because the client's connection manager refused the server's queue pair
 * number as stale. The client's kernel repeats the request without telling the client, so the answer to it has to say
 * why. The last 64 such sessions are remembered. */
void session_note_stale(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES]);
bool session_is_stale(const struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES]);
/* Number of sessions in the table. */
uint32_t session_count(const struct session_table *t);
/* Number of sessions in the table whose clients will take a queue pair. */
uint32_t session_qps(const struct session_table *t);

#endif
