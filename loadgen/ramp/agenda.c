/* SPDX-License-Identifier: BSD-2-Clause */
/* See agenda.h. */
#include "loadgen/ramp/agenda.h"

#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/verdict/slo_judge.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/output/find.h"
#include "loadgen/measurement/step.h"

#define KNEE_PROBES_MAX 6
#define DISTURBED_MAX 2	/* maximum number of times that a disturbed probe is repeated */

/* In a search for a rate, the probe's `clients` are operations per second. */
static void take_probe(struct agenda *a, const struct loadgen_config *c)
{
	if (c->find_rate)
		a->rate = a->probe.clients;
	else
		a->target = a->probe.clients;
	a->repetition = a->probe.repetition;
}

void agenda_init(struct agenda *a, const struct outcome *oc)
{
	memset(a, 0, sizeof(*a));
	a->repetition = 1;
	a->target = (uint32_t)oc->cfg->steps.v[0];
	a->rate = oc->cfg->rates.n ? oc->cfg->rates.v[0] : 0;
	if (loadgen_is_search(oc->cfg) && capacity_next(&oc->capacity, &a->probe))
		take_probe(a, oc->cfg);
}

/* Judges the SLO for the search. Inconclusive if the step was disturbed, or if a saturated generator missed the SLO:
 * neither counts against the server. With some samples, but too few, the step passes, because larger steps will have
 * enough. An offered rate that was not achieved misses the SLO. */
static enum slo_result judge_step(const struct slo *slo, const struct step *s, bool find_rate)
{
	enum slo_result result = slo_judge(slo, s);

	if (step_is_disturbed(s))
		return SLO_INCONCLUSIVE;
	if (find_rate && result != SLO_FAIL && step_is_behind(s))
		result = SLO_FAIL;
	if (result == SLO_FAIL && s->generator_saturated)
		return SLO_INCONCLUSIVE;
	return result == SLO_INCONCLUSIVE && slo_has_samples(slo, s) ? SLO_PASS : result;
}

void agenda_tell(struct agenda *a, struct outcome *oc, const struct step *s, bool broke)
{
	if (!loadgen_is_search(oc->cfg)) {
		memset(&a->probe, 0, sizeof(a->probe));
		a->probe.clients = s->target;
	}
	a->probe.slo = judge_step(&oc->cfg->slo, s, oc->cfg->find_rate);
	a->probe.broke = broke;
	/* A step that broke, or whose rate was too high, cannot become steady: it is not called unsteady for that. */
	a->probe.unsteady = step_is_disturbed(s) || !(s->steady || broke || (oc->cfg->find_rate && step_is_behind(s)));
	/* The search is not told about a disturbed probe, and so asks for the same one again. */
	if (loadgen_is_search(oc->cfg) && step_is_disturbed(s) && !broke && a->disturbed < DISTURBED_MAX) {
		a->disturbed++;
		return;
	}
	a->disturbed = 0;
	if (loadgen_is_search(oc->cfg))
		verdict_add_undisturbed(oc->verdict, s);
	/* Several sizes or rates have no single capacity, and probes for the knee must not reopen a finished search. */
	if (oc->cfg->sizes.n == 1 && (oc->cfg->find_rate || !loadgen_is_swept(oc->cfg)) && a->probe.of != CAPACITY_N)
		capacity_tell(&oc->capacity, &a->probe);
}

/* Goes through all sizes, rates, repetitions and numbers of clients. Sizes change fastest, so that drift over time
 * affects all sizes alike. */
static bool next_of_ramp(struct agenda *a, const struct loadgen_config *c)
{
	if (++a->size_index == c->sizes.n) {
		a->size_index = 0;
		a->rate_index++;
	}
	if (a->rate_index == MAX(c->rates.n, 1)) {
		a->rate_index = 0;
		if (a->repetition++ == c->repeat) {
			a->repetition = 1;
			a->step_index++;
		}
	}
	a->rate = c->rates.n ? c->rates.v[a->rate_index] : 0;
	if (a->step_index == c->steps.n)
		return false;
	a->target = (uint32_t)c->steps.v[a->step_index];
	return true;
}

/* Counts the steps that have this number at `path`. */
static uint32_t times_measured(const json_t *steps, const char *path, double number)
{
	uint32_t n = 0;
	json_t *step;
	size_t i;

	json_array_foreach((json_t *)steps, i, step)
		n += json_number_at(step, path) == number;
	return n;
}

