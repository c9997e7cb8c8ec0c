/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time that the machines of a step did not get while it was measured: stolen by a hypervisor, or withheld by the
 * CPU quota of a control group. See step.h. */
#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/measurement/step.h"

#define THROTTLED_RATIO 0.01
/* /proc/stat counts in ticks of 10 ms (USER_HZ), so the difference of two readings may be one tick too large. */
#define TICK_S 0.01

static double grown(const json_t *begin, const json_t *end, const char *path)
{
	double more = json_number_at(end, path) - json_number_at(begin, path);

	return more >= 0 ? more : NAN;	/* the counter fell: a server on another machine has replaced the first */
}

struct step_lost step_lost_between(const json_t *begin, const json_t *end)
{
	return (struct step_lost){ .window_s = grown(begin, end, "uptime_s"),
				   .machine_s = grown(begin, end, "resources.machine_cpu_s"),
				   .stolen_s = grown(begin, end, "resources.machine_steal_s"),
				   .throttled_s = grown(begin, end, "resources.cgroup_throttled_s") };
}

struct step_lost step_lost_here(const struct step *s)
{
	const struct step_moment *a = &s->begin, *b = &s->end;
	bool known = s->measured && a->machine.busy_ns && b->machine.busy_ns;
	double throttled_s = s->measured && !s->hosts.n ? b->throttled_s - a->throttled_s : NAN;

	return (struct step_lost){ .window_s = step_window_s(s),
				   .machine_s = step_span_s(known, a->machine.busy_ns + a->machine.idle_ns,
							    b->machine.busy_ns + b->machine.idle_ns),
				   .stolen_s = step_span_s(known, a->machine.steal_ns, b->machine.steal_ns),
				   .throttled_s = throttled_s };
}

void step_add_lost(json_t *resources, struct step_lost lost)
{
	json_object_set_new(resources, "machine_steal_ratio", json_number(lost.stolen_s / lost.machine_s));
	json_object_set_new(resources, "cgroup_throttled_s", json_number(lost.throttled_s));
}

static bool is_stolen(const struct step *s, struct step_lost l)
{
	return l.stolen_s - TICK_S > s->max_steal_ratio * l.machine_s;
}

static bool is_throttled(const struct step *s, struct step_lost l)
{
	(void)s;
	return l.throttled_s > THROTTLED_RATIO * l.window_s;
}

static bool has_lost(const struct step *s, enum series_side side, bool (*judge)(const struct step *, struct step_lost))
{
	if (side == SIDE_GENERATOR)
		return judge(s, step_lost_here(s));
	if (!s->n_targets)
		return judge(s, step_lost_between(s->begin.server, s->end.server));
	for (uint32_t i = 0; i < s->n_targets; i++)
		if (judge(s, step_lost_between(s->targets[i].reports[STEP_REPORT_BEGIN],
					       s->targets[i].reports[STEP_REPORT_END])))
			return true;
	return false;
}

bool step_is_stolen(const struct step *s, enum series_side side)
{
	return has_lost(s, side, is_stolen) || (side == SIDE_GENERATOR && s->generator_stolen);
}

bool step_is_throttled(const struct step *s, enum series_side side)
{
	return has_lost(s, side, is_throttled) || (side == SIDE_GENERATOR && s->generator_throttled);
}

void step_keep_lost(struct step *s)
{
	s->generator_stolen = step_is_stolen(s, SIDE_GENERATOR);
	s->generator_throttled = step_is_throttled(s, SIDE_GENERATOR);
}

bool step_lacked_cpu(const struct step *s)
{
	return step_is_stolen(s, SIDE_SERVER) || step_is_stolen(s, SIDE_GENERATOR) ||
	       step_is_throttled(s, SIDE_SERVER) || step_is_throttled(s, SIDE_GENERATOR);
}

bool step_is_disturbed(const struct step *s)
{
	return step_has_hole(s) || step_is_stalled(s) || step_lacked_cpu(s);
}
