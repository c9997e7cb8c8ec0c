/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when a client that lost its connection connects again: after pauses that double, with jitter, so that the
 * clients of a server that was down do not all come back at once. No I/O; the caller passes the time.
 */
#ifndef RAMPART_CLIENT_BACKOFF_H
#define RAMPART_CLIENT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/fail.h"

/* All 0: the client is connected. */
struct backoff {
	uint64_t lost_ns;	/* when the connection was lost; 0: connected */
	uint64_t random;
	uint32_t attempts;	/* attempts since lost_ns */
};

/* Call it when the connection is lost. */
void backoff_begin(struct backoff *b, uint64_t now_ns);

/* Call it when an attempt, or the connection, ended with `fail`. True if another attempt is to begin at *at_ns: the
 * client has been without a connection for less than `limit_ns`, and another attempt may succeed (not if certificates
 * or protocols do not match). The n-th pause is between half of 100 ms x 2^n and all of it, at most 10 s; the last
 * pause ends at the limit. */
bool backoff_next(struct backoff *b, const struct fail *fail, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns);

/* The same without `fail`: the caller knows that another attempt may succeed. */
bool backoff_wait(struct backoff *b, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns);

/* Call it when the client is connected again. Returns the length of the outage. */
uint64_t backoff_end(struct backoff *b, uint64_t now_ns);

#endif
