/* The liveness probe: notices clients whose host is gone, which nothing else does while they are silent.
 * Owning thread: the shard's. docs/protocol.md, "Liveness probe".
 */
#ifndef RAMPART_SERVER_PROBE_H
#define RAMPART_SERVER_PROBE_H

struct shard;

/* Starts the timer, unless --probe-interval is 0. */
void probe_start(struct shard *s);

#endif
