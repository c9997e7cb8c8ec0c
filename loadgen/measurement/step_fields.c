/* SPDX-License-Identifier: BSD-2-Clause */
/* See step_fields.h. */
#include "loadgen/measurement/step_fields.h"

#include <stdio.h>
#include <string.h>

#define FIELDS(of, field, type, rule, n) { #field, offsetof(of, field), type, rule, n }
#define FIELD(field, type, rule) FIELDS(struct step, field, type, rule, 1)
#define MOMENT(name, field) { name, offsetof(struct step_moment, field), STEP_U64, STEP_ADD, 1 }

const struct step_field step_fields[] = {
#define X(type, name, rule) FIELD(name, type, rule),
	STEP_SUMS(X)
#undef X
#define X(type, name, rule, path) FIELD(name, type, rule),
	STEP_COUNTERS(X)
#undef X
	FIELDS(struct step, phase_ns, STEP_U64, STEP_MAX, STAGE_TIMED),
	FIELDS(struct step, kind_per_s, STEP_REAL, STEP_ADD, WORKLOAD_KINDS_MAX),
	FIELDS(struct step, stream_took_ns, STEP_REAL, STEP_ADD, WORKLOAD_STREAMS_MAX),
	FIELDS(struct step, stream_waited_ns, STEP_REAL, STEP_ADD, WORKLOAD_STREAMS_MAX),
	{ .name = NULL },
};

const struct step_field step_moment_fields[] = {
	MOMENT("cpu_user_ns", generator.cpu_user_ns),
	MOMENT("cpu_system_ns", generator.cpu_system_ns),
	MOMENT("switches_voluntary", generator.switches_voluntary),
	MOMENT("switches_involuntary", generator.switches_involuntary),
	MOMENT("rss_bytes", generator.rss_bytes),
	MOMENT("fds", generator.fds),
	MOMENT("threads", generator.threads),
	MOMENT("requests", work.requests),
	MOMENT("doorbells", work.doorbells),
	MOMENT("signalled", work.signalled),
	MOMENT("polls", work.polls),
	MOMENT("empty_polls", work.empty_polls),
	MOMENT("completions", work.completions),
	MOMENT("payload_bytes", payload_bytes),
	MOMENT("one_sided_bytes", one_sided_bytes),
	{ .name = NULL },
};

#define TARGET(field, type) FIELDS(struct step_target, field, type, STEP_ADD, 1)
const struct step_field step_target_fields[] = {
	TARGET(clients, STEP_U32),
	TARGET(attempted, STEP_U32),
	TARGET(connected_peak, STEP_U32),
	TARGET(connected_held, STEP_U32),
	TARGET(failed, STEP_U32),
	TARGET(dropped, STEP_U32),
	TARGET(messages_per_s, STEP_REAL),
	{ .name = NULL },
};

#define FAIRNESS(field, type, rule) FIELDS(struct step_fairness, field, type, rule, 1)
const struct step_field step_fairness_fields[] = {
	FAIRNESS(clients, STEP_U64, STEP_ADD),
	FAIRNESS(sum, STEP_REAL, STEP_ADD),
	FAIRNESS(squares, STEP_REAL, STEP_ADD),
	FAIRNESS(min, STEP_U64, STEP_ADD),
	FAIRNESS(max, STEP_U64, STEP_MAX),
	{ .name = NULL },
};

static const size_t sizes[] = { [STEP_U32] = sizeof(uint32_t), [STEP_U64] = sizeof(uint64_t),
				[STEP_REAL] = sizeof(double),
				[STEP_FLAG] = sizeof(bool), [STEP_FLOOR] = sizeof(enum step_floor) };

static const char *value_at(const struct step_field *f, const void *base, uint32_t i)
{
	return (const char *)base + f->offset + i * sizes[f->type];
}

double step_field_get(const struct step_field *f, const void *base, uint32_t i)
{
	double real;

	if (f->type != STEP_REAL)
		return (double)step_field_get_whole(f, base, i);
	memcpy(&real, value_at(f, base, i), sizeof(real));
	return real;
}

uint64_t step_field_get_whole(const struct step_field *f, const void *base, uint32_t i)
{
	const void *p = value_at(f, base, i);

	switch (f->type) {
	case STEP_U32: return *(const uint32_t *)p;
	case STEP_U64: return *(const uint64_t *)p;
	case STEP_FLAG: return *(const bool *)p;
	case STEP_FLOOR: return *(const enum step_floor *)p;
	case STEP_REAL: break;
	}
	return 0;
}

void step_field_set(const struct step_field *f, void *base, uint32_t i, double real, uint64_t whole)
{
	void *p = (char *)base + f->offset + i * sizes[f->type];

	switch (f->type) {
	case STEP_U32: *(uint32_t *)p = (uint32_t)whole; break;
	case STEP_U64: *(uint64_t *)p = whole; break;
	case STEP_FLAG: *(bool *)p = whole; break;
	case STEP_FLOOR: *(enum step_floor *)p = (enum step_floor)whole; break;
	case STEP_REAL: *(double *)p = real; break;
	}
}

uint64_t step_field_most(const struct step_field *f)
{
	switch (f->type) {
	case STEP_U32: return UINT32_MAX;
	case STEP_FLAG: return 1;
	case STEP_FLOOR: return FLOOR_CPU;
	case STEP_U64:
	case STEP_REAL: break;
	}
	return STEP_WHOLE_MOST;
}

const char *step_hist_name(size_t i, char name[STEP_HIST_NAME])
{
	static const char *const kinds[HANDSHAKE_N] = { "full", "resumed" };
	static const char *const others[] = { "psn_generate", "away", "outage", "response", "service", "lag" };
	size_t stages = HANDSHAKE_N * STAGE_TIMED, totals = stages + HANDSHAKE_N;

	if (i < stages)
		snprintf(name, STEP_HIST_NAME, "%s.%s", kinds[i / STAGE_TIMED], stage_names[i % STAGE_TIMED]);
	else if (i < totals)
		snprintf(name, STEP_HIST_NAME, "%s.total", kinds[i - stages]);
	else if (i < totals + WORKLOAD_KINDS_MAX)
		snprintf(name, STEP_HIST_NAME, "kind.%zu", i - totals);
	else
		snprintf(name, STEP_HIST_NAME, "%s", others[i - totals - WORKLOAD_KINDS_MAX]);
	return name;
}
