/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that peers can make a server hold: what, on whose behalf, and the most that it comes to. The server checks it when it
 * starts (server/config/limits.c), `performance_test plan` shows it, and docs/security.md ("Memory that peers can take") explains
 * each row. What the kernel holds for sockets is not here: net.ipv4.tcp_mem limits that. Pure; any thread.
 */
#ifndef RAMPART_COMMON_HELD_H
#define RAMPART_COMMON_HELD_H

#include <stdbool.h>
#include <stdint.h>

enum held {
	HELD_REGISTERED,	/* receive buffers for RDMA; resident from the start */
	HELD_REGIONS,
	HELD_SOCKET_BUFFERS,	/* resident only while they are used (ep_trim) */
	HELD_TLS,
	HELD_REPORTS,
	HELD_MARKS,
	HELD_N
};

struct held_server {
	uint64_t rails, shards;		/* shards of all rails */
	uint64_t clients;		/* of a rail, at most */
	uint64_t credits, message_bytes, region_bytes;
	uint64_t handshakes;		/* of a shard, at most */
	uint64_t slab_bytes;		/* registered buffers of a shard; 0: RDMA is not served */
	bool sockets, tls;		/* clients may come over TCP or TLS; over TLS */
	bool zerocopy;			/* buffers may wait for the kernel, too */
};

struct held_row {
	const char *what, *per;
	uint64_t number, each_bytes;	/* of `per`; bytes of each */
};

/* Memory of all control sessions' marks (server/report.h). */
#define HELD_MARKS_BYTES (16u << 20)

void held_by_server(const struct held_server *s, struct held_row out[HELD_N]);
uint64_t held_bytes(const struct held_row *row);
uint64_t held_sum(const struct held_row rows[HELD_N]);

#endif
