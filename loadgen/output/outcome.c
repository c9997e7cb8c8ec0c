/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a run. See outcome.h. */
#include "loadgen/output/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/host/res.h"
#include "common/hist/hist.h"
#include "loadgen/analysis/untaken.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/results.h"
#include "loadgen/measurement/series.h"
#include "loadgen/measurement/step.h"

void outcome_init(struct outcome *o, const struct loadgen_config *cfg)
{
	memset(o, 0, sizeof(*o));
	o->cfg = cfg;
	o->steps = json_array();
	o->verdict = json_array();
	o->not_taken = json_array();
	if (cfg->find_rate)
		capacity_init(&o->capacity, true, (uint32_t)cfg->rates.v[0], (uint32_t)cfg->rates.v[1]);
	else
		capacity_init(&o->capacity, cfg->slo.n > 0, (uint32_t)cfg->steps.v[0], (uint32_t)cfg->clients);
	o->capacity.only_slo = cfg->find_rate;
	results_time_text(NULL, o->started_at, sizeof(o->started_at));
}

void outcome_clear(struct outcome *o)
{
	for (uint32_t i = 0; i < TARGETS_MAX; i++)
		json_decref(o->server_infos[i]);
	json_decref(o->generator_dev);
	json_decref(o->generator_place);
	json_decref(o->steps);
	json_decref(o->verdict);
	json_decref(o->not_taken);
	series_free(o->series);
	load_hosts_free(o->hosts);
	json_decref(o->floor_before);
	json_decref(o->floor_after);
	memset(o, 0, sizeof(*o));
}

void outcome_stop(struct outcome *o, enum stop_reason reason, const char *detail)
{
	if (o->stopping && reason != STOP_ABORTED)
		return;
	o->stopping = true;
	o->stop_reason = reason;
	/* `detail` may contain text of another host, cut within a character, which JSON does not accept. */
	utf8_show(detail, o->stop_detail, sizeof(o->stop_detail));
}

bool outcome_is_aborted(const struct outcome *o)
{
	return o->stopping && o->stop_reason == STOP_ABORTED;
}

/* The largest number of clients below `target` that an earlier step held completely; 0: none. */
static uint32_t whole_before(const json_t *steps, uint32_t target)
{
	double most = 0;
	json_t *step;
	size_t i;

	json_array_foreach((json_t *)steps, i, step) {
		double clients = json_number_at(step, "target_clients");

		if (clients < target && clients > most && json_number_at(step, "connected_held") == clients)
			most = clients;
	}
	return (uint32_t)most;
}

static struct verdict_terms terms_of(const struct outcome *o, const struct step *s)
{
	json_t *clients = o->cfg->judge == JUDGE_ALL ? NULL : res_environment_json();
	struct verdict_terms t = { .whole_before = whole_before(o->steps, s->target) };

	if (clients) {
		json_object_set(clients, "rdma_device", o->generator_dev);
		for (uint32_t i = 0; i < loadgen_n_targets(o->cfg) && !t.excuse; i++)
			t.excuse = verdict_excuse(json_object_get(o->server_infos[i], "environment"), clients);
	}
	json_decref(clients);
	return t;
}

static void add_verdict(struct outcome *o, const struct step *s)
{
	char fewest[TARGET_NAME_BYTES + 64], slowest[TARGET_NAME_BYTES + 64];
	struct verdict_terms terms;

	if (!s->started || outcome_is_aborted(o))
		return;
	if (loadgen_is_search(o->cfg)) {
		/* A search provokes failures, so the usual criteria do not apply, but data and PSNs must still be
		 * right. If a probe with holes or stalls is not repeated, agenda_tell adds a criterion for it. */
		verdict_add_integrity(o->verdict, s);
		if (o->cfg->verify || s->psns_shared)
			verdict_add_psns(o->verdict, s);
		return;
	}
	if (s->generator_failed || s->floor != FLOOR_NONE) {
		verdict_add_not_judged(o->verdict, s, o->stop_detail);
		return;
	}
	terms = terms_of(o, s);
	terms.fewest = step_fewest_text(s, o->cfg, fewest, sizeof(fewest));
	terms.slowest = step_slowest_text(s, o->cfg, slowest, sizeof(slowest));
	verdict_add_step(o->verdict, s, &terms);
	verdict_add_slo(o->verdict, &o->cfg->slo, s);
}

static void warn_of_untaken(struct outcome *o, const json_t *step)
{
	json_t *asked = json_pack("{s:o, s:o}", "tuning", tuning_json(&o->cfg->tuning), "tcp",
				  tcp_options_json(&o->cfg->sock.tcp));
	size_t n = 0;
	char text[256];

	for (uint32_t i = 0; i < loadgen_n_targets(o->cfg); i++)
		n += untaken_add(o->not_taken, asked, json_at(o->server_infos[i], "config"), step);
	for (size_t i = json_array_size(o->not_taken) - n; i < json_array_size(o->not_taken); i++)
		log_warn("%s", untaken_text(json_array_get(o->not_taken, i), text, sizeof(text)));
	json_decref(asked);
}

void outcome_add_step(struct outcome *o, const struct step *s, json_t *element)
{
	warn_of_untaken(o, element);
	json_array_append_new(o->steps, element);
	add_verdict(o, s);
}
