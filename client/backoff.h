/* SPDX-License-Identifier: BSD-2-Clause */
/* When a client whose connection was lost tries to connect again: after pauses that double, with jitter, so that the clients
 * of a server that was gone do not come back in the same moment. No I/O; the caller says what time it is.
 */
#ifndef RAMPART_CLIENT_BACKOFF_H
#define RAMPART_CLIENT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/fail.h"

/* All 0: the client is connected. */
struct backoff {
	uint64_t lost_ns;	/* when its connection was lost; 0: it was not */
	uint64_t random;
	uint32_t attempts;	/* since then */
};

/* The connection was lost. */
void backoff_begin(struct backoff *b, uint64_t now_ns);

/* The attempt, or the connection, ended with `fail`. True if another attempt is to begin at *at_ns: the client has been
 * without a connection for less than `limit_ns`, and another attempt may end otherwise (not so where certificates or
 * protocols do not fit). The n-th pause is between half of 100 ms x 2^n and all of it, 10 s at most; the last one ends
 * with the limit. */
bool backoff_next(struct backoff *b, const struct fail *fail, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns);

/* The same for who knows that another attempt may end otherwise. */
bool backoff_wait(struct backoff *b, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns);

/* It is connected again. Returns how long it was not. */
uint64_t backoff_end(struct backoff *b, uint64_t now_ns);

#endif
