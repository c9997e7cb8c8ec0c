/* The regular beat of a thread that measures. It shows what the figures do not: that the thread itself, or its machine, did
 * not run for a while (a hole in its clock), and that no operation ended though some were in flight (a stall). Pure: the
 * caller says what the time is, by clock_boot_ns. Owned by the thread whose beat it is.
 */
#ifndef RAMPART_LOADGEN_PULSE_H
#define RAMPART_LOADGEN_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

/* A beat that is later than this is a hole. Scheduling alone makes beats late by tens of milliseconds, and by up to 0.2 s
 * where emulated CPUs are shared by 1,000 clients, a server and other machines. */
#define PULSE_HOLE_NS (500 * NS_PER_MS)

struct pulse {
	uint64_t interval_ns;		/* between two beats */
	uint64_t last_ns;		/* the last beat; 0: it does not beat */
	uint64_t ended;			/* operations that had ended then */
	uint64_t progress_ns;		/* the last beat at which more had ended, or none was in flight */
	uint64_t late_ns;		/* the latest beat: how much later than the interval */
	uint64_t stall_ns;		/* the longest time without an end though operations were in flight */
};

/* The beats begin. */
void pulse_start(struct pulse *p, uint64_t interval_ns, uint64_t now_ns, uint64_t ended);
/* A beat: so many operations have ended since any time before the start, and so many are in flight. Nothing before
 * pulse_start. */
void pulse_beat(struct pulse *p, uint64_t now_ns, uint64_t ended, uint64_t in_flight);
/* The beats are over; what they found is kept. */
void pulse_stop(struct pulse *p);
static inline bool pulse_is_on(const struct pulse *p)
{
	return p->last_ns > 0;
}

#endif
