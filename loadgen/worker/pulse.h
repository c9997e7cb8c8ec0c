/* SPDX-License-Identifier: BSD-2-Clause */
/* The regular beat of a thread that measures. It shows what the figures do not: that the thread itself, or its machine, did
 * not run for a while (a hole in its clock), and that no operation ended though some were in flight (a stall). Pure: the
 * caller says what the time is. Owned by the thread whose beat it is.
 */
#ifndef RAMPART_LOADGEN_PULSE_H
#define RAMPART_LOADGEN_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

/* A beat that is later than this, without the time in which the thread ran, is a hole. On two emulated CPUs that a server
 * shares, beats are 0.2 s late with 1,000 clients, and 0.7 s, busy or not, while clients leave and come back. */
#define PULSE_HOLE_NS NS_PER_S

struct pulse {
	uint64_t interval_ns;		/* between two beats */
	uint64_t last_ns;		/* the last beat; 0: it does not beat */
	uint64_t busy_ns;		/* the thread's CPU time then */
	uint64_t ended;			/* operations that had ended then */
	uint64_t progress_ns;		/* the last beat at which more had ended, or none was in flight */
	uint64_t late_ns;		/* the latest beat: how much later than the interval, without the CPU time since the last */
	uint64_t stall_ns;		/* the longest time without an end though operations were in flight */
};

/* What the thread that beats sees at one moment. */
struct pulse_moment {
	uint64_t now_ns;		/* clock_boot_ns */
	uint64_t busy_ns;		/* clock_busy_ns */
	uint64_t ended, in_flight;	/* operations: ended since any time before the start, and in flight */
};

/* The beats begin. */
void pulse_start(struct pulse *p, uint64_t interval_ns, const struct pulse_moment *m);
/* Nothing before pulse_start. */
void pulse_beat(struct pulse *p, const struct pulse_moment *m);
/* The beats are over; what they found is kept. */
void pulse_stop(struct pulse *p);
static inline bool pulse_is_on(const struct pulse *p)
{
	return p->last_ns > 0;
}

#endif
