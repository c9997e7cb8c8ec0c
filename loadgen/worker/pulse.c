/* SPDX-License-Identifier: BSD-2-Clause */
/* See pulse.h. */
#include "loadgen/worker/pulse.h"

#include <sys/param.h>

void pulse_start(struct pulse *p, uint64_t interval_ns, const struct pulse_moment *m)
{
	*p = (struct pulse){ .interval_ns = interval_ns, .last_ns = m->now_ns, .busy_ns = m->busy_ns,
			     .progress_ns = m->now_ns, .ended = m->ended };
}

void pulse_beat(struct pulse *p, const struct pulse_moment *m)
{
	uint64_t in_time_ns = p->last_ns + p->interval_ns + (m->busy_ns - p->busy_ns);
	uint64_t late_ns = m->now_ns > in_time_ns ? m->now_ns - in_time_ns : 0;

	if (!pulse_is_on(p))
		return;
	p->late_ns = MAX(p->late_ns, late_ns);
	/* A thread that does not run sees no replies: a hole in its own clock is not a stall of the server. */
	if (m->ended != p->ended || m->in_flight == 0 || late_ns > PULSE_HOLE_NS)
		p->progress_ns = m->now_ns;
	p->stall_ns = MAX(p->stall_ns, m->now_ns - p->progress_ns);
	p->ended = m->ended;
	p->busy_ns = m->busy_ns;
	p->last_ns = m->now_ns;
}

void pulse_stop(struct pulse *p)
{
	p->last_ns = 0;
}
