/* SPDX-License-Identifier: BSD-2-Clause */
/* Control sessions: TLS connections whose clients ask for reports (docs/protocol.md, "CONTROL").
 *
 * A shard accepts the connection, does the handshake, reads the first frame, and hands the session over
 * (server/tables/handover.h). From then on the main thread serves it. Shards compute nothing for a report: they are
 * asked to publish their gauges, and the main thread makes the report when all have, or after a second.
 *
 * Owning thread: the main thread.
 */
#ifndef RAMPART_SERVER_CONTROL_H
#define RAMPART_SERVER_CONTROL_H

struct control;
struct ev_loop;
struct server;

/* 0 or -ENOMEM. */
int control_new(struct server *server, struct ev_loop *loop, struct control **out) __attribute__((warn_unused_result));
/* Call it on the loop after a shard called server->wake_main: takes new sessions over, and answers those that waited
 * for shards to publish. */
void control_wake(struct control *t);
/* Ends all sessions with close_notify, because the server stops. Sessions handed over later are ended at once. */
void control_stop(struct control *t);
/* Call it after the shards' threads end and before shard_free: sessions use the shards' TLS contexts. NULL-safe. */
void control_free(struct control *t);

#endif
