/* SPDX-License-Identifier: BSD-2-Clause */
/* How many connections a worker makes, and ends, at once.
 *
 * Connecting: additive increase, multiplicative decrease (RFC 5681, 3.1, with
 * connections in place of segments), so that a storm of clients adapts to what the server can take.
 *
 * Until the first sign of congestion the window grows by one for every connection made, afterwards by one for every
 * window of connections. A sign of congestion (a timeout, `busy`, a hang-up) halves the window, but only once for all
 * connections that were begun before the last decrease.
 *
 * Leaving: at most LEAVING_MAX clients at once. Of thousands of disconnect requests at once many are lost, and the
 * server then learns only from its probes who has left.
 *
 * No I/O; the caller passes the time.
 */
#ifndef RAMPART_LOADGEN_PACE_H
#define RAMPART_LOADGEN_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/fail.h"

struct pace {
	double window, limit;
	bool congested;			/* there has been a sign of congestion */
	uint64_t decreased_at_ns;
	uint32_t decreases;
};

/* The window never grows above `limit`. */
void pace_init(struct pace *p, uint32_t limit);
uint32_t pace_window(const struct pace *p);
void pace_on_success(struct pace *p);
/* Call when a connection that was begun at `begun_ns` met congestion. */
void pace_on_congestion(struct pace *p, uint64_t begun_ns, uint64_t now_ns);

/* True if another attempt may succeed: the failure is a sign of congestion, not a refusal. */
bool pace_is_congestion(const struct fail *f);

#define LEAVING_MAX 256u

/* Clients of a worker that leave at the end of a step. */
struct leaving {
	uint64_t at_start;		/* clients that had a connection when leaving began */
	uint64_t told;			/* those of them that were told to leave */
	uint64_t then;			/* `left` at the last leaving_portion */
};

/* `left` is always the number of clients that still have a connection. */
void leaving_begin(struct leaving *l, uint64_t left);
/* True if fewer than LEAVING_MAX clients that were told to leave still have a connection. */
bool leaving_has_room(const struct leaving *l, uint64_t left);
/* Number of clients to tell now, at most `untold`; add those of them that have a connection to `told`. Call it when
 * there is room, and from time to time: if nobody has left since the last call, others are to leave though there is no
 * room. */
uint32_t leaving_portion(struct leaving *l, uint64_t left, uint32_t untold);

#endif
