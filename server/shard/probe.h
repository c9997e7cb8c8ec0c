/* SPDX-License-Identifier: BSD-2-Clause */
/* The liveness probe: detects clients whose host is gone while neither side sends anything, and clients that send but
 * do not receive. Owning thread: the shard's. docs/protocol.md, "Liveness probe".
 */
#ifndef RAMPART_SERVER_PROBE_H
#define RAMPART_SERVER_PROBE_H

struct shard;

/* Starts the timer, unless --probe-interval is 0. */
void probe_start(struct shard *s);

#endif
