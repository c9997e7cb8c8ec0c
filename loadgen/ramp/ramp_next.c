/* See ramp_next.h. */
#include "loadgen/ramp/ramp_next.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/ramp/find.h"
#include "loadgen/judge/slo_judge.h"
#include "loadgen/step/step.h"

static void take_probe(struct ramp *r)
{
	r->target = r->probe.clients;
	r->repetition = r->probe.repetition;
}

void ramp_next_init(struct ramp *r)
{
	const struct loadgen_config *c = r->cfg;

	r->repetition = 1;
	r->target = (uint32_t)c->steps.v[0];
	capacity_init(&r->capacity, c->slo.n > 0, r->target, (uint32_t)c->clients);
	if (c->find_capacity && capacity_next(&r->capacity, &r->probe))
		take_probe(r);
}

/* What was missed because the generator had no more to give does not count against the server; nor does what so few
 * clients cannot tell: more of them will. */
static enum slo_result judge(const struct ramp *r)
{
	enum slo_result result = slo_judge(&r->cfg->slo, r->step);

	if (result == SLO_FAIL && r->step->generator_saturated)
		return SLO_INCONCLUSIVE;
	return result == SLO_INCONCLUSIVE && slo_has_samples(&r->cfg->slo, r->step) ? SLO_PASS : result;
}

void ramp_next_tell(struct ramp *r, bool broke)
{
	if (!r->cfg->find_capacity) {
		memset(&r->probe, 0, sizeof(r->probe));
		r->probe.clients = r->step->target;
	}
	r->probe.slo = judge(r);
	r->probe.broke = broke;
	/* Several sizes are several servers' worth of capacity: none of them is the one. What is measured for the knee does
	 * not reopen a search that is done. */
	if (r->cfg->sizes.n == 1 && r->probe.of != CAPACITY_N)
		capacity_tell(&r->capacity, &r->probe);
}

/* Every size, every repetition, every number of clients; the sizes change fastest, so that what changes in time
 * meets all of them alike. */
static bool next_of_ramp(struct ramp *r)
{
	const struct loadgen_config *c = r->cfg;

	if (++r->size_index == c->sizes.n) {
		r->size_index = 0;
		if (r->repetition++ == c->repeat) {
			r->repetition = 1;
			r->step_index++;
		}
	}
	if (r->step_index == c->steps.n)
		return false;
	r->target = (uint32_t)c->steps.v[r->step_index];
	return true;
}

static bool next_of_search(struct ramp *r)
{
	r->step_index++;
	if (!capacity_next(&r->capacity, &r->probe) && !find_knee_probe(r, &r->probe))
		return false;
	take_probe(r);
	return true;
}

/* What a search that is over came to. */
static enum stop_reason end_of_search(const struct ramp *r, char *text, size_t size)
{
	struct capacity_result slo = capacity_result(&r->capacity, CAPACITY_SLO);
	const json_t *broke = find_breaking(r);

	if (broke) {
		snprintf(text, size, "%s", json_text_at(broke, "text"));
		return stop_reason_of(json_text_at(broke, "reason"));
	}
	if (slo.inconclusive) {
		snprintf(text, size, "%u clients: the SLO was missed while the generator had no more to give, or too few "
			 "samples were taken to tell", slo.failed);
		return STOP_GENERATOR_SATURATED;
	}
	return STOP_MAX_REACHED;
}

bool ramp_next(struct ramp *r, enum stop_reason *reason, char *text, size_t size)
{
	text[0] = '\0';
	if (r->cfg->find_capacity ? next_of_search(r) : next_of_ramp(r))
		return true;
	*reason = r->cfg->find_capacity ? end_of_search(r, text, size) : STOP_MAX_REACHED;
	r->search_done = r->cfg->find_capacity;
	return false;
}

json_t *ramp_next_probe_json(const struct ramp *r)
{
	if (!r->cfg->find_capacity)
		return json_null();
	return json_pack("{s:s, s:s, s:s?, s:b}", "purpose", capacity_purpose_names[r->probe.purpose], "of",
			 r->probe.of == CAPACITY_N ? "knee" : capacity_boundary_names[r->probe.of], "slo",
			 r->cfg->slo.n ? slo_result_names[r->probe.slo] : NULL, "hard_failure", r->probe.broke);
}
