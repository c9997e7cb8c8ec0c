/* SPDX-License-Identifier: BSD-2-Clause */
/* Control sessions on their way from the shards, which accept them, to the main thread, which answers them.
 *
 * Any shard adds sessions, without a lock; the main thread takes them. A session holds a seat from here to its end, and
 * the number of seats bounds the queue, too.
 */
#ifndef RAMPART_SERVER_HANDOVER_H
#define RAMPART_SERVER_HANDOVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/sizing/sizes.h"
#include "common/wire/frame.h"

struct tls;
struct tls_io;

/* Maximum number of control sessions of a server, over all shards; how many of these are reserved for addresses that
 * have none, so that one address can never take all; and the number of seats, including spare ones (handover_put). */
#define CONTROL_SESSIONS_MAX SIZES_CONTROL_SESSIONS_MAX
#define CONTROL_SESSIONS_RESERVED 16
#define CONTROL_SESSIONS_SEATS (CONTROL_SESSIONS_MAX + SIZES_CONTROL_SESSIONS_SPARE)

struct handover {
	struct handover *next;
	struct tls *tls;
	struct addr peer;
	uint32_t seat;			/* for handover_session_ended */
	struct frame_control request;	/* the first request of the session */
};

struct handover_queue {
	_Atomic(struct handover *) newest;
	/* For each session in the queue or with the main thread: its peer's network (addr_network); 0: a free seat. */
	_Atomic uint64_t seats[CONTROL_SESSIONS_SEATS];
};

/* A shard's thread: takes the connection out of `io`. One address has at most `most` sessions. The last
 * CONTROL_SESSIONS_RESERVED sessions are for addresses that have none; such an address gets a seat even beyond
 * CONTROL_SESSIONS_MAX, and the main thread then ends another session or refuses this one. 0; -EBUSY: no session is
 * left for this address; -ENOMEM. After an error the connection is still in `io`. */
int handover_put(struct handover_queue *q, struct tls_io *io, const struct addr *peer,
		 const struct frame_control *request, uint32_t most) __attribute__((warn_unused_result));
/* The main thread: takes everything that was put, the oldest first; the caller frees each. NULL: nothing. */
struct handover *handover_take(struct handover_queue *q);
/* The main thread: frees the seat of a session that has ended. */
void handover_session_ended(struct handover_queue *q, uint32_t seat);
/* Number of sessions in the queue or with the main thread. Any thread. */
uint32_t handover_sessions(const struct handover_queue *q);

#endif
