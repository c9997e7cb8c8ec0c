/* A stack that is only ever taken as a whole. See handover.h. */
#include "server/shard/handover.h"

#include <errno.h>
#include <stdlib.h>

#include "common/tls/tls_io.h"

int handover_put(struct handover_queue *q, struct tls_io *io, const struct addr *peer, enum control_what what)
{
	struct handover *h;

	if (atomic_fetch_add(&q->sessions, 1) >= CONTROL_SESSIONS_MAX) {
		atomic_fetch_sub(&q->sessions, 1);
		return -EBUSY;
	}
	h = malloc(sizeof(*h));
	if (!h) {
		atomic_fetch_sub(&q->sessions, 1);
		return -ENOMEM;
	}
	*h = (struct handover){ .tls = tls_io_release(io), .peer = *peer, .what = what };
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

void handover_session_ended(struct handover_queue *q)
{
	atomic_fetch_sub(&q->sessions, 1);
}
