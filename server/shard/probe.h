/* SPDX-License-Identifier: BSD-2-Clause */
/* The liveness probe: detects clients whose host is gone while neither side sends anything, and clients that send but
 * do not receive. Owning thread: the shard's. docs/protocol.md, "Liveness probe".
 */
#ifndef RAMPART_SERVER_PROBE_H
#define RAMPART_SERVER_PROBE_H

#include <stdint.h>

struct shard;

/* The fields of a shard that probe.c alone uses. */
struct probe_state {
	uint64_t slice;			/* slices of the probe interval that have passed */
	uint32_t next;			/* index of the connection that is checked next */
	uint64_t reader_log_ns;		/* earliest time of the next log line about clients that read too slowly */
};

/* Starts the timer, unless --probe-interval is 0. */
void probe_start(struct shard *s);

#endif
