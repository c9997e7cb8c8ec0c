/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard: one thread, one loop, and everything it needs to serve clients of its rail alone.
 *
 * Shards share the PSN registry, admission counts, the registrar, the queue of control sessions and statistics
 * (docs/architecture.md, "Threads and shared state").
 */
#ifndef RAMPART_SERVER_SHARD_H
#define RAMPART_SERVER_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/shard/shard_data.h"

/* Makes a TLS context from the server's certificates and options, with ticket keys from server->tickets. Main thread.
 * Errors as tls_ctx_new. */
int shard_make_tls(const struct server *server, struct tls_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Any thread: connections that the shard accepts from now on use `ctx`, which the shard owns from now on and adopts
 * between two events. Connections that have begun keep the previous context, which is freed after the last of them. */
void shard_offer_tls(struct shard *s, struct tls_ctx *ctx);

/* Makes a shard's resources and binds its sockets, in the calling thread. If the system is to choose the TLS port, the
 * first shard of all decides it. 0 or -errno, with a line in `err`. */
int shard_new(struct server *server, uint32_t index, struct shard **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Starts the thread. 0 or -errno, with a line in `err`. */
int shard_start(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Any thread: tells the shard to drain, then to stop. */
void shard_drain(struct shard *s);
/* Any thread: asks the shard to publish its gauges; it calls server->wake_main when it has. */
void shard_ask_publish(struct shard *s);
/* Any thread: true if the shard has published since server->publish_wanted became `wanted`, or has ended. */
bool shard_has_published(const struct shard *s, uint64_t wanted);
/* Any thread: true if the shard has ended with an error. */
bool shard_has_failed(const struct shard *s);
/* Waits for the thread's end and returns its status. */
int shard_join(struct shard *s);
/* Ends all connections and releases what they hold, the device and the sockets. Counters keep their values, gauges
 * become 0. The thread calls it at its end; for a shard that does not run, its owner does. May be called twice. */
void shard_release(struct shard *s);
/* Frees everything of a shard that does not run. NULL-safe. */
void shard_free(struct shard *s);

#endif
