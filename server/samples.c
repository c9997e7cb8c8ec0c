/* SPDX-License-Identifier: BSD-2-Clause */
/* See samples.h. */
#include "server/samples.h"

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/host/sample.h"
#include "server/report.h"

#define NEW_NS (50 * NS_PER_MS)

static const struct {
	enum sample_figure figure;
	size_t offset;	/* in struct stats */
} gauges[] = {
	{ SAMPLE_QPS, offsetof(struct stats, qps) },
	{ SAMPLE_CQS, offsetof(struct stats, cqs) },
	{ SAMPLE_MRS, offsetof(struct stats, mrs) },
	{ SAMPLE_CONNECTED, offsetof(struct stats, connected) },
	{ SAMPLE_HANDSHAKES, offsetof(struct stats, handshakes) },
	{ SAMPLE_COMPLETIONS, offsetof(struct stats, completions) },
	{ SAMPLE_POLLS, offsetof(struct stats, polls) },
	{ SAMPLE_WAKEUPS, offsetof(struct stats, wakeups) },
};

void samples_begin(struct samples *s)
{
	s->watchers++;
}

void samples_end(struct samples *s)
{
	if (--s->watchers)
		return;
	sampler_free(s->sampler);
	s->sampler = NULL;
	json_decref(s->newest);
	s->newest = NULL;
}

static json_t *make_sample(struct samples *s)
{
	struct sample now;
	json_t *o;

	if (!s->sampler && sampler_new("", &s->sampler))
		return NULL;
	sampler_take(s->sampler, &now);
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		now.v[gauges[i].figure] = (double)report_sum(s->server, gauges[i].offset);
	(void)json_memory_was_short();
	o = sample_json(&now);
	if (!json_memory_was_short())
		return o;
	json_decref(o);
	return NULL;
}

json_t *samples_take(struct samples *s)
{
	uint64_t now = clock_now_ns();

	if (s->newest && now - s->newest_ns < NEW_NS)
		return s->newest;
	json_decref(s->newest);
	s->newest = make_sample(s);
	s->newest_ns = now;
	return s->newest;
}
