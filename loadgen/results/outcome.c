/* What a run came to. See outcome.h. */
#include "loadgen/results/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "loadgen/judge/verdict.h"
#include "loadgen/results/results.h"
#include "loadgen/step/step.h"

void outcome_init(struct outcome *o, const struct loadgen_config *cfg)
{
	memset(o, 0, sizeof(*o));
	o->cfg = cfg;
	o->steps = json_array();
	o->verdict = json_array();
	o->rows = json_array();
	capacity_init(&o->capacity, cfg->slo.n > 0, (uint32_t)cfg->steps.v[0], (uint32_t)cfg->clients);
	results_time_text(NULL, o->started_at, sizeof(o->started_at));
}

void outcome_clear(struct outcome *o)
{
	json_decref(o->server_info);
	json_decref(o->generator_dev);
	json_decref(o->steps);
	json_decref(o->verdict);
	json_decref(o->rows);
	memset(o, 0, sizeof(*o));
}

void outcome_stop(struct outcome *o, enum stop_reason reason, const char *detail)
{
	if (o->stopping && reason != STOP_ABORTED)
		return;
	o->stopping = true;
	o->stop_reason = reason;
	snprintf(o->stop_detail, sizeof(o->stop_detail), "%s", detail);
}

bool outcome_is_aborted(const struct outcome *o)
{
	return o->stopping && o->stop_reason == STOP_ABORTED;
}

static double ms(const struct hist *h, double p)
{
	return (double)hist_percentile(h, p) / 1e6;
}

static json_t *row_of(const struct step *s)
{
	bool has = hist_count(s->response) > 0;

	return json_pack("{s:i, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}",
		"clients", s->target, "bytes", (json_int_t)s->bytes, "repetition", s->repetition, "held", s->connected_held, "failed",
		s->failed + s->dropped,
		"connect_p50_ms", json_number(hist_count(s->total) ? ms(s->total, 50) : NAN),
		"connect_p99_ms", json_number(hist_supports(s->total, 99) ? ms(s->total, 99) : NAN),
		"messages_per_s", json_number(has ? s->messages_per_s : NAN),
		"mb_per_s", json_number(has ? s->bytes_per_s / 1e6 : NAN),
		"p50_us", json_number(has ? ms(s->response, 50) * 1e3 : NAN),
		"p95_us", json_number(hist_supports(s->response, 95) ? ms(s->response, 95) * 1e3 : NAN),
		"p99_us", json_number(hist_supports(s->response, 99) ? ms(s->response, 99) * 1e3 : NAN),
		"p99_9_us", json_number(hist_supports(s->response, 99.9) ? ms(s->response, 99.9) * 1e3 : NAN),
		"server_cpus", json_number(step_server_cpus(s)), "generator_cpus", json_number(step_generator_cpus(s)),
		"server_rss_mib", json_number(json_number_at(s->end.server, "resources.rss_bytes") / 1048576),
		"steady", s->steady, "generator_saturated", s->generator_saturated);
}

static void add_verdict(struct outcome *o, const struct step *s)
{
	if (!s->started || outcome_is_aborted(o))
		return;
	if (o->cfg->find_capacity) {
		/* A search provokes failures, so the usual criteria do not apply; data must be right all the same. */
		verdict_add_integrity(o->verdict, s);
		verdict_add_undisturbed(o->verdict, s);
		return;
	}
	if (s->generator_failed) {
		verdict_add_not_judged(o->verdict, s, o->stop_detail);
		return;
	}
	verdict_add_step(o->verdict, s);
	verdict_add_slo(o->verdict, &o->cfg->slo, s);
}

void outcome_add_step(struct outcome *o, const struct step *s, json_t *element)
{
	json_array_append_new(o->steps, element);
	json_array_append_new(o->rows, row_of(s));
	add_verdict(o, s);
}
