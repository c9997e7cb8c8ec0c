/* SPDX-License-Identifier: BSD-2-Clause */
/* See steps.h. */
#include "loadgen/ramp/steps.h"

#include "common/base/log.h"
#include "loadgen/ramp/step_record.h"

/* Maximum number of times that a search restarts a server that ended; when it ends again, the search ends. */
#define RESTARTS_MAX 8

void steps_stop_without_memory(struct ramp *r)
{
	outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "this machine is out of memory");
	log_error("%s: the run ends", r->outcome->stop_detail);
}

/* Every step is prepared here, so that its parameters are checked before any message is made from them. */
bool steps_prepare(struct ramp *r, const struct step_figures *f)
{
	char why[256];

	if (workload_check_step(r->cfg, f, why, sizeof(why))) {
		gates_quit(r, why);
		ramp_enter(r, RAMP_STOP);
		return false;
	}
	if (current_begin(&r->current, &r->crew, f->bytes, (uint32_t)f->repetition, &r->suts)) {
		steps_stop_without_memory(r);
		ramp_enter(r, RAMP_STOP);
		return false;
	}
	r->current.step->rate = f->rate;
	r->measured_arrived = r->measured_all = r->measured_released = false;
	series_begin_step(r->outcome->series);
	return true;
}

void steps_begin(struct ramp *r)
{
	const struct agenda *a = &r->agenda;
	struct step_figures f = { .clients = a->target, .bytes = r->cfg->sizes.v[a->size_index],
				  .repetition = a->repetition, .rate = a->rate };

	current_deal(&r->current, a->target, &r->suts, r->outcome->server_infos);
	if (!steps_prepare(r, &f))
		return;
	gates_announce(r);
	ramp_enter(r, RAMP_MARK);
}

static bool makes_follow_up(const struct ramp *r)
{
	const struct step *s = r->current.step;

	return r->cfg->floor && !loadgen_is_search(r->cfg) && s->started && !r->outcome->stopping &&
	       !suts_are_gone(&r->suts) && !s->generator_failed &&
	       (!step_is_stable(s) || agenda_is_last(&r->agenda, r->cfg));
}

/* Starts another server for the next step, because ours has ended. Its workers are made when it is ready. */
static void restart_server(struct ramp *r)
{
	char err[256];

	watching_forget_servers(&r->watching);
	crew_dismiss(&r->crew);
	json_decref(r->outcome->generator_dev);
	r->outcome->generator_dev = NULL;
	json_decref(r->outcome->generator_place);
	r->outcome->generator_place = NULL;
	progress_clear(&r->progress);
	log_warn("%s: starting another server for the next step", r->outcome->stop_detail);
	ramp_enter(r, RAMP_SERVER);
	if (suts_start(&r->suts, err, sizeof(err))) {
		outcome_stop(r->outcome, STOP_SERVER_LOST, err);
		ramp_enter(r, RAMP_STOP);
	}
}

/* True if a search goes on, with fewer clients, after a machine reached a floor. */
static bool goes_on_below_floor(const struct ramp *r)
{
	enum stop_reason why = r->outcome->stop_reason;

	return r->cfg->find_capacity && (why == STOP_MEMORY_FLOOR || why == STOP_CPU_FLOOR);
}

/* Records the step, then begins the next one or ends the run. */
void steps_conclude(struct ramp *r)
{
	struct outcome *oc = r->outcome;
	bool restart;

	record_step(r);
	/* If the server that a search started has ended, the search goes on with a new one. */
	restart = oc->stopping && loadgen_is_search(r->cfg) && !r->cfg->server && oc->stop_reason == STOP_SERVER_LOST &&
		  r->restarts++ < RESTARTS_MAX;
	if (oc->stopping && !restart && !goes_on_below_floor(r)) {
		agenda_add_rest(&r->agenda, oc);
		ramp_enter(r, RAMP_STOP);
		return;
	}
	oc->stopping = false;
	if (!agenda_next(&r->agenda, oc))
		ramp_enter(r, RAMP_STOP);
	else if (restart)
		restart_server(r);
	else
		steps_begin(r);
}

void steps_end(struct ramp *r)
{
	if (makes_follow_up(r))
		ramp_enter(r, RAMP_FOLLOW_UP);
	else
		steps_conclude(r);
}
