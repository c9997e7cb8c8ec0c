/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers under test. See suts.h. */
#include "loadgen/server_under_test/suts.h"

#include <math.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "loadgen/measurement/report_sum.h"

static void on_ready(void *arg)
{
	const struct suts_one *o = arg;

	o->all->events->on_ready(o->all->arg);
}

/* The only answer, or the sum of all: a new reference. NULL for INFO of several, or if answers cannot be added. */
static json_t *sum_of(const struct suts *s, enum control_what what)
{
	json_t *answers[TARGETS_MAX];

	for (uint32_t i = 0; i < s->n; i++)
		answers[i] = s->one[i].answers[what];
	if (s->n == 1)
		return json_incref(answers[0]);
	return what == CONTROL_INFO ? NULL : json_sum(answers, s->n, report_adds);
}

static bool have_answered(const struct suts *s, enum control_what what)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->one[i].answers[what])
			return false;
	return true;
}

/* Drops answers to a request that a newer one of the same kind has replaced. */
static void on_report(void *arg, enum control_what what, uint32_t number, json_t *report)
{
	struct suts_one *o = arg;
	struct suts *s = o->all;
	json_t *sum;

	if (number != s->numbers[what])
		return;
	json_decref(o->answers[what]);
	o->answers[what] = json_incref(report);
	s->events->on_report(s->arg, o->index, what, number, report);
	if (!have_answered(s, what))
		return;
	sum = sum_of(s, what);
	s->events->on_reports(s->arg, what, number, sum);
	json_decref(sum);
}

/* Puts the server's name before `why` if there are several servers. */
static const char *named(const struct suts_one *o, const char *why, char *text, size_t size)
{
	const char *name = suts_name(o->all, o->index);

	snprintf(text, size, "%s%s%s", name, *name ? ": " : "", why);
	return text;
}

static void on_lost(void *arg, const char *why)
{
	const struct suts_one *o = arg;
	char text[512];

	o->all->events->on_lost(o->all->arg, named(o, why, text, sizeof(text)));
}

static void on_exit_of_ours(void *arg, const char *why)
{
	const struct suts_one *o = arg;

	o->all->events->on_exit(o->all->arg, why);
}

static const struct sut_events sut_events = {
	.on_ready = on_ready,
	.on_report = on_report,
	.on_lost = on_lost,
	.on_exit = on_exit_of_ours,
};

void suts_init(struct suts *s, const struct loadgen_config *cfg, const char *log, struct ev_loop *loop,
	       const struct suts_events *events, void *arg)
{
	*s = (struct suts){ .cfg = cfg, .events = events, .arg = arg, .n = loadgen_n_targets(cfg) };
	for (uint32_t i = 0; i < s->n; i++) {
		s->one[i] = (struct suts_one){ .all = s, .index = i };
		sut_init(&s->one[i].sut, cfg, s->n > 1 ? &cfg->targets.v[i] : NULL, log, loop, &sut_events, &s->one[i]);
	}
}

static void forget(struct suts_one *o, enum control_what what)
{
	json_decref(o->answers[what]);
	o->answers[what] = NULL;
}

void suts_clear(struct suts *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		sut_clear(&s->one[i].sut);
		for (int what = 0; what < SUT_QUESTIONS; what++)
			forget(&s->one[i], (enum control_what)what);
	}
}

/* There is at most one server of our own. */
int suts_start(struct suts *s, char *err, size_t err_size)
{
	suts_clear(s);
	return sut_start(&s->one[0].sut, err, err_size);
}

bool suts_stop(struct suts *s)
{
	return sut_stop(&s->one[0].sut);
}

int suts_find(struct suts *s, char *err, size_t err_size)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->n && !ret; i++)
		ret = sut_find(&s->one[i].sut, err, err_size);
	return ret;
}

int suts_connect(struct suts *s, char *err, size_t err_size)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->n && !ret; i++)
		ret = sut_connect(&s->one[i].sut, err, err_size);
	return ret;
}

void suts_disconnect(struct suts *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		sut_disconnect(&s->one[i].sut);
}

/* Forgets all old answers before the first request, because a server may answer at once. */
void suts_ask(struct suts *s, enum control_what what, uint32_t number)
{
	s->numbers[what] = number;
	for (uint32_t i = 0; i < s->n; i++)
		forget(&s->one[i], what);
	for (uint32_t i = 0; i < s->n; i++)
		sut_ask(&s->one[i].sut, what, number);
}

void suts_send_next(struct suts *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		sut_send_next(&s->one[i].sut);
}

bool suts_are_idle(const struct suts *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!sut_is_idle(&s->one[i].sut))
			return false;
	return true;
}

void suts_places(const struct suts *s, struct sut_place out[TARGETS_MAX])
{
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t k = 0; k < RAILS_MAX; k++) {
			out[i].addrs[k] = s->one[i].sut.addrs[k];
			out[i].names[k] = s->one[i].sut.names[k];
		}
}

const char *suts_name(const struct suts *s, uint32_t target)
{
	return s->n > 1 ? s->cfg->targets.v[target].name : "";
}

uint32_t suts_reconnects(const struct suts *s)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < s->n; i++)
		sum += s->one[i].sut.reconnects;
	return sum;
}

uint32_t suts_restarts(const struct suts *s)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < s->n; i++)
		sum += s->one[i].sut.restarts;
	return sum;
}

bool suts_are_gone(const struct suts *s)
{
	return s->one[0].sut.gone;
}

bool suts_are_waiting(const struct suts *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->one[i].sut.backoff.lost_ns)
			return true;
	return false;
}

uint64_t suts_last_report_ns(const struct suts *s)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < s->n; i++)
		first = MIN(first, s->one[i].sut.last_report_ns);
	return first;
}

json_t *suts_baseline_of(const struct suts *s, uint32_t target)
{
	return s->one[target].sut.baseline;
}

json_t *suts_baseline(const struct suts *s)
{
	json_t *of[TARGETS_MAX];

	for (uint32_t i = 0; i < s->n; i++)
		of[i] = s->one[i].sut.baseline;
	return s->n == 1 ? json_incref(of[0]) : json_sum(of, s->n, report_adds);
}

enum step_pools suts_pools(const struct suts *s, uint32_t target)
{
	const struct sut *sut = &s->one[target].sut;
	const json_t *now = s->one[target].answers[CONTROL_STATS];

	if (!now || !sut->baseline)
		return POOLS_UNKNOWN;
	return sut_is_restored(sut, now) ? POOLS_RESTORED : POOLS_NOT_RESTORED;
}

/* An unreported limit does not bound the number of clients. */
static uint64_t room_of(const json_t *info, const json_t *baseline)
{
	double most = json_number_at(info, "config.max_clients"), held = json_number_at(baseline, "pools.admitted");
	double of_one_address = json_number_at(info, "config.max_per_address");

	if (held > 0)
		most -= held;
	if (of_one_address > 0)
		most = fmin(most, of_one_address);
	return most >= 0 && most < 1e9 ? (uint64_t)most : most < 0 ? 0 : UINT32_MAX;
}

void suts_room(const struct suts *s, json_t *const infos[TARGETS_MAX], uint64_t out[TARGETS_MAX])
{
	for (uint32_t i = 0; i < s->n; i++)
		out[i] = room_of(infos[i], s->one[i].sut.baseline) / s->one[i].sut.cfg->qps;
}
