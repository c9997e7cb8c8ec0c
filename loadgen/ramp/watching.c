/* SPDX-License-Identifier: BSD-2-Clause */
/* See watching.h. */
#include "loadgen/ramp/watching.h"

#include <stdio.h>
#include <string.h>

#include "client/control.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/output/results.h"

/* Seconds to wait before a broken session is made again. */
#define RETRY_S 2.

/* Keeps a sample. `target` matters for SIDE_SERVER only. */
static void keep_sample(struct watching *w, enum series_side side, uint32_t target, const struct sample *sample)
{
	bool one_of_several = side == SIDE_SERVER && w->n_servers > 1;
	enum series_side at = one_of_several ? series_server(target, w->n_servers) : side;
	json_t *o = sample_json(sample);

	series_add(w->series, at, results_elapsed_s(w->results), sample);
	json_object_set_new(o, "side", json_string(series_side_names[side]));
	if (one_of_several)
		json_object_set_new(o, "target", json_string(w->cfg->targets.v[target].name));
	results_event(w->results, "resources", o);
	if (w->on_sample)
		w->on_sample(w->sample_arg, side, target, sample);
}

static void take_samples(struct watching *w)
{
	const struct crew *crew = w->crew;
	struct sample now;

	sampler_take(w->sampler, &now);
	now.v[SAMPLE_QPS] = (double)CREW_SUM(crew, qps);
	now.v[SAMPLE_CQS] = (double)CREW_SUM(crew, cqs);
	now.v[SAMPLE_MRS] = (double)CREW_SUM(crew, mrs);
	now.v[SAMPLE_CONNECTED] = (double)CREW_SUM(crew, live);
	now.v[SAMPLE_HANDSHAKES] = (double)CREW_SUM(crew, connecting);
	now.v[SAMPLE_COMPLETIONS] = (double)CREW_SUM(crew, completions);
	now.v[SAMPLE_POLLS] = (double)CREW_SUM(crew, polls);
	now.v[SAMPLE_WAKEUPS] = (double)CREW_SUM(crew, wakeups);
	keep_sample(w, SIDE_GENERATOR, 0, &now);
}

static void on_due(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	take_samples(t->data);
}

static void tell_first(struct watched *s)
{
	struct watching *w = s->watching;
	void (*on_first)(void *) = w->on_first;

	s->told = true;
	for (uint32_t i = 0; i < w->n_servers; i++)
		if (!w->servers[i].told)
			return;
	w->on_first = NULL;
	if (on_first)
		on_first(w->arg);
}

static void on_report(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	struct watched *s = arg;
	struct watching *w = s->watching;
	bool named = w->n_servers > 1;
	struct sample sample;
	char code[96];

	if (report) {
		s->warned = false;
		sample_read(report, &sample);
		keep_sample(w, SIDE_SERVER, s->target, &sample);
		tell_first(s);
		return;
	}
	if (!s->warned)
		log_warn("the server's resources cannot be watched%s%s: %s%s%s; trying again", named ? " at " : "",
			 named ? w->cfg->targets.v[s->target].name : "", fail_code_text(fail, code, sizeof(code)),
			 *text ? ": " : "", text);
	s->warned = true;
	ev_timer_again(w->loop, &s->retry);
	tell_first(s);
}

static void watch(struct watched *s)
{
	/* control_watch returns false if the session watches already. */
	if (s->control && !control_watch(s->control, (uint16_t)(s->watching->cfg->sample_interval_ns / NS_PER_MS)))
		log_debug("the server is watched already");
}

static void on_retry(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)revents;
	ev_timer_stop(loop, t);
	watch(t->data);
}

static void begin_watching(struct watched *s, const struct control_config *server)
{
	struct watching *w = s->watching;
	char err[256];

	if (w->sampler && control_new(server, w->loop, on_report, s, &s->control, err, sizeof(err)))
		log_warn("the server's resources cannot be watched: %s", err);
	if (s->control)
		watch(s);
	else
		tell_first(s);
}

void watching_servers(struct watching *w, const struct control_config *servers, uint32_t n, void (*on_first)(void *arg),
		      void *arg)
{
	watching_forget_servers(w);
	w->on_first = on_first;
	w->arg = arg;
	w->n_servers = n;
	for (uint32_t i = 0; i < n; i++) {
		w->servers[i] = (struct watched){ .watching = w, .target = i };
		ev_timer_init(&w->servers[i].retry, on_retry, 0., RETRY_S);
		w->servers[i].retry.data = &w->servers[i];
	}
	for (uint32_t i = 0; i < n; i++)
		begin_watching(&w->servers[i], &servers[i]);
}

void watching_forget_servers(struct watching *w)
{
	w->on_first = NULL;
	for (uint32_t i = 0; i < w->n_servers; i++) {
		ev_timer_stop(w->loop, &w->servers[i].retry);
		control_free(w->servers[i].control);
		w->servers[i].control = NULL;
	}
	w->n_servers = 0;
}

int watching_start(struct watching *w, const struct loadgen_config *cfg, struct ev_loop *loop, struct results *results,
		   struct series *series, const struct crew *crew)
{
	double interval_s = (double)cfg->sample_interval_ns / 1e9;
	int ret;

	*w = (struct watching){ .cfg = cfg, .loop = loop, .results = results, .series = series, .crew = crew };
	if (!cfg->sample_interval_ns)
		return 0;
	ret = sampler_new("", &w->sampler);
	if (ret)
		return ret;
	ev_timer_init(&w->due, on_due, 0., interval_s);
	w->due.data = w;
	ev_timer_start(loop, &w->due);
	return 0;
}

void watching_stop(struct watching *w)
{
	if (!w->loop)
		return;
	watching_forget_servers(w);
	if (w->sampler) {
		take_samples(w);
		ev_timer_stop(w->loop, &w->due);
	}
	sampler_free(w->sampler);
	w->sampler = NULL;
}
