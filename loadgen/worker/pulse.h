/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular beat of a measuring thread. It reveals what the figures hide: that the thread or its machine did not run for
 * a while (a hole in its clock), or that no operation ended although some were in flight (a stall). Pure: the caller
 * passes the time. Owned by the thread that beats.
 */
#ifndef RAMPART_LOADGEN_PULSE_H
#define RAMPART_LOADGEN_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

/* A beat delayed by more than this, not counting the thread's own CPU time, is a hole. On two emulated CPUs shared with
 * a server, beats are 0.2 s late with 1,000 clients, and 0.7 s, busy or not, while clients leave and come back. */
#define PULSE_HOLE_NS NS_PER_S

struct pulse {
	uint64_t interval_ns;		/* between two beats */
	uint64_t last_ns;		/* time of the last beat; 0: the pulse is stopped */
	uint64_t busy_ns;		/* the thread's CPU time at the last beat */
	uint64_t ended;			/* operations that had ended by the last beat */
	uint64_t progress_ns;		/* the last beat at which more operations had ended, or none was in flight */
	uint64_t late_ns;		/* greatest delay of a beat, less the thread's CPU time since the last beat */
	uint64_t stall_ns;		/* the longest time in which operations were in flight and none ended */
};

/* Readings of the beating thread at one moment. */
struct pulse_moment {
	uint64_t now_ns;		/* clock_boot_ns */
	uint64_t busy_ns;		/* clock_busy_ns */
	uint64_t ended, in_flight;	/* operations: ended since any fixed time before the start, and in flight */
};

/* Starts the pulse, and forgets earlier findings. */
void pulse_start(struct pulse *p, uint64_t interval_ns, const struct pulse_moment *m);
/* One beat. Does nothing before pulse_start. */
void pulse_beat(struct pulse *p, const struct pulse_moment *m);
/* Stops the pulse; late_ns and stall_ns are kept. */
void pulse_stop(struct pulse *p);
static inline bool pulse_is_on(const struct pulse *p)
{
	return p->last_ns > 0;
}

#endif
