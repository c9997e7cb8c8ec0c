/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifies systemd, if systemd started the server with Type=notify (sd_notify(3), sd_watchdog_enabled(3)): when the
 * server serves, reads its certificates again or stops, how many clients it holds, and that its main thread and all
 * shards still turn their loops. Without systemd, and with NULL, all functions but service_turn do nothing.
 *
 * Main thread.
 */
#ifndef RAMPART_SERVER_SERVICE_H
#define RAMPART_SERVER_SERVICE_H

#include <stdint.h>

#include <ev.h>

struct server;
struct service;

/* Connects to the socket that the variable NOTIFY_SOCKET names, before the sandbox forbids that; if that fails,
 * service_ready warns. server->service becomes *out. 0 or -ENOMEM. */
int service_new(struct server *server, struct ev_loop *loop, struct service **out) __attribute__((warn_unused_result));
void service_free(struct service *s);

/* Tells systemd that the server serves, at start or after a reload; starts the watchdog and the status line. */
void service_ready(struct service *s);
void service_reloading(struct service *s);
void service_stopping(struct service *s);

/* Feeds the watchdog if every shard has turned its loop since it was last asked, and asks again. Logs, once, each shard
 * that has not for half of the watchdog's time. Sends the status if it changed. The service's timer calls it four times
 * in the watchdog's time; without a watchdog every 5 s. */
void service_turn(struct service *s, uint64_t now_ns);

#endif
