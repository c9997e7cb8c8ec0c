/* A shard: one thread, one loop, and everything it needs to serve clients of its rail alone.
 *
 * Shared between shards are only the PSN registry, the admission count and the statistics (which
 * have one writer each).
 */
#ifndef RAMPART_SERVER_SHARD_H
#define RAMPART_SERVER_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/shard/shard_data.h"

/* Creates a shard's resources in the calling thread and binds its sockets; the first shard of all decides
 * the TLS port if the system chooses. 0 or -errno, with a line in `err`. */
int shard_new(struct server *server, uint32_t index, struct shard **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Starts the thread. 0 or -errno, with a line in `err`. */
int shard_start(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Any thread: tells the shard to drain and stop. */
void shard_wake(struct shard *s);
/* Any thread: asks the shard to publish the gauges of its statistics; server->wake_main is called when it has. */
void shard_ask_publish(struct shard *s);
/* Any thread: true if it has published since server->publish_wanted became `wanted`, or has ended. */
bool shard_has_published(const struct shard *s, uint64_t wanted);
/* Any thread: true if it has ended with an error. */
bool shard_has_failed(const struct shard *s);
/* Waits for the thread's end and returns its status. */
int shard_join(struct shard *s);
/* Tears down what is connected and gives back what clients hold, the device, and the sockets; statistics stay,
 * with gauges of nothing. The thread does so at its end, or else whoever owns a shard that does not run. May be
 * called twice. */
void shard_release(struct shard *s);
/* Frees everything of a shard that does not run. NULL-safe. */
void shard_free(struct shard *s);

#endif
