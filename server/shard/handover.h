/* Control sessions on their way from the shards, which accept them, to the main thread, which answers.
 *
 * Any shard puts, without a lock; the main thread takes. The number of sessions is bounded from here to their end, so
 * the queue is, too.
 */
#ifndef RAMPART_SERVER_HANDOVER_H
#define RAMPART_SERVER_HANDOVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/wire/frame.h"
#include "server/config/config.h"

struct tls;
struct tls_io;

struct handover {
	struct handover *next;
	struct tls *tls;
	struct addr peer;
	enum control_what what;		/* the session's first request */
};

struct handover_queue {
	_Atomic(struct handover *) newest;
	_Atomic uint32_t sessions;	/* in the queue or with the main thread */
};

/* A shard's thread: takes the connection out of `io`. 0; -EBUSY when there are CONTROL_SESSIONS_MAX sessions;
 * -ENOMEM. After an error the connection is still in `io`. */
int handover_put(struct handover_queue *q, struct tls_io *io, const struct addr *peer, enum control_what what)
	__attribute__((warn_unused_result));
/* The main thread: all that was put, the oldest first; the caller frees each. NULL: none. */
struct handover *handover_take(struct handover_queue *q);
/* The main thread: a session that was taken has ended. */
void handover_session_ended(struct handover_queue *q);

#endif
