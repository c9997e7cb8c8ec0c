/* SPDX-License-Identifier: BSD-2-Clause */
/* See step_record.h. */
#include "loadgen/ramp/step_record.h"

#include <stdio.h>

#include "loadgen/verdict/breaking.h"
#include "loadgen/verdict/slo_judge.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/results.h"
#include "loadgen/cluster/team.h"
#include "loadgen/measurement/step_pack.h"

static double least_memory(const struct ramp *r, enum series_side side)
{
	return series_peak(r->outcome->series, side)->v[SAMPLE_AVAILABLE_BYTES];
}

/* Looks for a machine that was short of memory in the step: first among the servers, then this one. */
static struct breaking_memory short_of_memory(const struct ramp *r)
{
	struct breaking_memory m = { .of_server = true };

	for (uint32_t i = 0; i < r->suts.n; i++)
		if (floors_memory_was_short(&r->floors, floors_server(i), least_memory(r, series_server(i, r->suts.n)),
					    m.text, sizeof(m.text)))
			return m;
	m.of_server = false;
	(void)floors_memory_was_short(&r->floors, FLOORS_GENERATOR, least_memory(r, SIDE_GENERATOR), m.text,
				      sizeof(m.text));
	return m;
}

/* Describes what broke in the step; null: nothing. A ramp ends with the first step that broke; a search goes on. */
static json_t *judge_step(const struct ramp *r)
{
	const struct step *s = r->current.step;
	const struct breaking_memory memory = short_of_memory(r);
	struct outcome *oc = r->outcome;
	enum stop_reason reason;
	struct breaking broke;
	char text[256];

	if (outcome_is_aborted(oc))
		return json_null();
	reason = stop_judge_step(s, text, sizeof(text));
	if (oc->stopping && (oc->stop_reason == STOP_SERVER_LOST || oc->stop_reason == STOP_HOST_LOST ||
			     s->generator_failed || s->floor != FLOOR_NONE)) {
		reason = oc->stop_reason;
		snprintf(text, sizeof(text), "%s", oc->stop_detail);
	}
	if (reason == STOP_NOT)
		return json_null();
	if (!loadgen_is_search(oc->cfg))
		outcome_stop(oc, reason, text);
	breaking_of(s, reason, text, &memory, &broke);
	return breaking_json(&broke);
}

/* The step's element of run.json. */
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

/* Peaks of several processes occur at different moments and cannot be added: each host hands in its own. */
static void take_peaks(const struct ramp *r)
{
	struct step *s = r->current.step;

	for (int i = 0; i < SIDE_N; i++)
		if (i == SIDE_SERVER || s->hosts.n == 0)
			s->peak[i] = *series_peak(r->outcome->series, (enum series_side)i);
	for (uint32_t i = 0; i < s->n_targets; i++)
		s->targets[i].peak = *series_peak(r->outcome->series, series_server(i, r->suts.n));
}

void record_collect(struct ramp *r)
{
	const struct crew *crew = &r->crew;

	/* If no client was told to connect, the workers still hold the previous step's figures. */
	if (!r->current.step->started)
		return;
	step_collect(r->current.step, crew->workers, crew->n, r->cfg);
	step_keep_lost(r->current.step);
	take_peaks(r);
	for (uint32_t i = 0; i < crew->n; i++)
		if (worker_failure(crew->workers[i], NULL))
			step_count_gone(r->current.step, i, worker_stats(crew->workers[i]));
	step_files_trace(&r->files, r->current.step, crew->workers, crew->n);
}

json_t *record_hand_in(const struct ramp *r)
{
	const struct step *s = r->current.step;
	const struct team *t = r->team;

	return json_pack("{s:o, s:o, s:I, s:I}", "step", step_pack(s, r->cfg, r->crew.workers, r->crew.n), "measure_ns",
			 s->begin.now_ns ? json_integer(team_clock(t, s->begin.now_ns)) : json_null(),
			 "clock_offset_ns", (json_int_t)cluster_clock_offset_ns(t->cluster), "clock_error_ns",
			 (json_int_t)cluster_clock_error_ns(t->cluster));
}

static int64_t whole_at(const json_t *note, const char *name)
{
	return json_integer_value(json_object_get(note, name));
}

/* When a host started to measure, by the leader's clock. */
static int64_t measure_at(const json_t *note)
{
	return json_is_integer(json_object_get(note, "measure_ns")) ? whole_at(note, "measure_ns") :
		LOAD_HOSTS_NOT_STARTED;
}

void record_merge(struct ramp *r)
{
	struct step *own = r->current.step, *all;
	char err[256], where[320];

	uint64_t skew_ns;

	if (!r->team)
		return;
	if (step_merge_begin(own, r->current.total, &all)) {
		outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "this machine is out of memory");
		return;
	}
	load_hosts_begin_step(r->outcome->hosts, (uint32_t)json_array_size(r->outcome->steps));
	for (uint32_t i = 0; i < r->team->n; i++) {
		const json_t *note = team_note(r->team, r->step_number, "counted", i),
			*packed = json_object_get(note, "step");

		if (!note)
			continue;
		if (step_merge(all, i, packed, err, sizeof(err))) {
			snprintf(where, sizeof(where), "host %u (%.64s) handed in results that cannot be read: %.150s",
				 i, team_host_name(r->team, i), err);
			outcome_stop(r->outcome, STOP_HOST_LOST, where);
			continue;
		}
		load_hosts_clock(r->outcome->hosts, i, whole_at(note, "clock_offset_ns"),
				 (uint64_t)whole_at(note, "clock_error_ns"));
		load_hosts_step(r->outcome->hosts, i, packed, measure_at(note));
	}
	if (load_hosts_end_step(r->outcome->hosts, &skew_ns)) {
		all->hosts.start_skew_ns = skew_ns;
		all->hosts.max_skew_ns = r->team->max_skew_ns;
	}
	all->hosts.host_lost = r->team->n_lost > 0;
	step_free(own);
	r->current.step = all;
	team_forget(r->team, r->step_number, "counted");
}

void record_step(struct ramp *r)
{
	struct step *s = r->current.step;
	json_t *o, *broke;

	take_peaks(r);
	broke = judge_step(r);
	/* A failure of the generator says nothing about the server's capacity. */
	if (s->started && !outcome_is_aborted(r->outcome) && !s->generator_failed)
		agenda_tell(&r->agenda, r->outcome, s, json_is_object(broke));
	o = describe_step(r);
	json_object_set_new(o, "hard_failure", broke);
	json_object_set_new(o, "probe", agenda_probe_json(&r->agenda, r->cfg));
	outcome_add_step(r->outcome, s, o);
	results_event(r->results, "step_end", json_pack("{s:i, s:i, s:i, s:i}", "clients", s->target,
		"held", s->connected_held, "failed", s->failed, "dropped", s->dropped));
	current_end(&r->current);
}