/* Asks for a number of clients beside the knee that was measured only once: the knee is confirmed when the numbers on
 * both sides of it were measured twice. */
static bool next_of_knee(struct agenda *a, const json_t *steps)
{
	struct knee_point points[CURVE_POINTS_MAX];
	struct knee k;
	double clients;

	if (a->knee_probes == KNEE_PROBES_MAX)
		return false;
	knee_find(points, curve_knee_points(steps, points), &k);
	if (k.reason != KNEE_THROUGHPUT && k.reason != KNEE_P99)
		return false;
	clients = times_measured(steps, "target_clients", k.clients) < 2 ? k.clients : k.beyond;
	if (times_measured(steps, "target_clients", clients) >= 2)
		return false;
	a->probe = (struct capacity_probe){ .clients = (uint32_t)clients, .of = CAPACITY_N,
					    .purpose = CAPACITY_CONFIRM };
	a->knee_probes++;
	return true;
}

static bool next_of_search(struct agenda *a, const struct outcome *oc)
{
	a->step_index++;
	if (!capacity_next(&oc->capacity, &a->probe) && (oc->cfg->find_rate || !next_of_knee(a, oc->steps)))
		return false;
	/* Files are named after the repetition, so this also counts disturbed probes, unknown to the search. */
	a->probe.repetition = times_measured(oc->steps, oc->cfg->find_rate ? "offered_per_s" : "target_clients",
					     a->probe.clients) + 1;
	take_probe(a, oc->cfg);
	return true;
}

/* Stops the run with the result of a search that is over. */
static void end_search(struct outcome *oc)
{
	struct capacity_result slo = capacity_result(&oc->capacity, CAPACITY_SLO);
	const json_t *broke = find_breaking(oc);
	const char *what = oc->cfg->find_rate ? "operations a second" : "clients";
	char text[256], hosts[200];

	oc->search_done = true;
	if (broke) {
		outcome_stop(oc, stop_reason_of(json_text_at(broke, "reason")), json_text_at(broke, "text"));
	} else if (slo.inconclusive && *find_hosts_at_limit(oc, slo.upper.clients, hosts, sizeof(hosts))) {
		snprintf(text, sizeof(text), "%u %s: %s", slo.upper.clients, what, hosts);
		outcome_stop(oc, STOP_GENERATOR_SATURATED, text);
	} else if (slo.inconclusive) {
		snprintf(text, sizeof(text), "%u %s: the SLO was missed while the generator had no more to give or "
			 "CPU time was taken away, or too few samples were taken to tell", slo.upper.clients, what);
		outcome_stop(oc, STOP_GENERATOR_SATURATED, text);
	} else {
		outcome_stop(oc, STOP_MAX_REACHED, "");
	}
}

bool agenda_next(struct agenda *a, struct outcome *oc)
{
	if (!loadgen_is_search(oc->cfg)) {
		if (next_of_ramp(a, oc->cfg))
			return true;
		outcome_stop(oc, STOP_MAX_REACHED, "");
		return false;
	}
	if (next_of_search(a, oc))
		return true;
	end_search(oc);
	return false;
}

bool agenda_is_last(const struct agenda *a, const struct loadgen_config *c)
{
	return !loadgen_is_search(c) && a->rate_index + 1 >= c->rates.n && a->size_index + 1 == c->sizes.n &&
		a->repetition == c->repeat &&
	       a->step_index + 1 == c->steps.n;
}

void agenda_add_rest(const struct agenda *a, struct outcome *oc)
{
	const struct opt_list *steps = &oc->cfg->steps;

	if (loadgen_is_search(oc->cfg))
		return;
	for (size_t i = a->step_index + 1; i < steps->n; i++)
		verdict_add_not_reached(oc->verdict, (uint32_t)steps->v[i]);
}

json_t *agenda_probe_json(const struct agenda *a, const struct loadgen_config *c)
{
	if (!loadgen_is_search(c))
		return json_null();
	return json_pack("{s:s, s:s, s:s?, s:b}", "purpose", capacity_purpose_names[a->probe.purpose], "of",
			 c->find_rate ? "slo_rate" : a->probe.of == CAPACITY_N ? "knee" :
			 capacity_boundary_names[a->probe.of], "slo",
			 c->slo.n ? slo_result_names[a->probe.slo] : NULL, "hard_failure", a->probe.broke);
}
