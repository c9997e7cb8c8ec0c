/* See record.h. */
#include "loadgen/ramp/record.h"

#include <stdio.h>

#include "loadgen/judge/breaking.h"
#include "loadgen/judge/slo_judge.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/results/results.h"

/* What broke in the step, or null. A ramp ends with the first step that broke; a search goes on. */
static json_t *judge_step(struct outcome *oc, const struct step *s)
{
	enum stop_reason reason;
	struct breaking broke;
	char text[256];

	if (outcome_is_aborted(oc))
		return json_null();
	reason = stop_judge_step(s, text, sizeof(text));
	if (oc->stopping && (oc->stop_reason == STOP_SERVER_LOST || s->generator_failed)) {
		reason = oc->stop_reason;
		snprintf(text, sizeof(text), "%s", oc->stop_detail);
	}
	if (reason == STOP_NOT)
		return json_null();
	if (!oc->cfg->find_capacity)
		outcome_stop(oc, reason, text);
	breaking_of(s, reason, text, &broke);
	return breaking_json(&broke);
}

/* The step as run.json has it. */
static json_t *describe_step(const struct ramp *r)
{
	const struct step *s = r->current.step;
	json_t *o = step_json(s, r->cfg, r->crew.workers, r->crew.n);

	json_object_set_new(o, "started_s", json_real(r->current.begin_s));
	json_object_set_new(o, "ended_s", json_real(results_elapsed_s(r->results)));
	json_object_set_new(o, "slo", slo_json(&r->cfg->slo, s));
	json_object_set_new(o, "histograms", step_files_histograms(&r->files, s, r->current.connect_start_ns));
	return o;
}

static void collect(struct ramp *r)
{
	const struct crew *crew = &r->crew;

	step_collect(r->current.step, crew->workers, crew->n, r->cfg);
	for (uint32_t i = 0; i < crew->n; i++)
		if (worker_failure(crew->workers[i], NULL))
			step_count_gone(r->current.step, worker_stats(crew->workers[i]));
}

void record_step(struct ramp *r)
{
	struct step *s = r->current.step;
	json_t *o, *broke;

	/* If no client was told to connect, the workers still hold the figures of the step before. */
	if (s->started)
		collect(r);
	broke = judge_step(r->outcome, s);
	/* A failure of the generator says nothing about the server's capacity. */
	if (s->started && !outcome_is_aborted(r->outcome) && !s->generator_failed)
		agenda_tell(&r->agenda, r->outcome, s, json_is_object(broke));
	o = describe_step(r);
	json_object_set_new(o, "hard_failure", broke);
	json_object_set_new(o, "probe", agenda_probe_json(&r->agenda, r->cfg));
	outcome_add_step(r->outcome, s, o);
	step_files_trace(&r->files, s, r->crew.workers, r->crew.n);
	results_event(r->results, "step_end", json_pack("{s:i, s:i, s:i, s:i}", "clients", s->target,
		"held", s->connected_held, "failed", s->failed, "dropped", s->dropped));
	current_end(&r->current);
}
