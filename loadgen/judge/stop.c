/* Why a run ended. See stop.h. */
#include "loadgen/judge/stop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/frame.h"
#include "loadgen/step/step.h"

const char *const stop_reason_names[] = {
	[STOP_NOT] = "none",
	[STOP_MAX_REACHED] = "max_reached",
	[STOP_ERROR_RATE] = "error_rate",
	[STOP_STEP_TIMEOUT] = "step_timeout",
	[STOP_RESOURCE_EXHAUSTED] = "resource_exhausted",
	[STOP_ABORTED] = "aborted",
	[STOP_SERVER_LOST] = "server_lost",
	[STOP_GENERATOR_FAILED] = "generator_failed",
	[STOP_GENERATOR_SATURATED] = "generator_saturated",
};
static_assert(sizeof(stop_reason_names) / sizeof(stop_reason_names[0]) == STOP_N, "a name per reason");

enum stop_reason stop_reason_of(const char *name)
{
	for (int i = 0; name && i < STOP_N; i++)
		if (strcmp(name, stop_reason_names[i]) == 0)
			return (enum stop_reason)i;
	return STOP_NOT;
}

static void describe_failure(const struct step *s, const struct fail *f, const char *side, char *text,
			     size_t size)
{
	char code[96];

	if (f)
		snprintf(text, size, "%u clients: %u not held; %s at %s%s: %s", s->target,
			 s->target - s->connected_held, fail_code_text(f, code, sizeof(code)),
			 stage_names[f->stage], side, fail_advice(f));
	else
		snprintf(text, size, "%u clients: %u of them were not held", s->target,
			 s->target - s->connected_held);
}

static bool is_generator_shortage(const struct fail *f)
{
	return f->kind == FAIL_ERRNO && (f->code == ENOMEM || f->code == EMFILE || f->code == EAGAIN ||
					 f->code == EADDRNOTAVAIL || f->code == ENOSPC);
}

static bool is_server_shortage(const struct fail *f)
{
	return f->kind == FAIL_REFUSED && f->code == REFUSE_NO_RESOURCES;
}

/* The most frequent failure that says something ran out, on either side; NULL when there is none. */
static const struct fail *shortage(const struct step *s)
{
	const struct fail *found = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < s->failures.n; i++) {
		const struct fail *f = &s->failures.rows[i].fail;
		uint64_t count = counter_get(&s->failures.rows[i].count);

		if ((is_generator_shortage(f) || is_server_shortage(f)) && count > most) {
			most = count;
			found = f;
		}
	}
	return found;
}

enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size)
{
	const struct fail *f = shortage(s);
	struct fail top;
	uint64_t count;

	text[0] = '\0';
	if (s->connected_held * 100.0 >= s->target * 99.0 && !s->step_timeout)
		return STOP_NOT;
	if (f) {
		describe_failure(s, f, is_server_shortage(f) ? " (server)" : " (generator)", text, size);
		return STOP_RESOURCE_EXHAUSTED;
	}
	describe_failure(s, fail_table_top(&s->failures, &top, &count) ? &top : NULL, "", text, size);
	return s->step_timeout ? STOP_STEP_TIMEOUT : STOP_ERROR_RATE;
}
