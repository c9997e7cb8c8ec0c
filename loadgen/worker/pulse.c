/* See pulse.h. */
#include "loadgen/worker/pulse.h"

#include <sys/param.h>

void pulse_start(struct pulse *p, uint64_t interval_ns, uint64_t now_ns, uint64_t ended)
{
	*p = (struct pulse){ .interval_ns = interval_ns, .last_ns = now_ns, .progress_ns = now_ns, .ended = ended };
}

void pulse_beat(struct pulse *p, uint64_t now_ns, uint64_t ended, uint64_t in_flight)
{
	uint64_t since_ns = now_ns - p->last_ns, late_ns = since_ns > p->interval_ns ? since_ns - p->interval_ns : 0;

	if (!pulse_is_on(p))
		return;
	p->late_ns = MAX(p->late_ns, late_ns);
	/* What a thread does not see while it does not run is no stall of the other side. */
	if (ended != p->ended || in_flight == 0 || late_ns > PULSE_HOLE_NS)
		p->progress_ns = now_ns;
	p->stall_ns = MAX(p->stall_ns, now_ns - p->progress_ns);
	p->ended = ended;
	p->last_ns = now_ns;
}

void pulse_stop(struct pulse *p)
{
	p->last_ns = 0;
}
