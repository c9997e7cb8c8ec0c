/* SPDX-License-Identifier: BSD-2-Clause */
/* See phases.h. ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a
 * timer) or by its deadline.
 */
#include "loadgen/ramp/phases.h"

#include "common/base/clock.h"
#include "loadgen/output/results.h"

const char *ramp_phase_name(const struct ramp *r)
{
	return r->phases[r->phase].name;
}

void ramp_beat(struct ramp *r)
{
	bool counted = r->gate == GATE_COUNTED;

	if (r->current.step && ((r->phase >= RAMP_MARK && r->phase <= RAMP_DRAIN) ||
				(r->phase == RAMP_GATE && !counted)))
		current_beat(&r->current);
}

static void note_phase(struct ramp *r, const char *name)
{
	results_event(r->results, "phase", json_pack("{s:s}", "phase", name));
	series_phase(r->outcome->series, results_elapsed_s(r->results), name);
}

void ramp_wait_on(struct ramp *r, uint64_t ns)
{
	ev_timer_stop(r->loop, &r->deadline);
	ev_now_update(r->loop);
	ev_timer_set(&r->deadline, (double)ns / 1e9, 0.);
	ev_timer_start(r->loop, &r->deadline);
}

void ramp_enter(struct ramp *r, enum ramp_phase phase)
{
	const struct phase *p = &r->phases[phase];
	uint64_t timeout = p->timeout_ns ? p->timeout_ns(r) : p->timeout_s * NS_PER_S;

	ramp_beat(r); /* a deadline may come before the tick */
	if (r->phase != phase)
		note_phase(r, p->name);
	if (timeout)
		ramp_wait_on(r, timeout);
	else
		ev_timer_stop(r->loop, &r->deadline);
	r->n_late = 0;
	r->report_asked = r->report_arrived = false;
	r->phase = phase;
	r->phase_number++;
	r->phase_start_ns = clock_now_ns();
	if (p->begin)
		p->begin(r);
}

void ramp_advance(struct ramp *r)
{
	if (r->phases[r->phase].advance)
		r->phases[r->phase].advance(r);
}

void ramp_keep_report(struct ramp *r, uint32_t target, json_t *report)
{
	if (r->current.step && r->phases[r->phase].keeps)
		step_keep_report(r->current.step, target, r->phases[r->phase].keeps, report);
}

void ramp_on_stats(struct ramp *r, json_t *report)
{
	if (r->phases[r->phase].on_stats)
		r->phases[r->phase].on_stats(r, report);
}

void ramp_on_deadline(struct ramp *r)
{
	const struct phase *p = &r->phases[r->phase];

	r->n_late++;
	if (p->on_deadline)
		p->on_deadline(r);
	else
		ramp_enter(r, p->late);
}

void ramp_stop_traffic(struct ramp *r)
{
	if ((r->phase >= RAMP_START && r->phase <= RAMP_MEASURE) || (r->phase == RAMP_GATE && r->gate == GATE_WARM))
		ramp_enter(r, RAMP_DRAIN);
}

void ramp_cut_short(struct ramp *r)
{
	if (r->phase == RAMP_CONNECT)
		current_connected(&r->current, &r->crew);
	if (r->phase == RAMP_FLOOR || r->phase == RAMP_FOLLOW_UP)
		alone_cut(&r->alone, &r->crew);
	else if (r->phase <= RAMP_INFO || (r->phase == RAMP_GATE && r->gate == GATE_MET))
		ramp_enter(r, RAMP_STOP);
	else if (r->phase <= RAMP_COUNT || (r->phase == RAMP_GATE && r->gate <= GATE_CONNECTED))
		ramp_enter(r, RAMP_DISCONNECT);
	else
		ramp_stop_traffic(r);
}
