/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock-free stack that is always taken as a whole. See handover.h. */
#include "server/tables/handover.h"

#include <errno.h>
#include <stdlib.h>

#include "common/tls/tls_io.h"

#define NO_SEAT CONTROL_SESSIONS_SEATS

/* Number of control sessions of that network; 0: of all networks. */
static uint32_t count_queued(const struct handover_queue *q, uint64_t network)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CONTROL_SESSIONS_SEATS; i++) {
		uint64_t holder = atomic_load((_Atomic uint64_t *)&q->seats[i]);

		n += holder && (!network || holder == network);
	}
	return n;
}

static uint32_t claim(struct handover_queue *q, uint64_t network)
{
	for (uint32_t i = 0; i < CONTROL_SESSIONS_SEATS; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&q->seats[i], &none, network))
			return i;
	}
	return NO_SEAT;
}

/* Returns a seat for a session of that network, or NO_SEAT. Claims the seat before it counts those taken: shards that
 * claim the last one at the same moment may all be refused, but the limits always hold. */
static uint32_t sit_down(struct handover_queue *q, uint64_t network, uint32_t most)
{
	uint32_t seat = claim(q, network), own = count_queued(q, network);

	if (seat != NO_SEAT &&
	    (own > most || (own > 1 && count_queued(q, 0) > CONTROL_SESSIONS_MAX - CONTROL_SESSIONS_RESERVED))) {
		handover_session_ended(q, seat);
		return NO_SEAT;
	}
	return seat;
}

int handover_put(struct handover_queue *q, struct tls_io *io, const struct addr *peer,
		 const struct frame_control *request, uint32_t most)
{
	uint32_t seat = sit_down(q, addr_network(peer), most);
	struct handover *h;

	if (seat == NO_SEAT)
		return -EBUSY;
	h = malloc(sizeof(*h));
	if (!h) {
		handover_session_ended(q, seat);
		return -ENOMEM;
	}
	*h = (struct handover){ .tls = tls_io_release(io), .peer = *peer, .seat = seat, .request = *request };
	h->next = atomic_load_explicit(&q->newest, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&q->newest, &h->next, h, memory_order_release,
						      memory_order_relaxed))
		;
	return 0;
}

struct handover *handover_take(struct handover_queue *q)
{
	struct handover *newest = atomic_exchange_explicit(&q->newest, NULL, memory_order_acquire), *oldest = NULL;

	while (newest) {
		struct handover *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

void handover_session_ended(struct handover_queue *q, uint32_t seat)
{
	atomic_store(&q->seats[seat], 0);
}

uint32_t handover_sessions(const struct handover_queue *q)
{
	return count_queued(q, 0);
}
