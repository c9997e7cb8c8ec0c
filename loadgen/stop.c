/* Why a run ended. See stop.h. */
#include "loadgen/stop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/frame.h"
#include "loadgen/step.h"

const char *const stop_reason_names[] = {
	[STOP_NOT] = "none",
	[STOP_MAX_REACHED] = "max_reached",
	[STOP_ERROR_RATE] = "error_rate",
	[STOP_STEP_TIMEOUT] = "step_timeout",
	[STOP_RESOURCE_EXHAUSTED] = "resource_exhausted",
	[STOP_ABORTED] = "aborted",
	[STOP_SERVER_LOST] = "server_lost",
	[STOP_GENERATOR_FAILED] = "generator_failed",
};
static_assert(sizeof(stop_reason_names) / sizeof(stop_reason_names[0]) == STOP_N, "a name per reason");

static void describe_failure(const struct step *s, char *text, size_t size)
{
	char code[96];
	struct fail f;
	uint64_t count;

	if (fail_table_top(&s->failures, &f, &count))
		snprintf(text, size, "%u clients: %u not held; %s at %s: %s", s->target,
			 s->target - s->connected_held, fail_code_text(&f, code, sizeof(code)),
			 stage_names[f.stage], fail_advice(&f));
	else
		snprintf(text, size, "%u clients: %u of them were not held", s->target,
			 s->target - s->connected_held);
}

static enum stop_reason reason_of(const struct step *s)
{
	for (uint32_t i = 0; i < s->failures.n; i++) {
		const struct fail *f = &s->failures.rows[i].fail;

		if ((f->kind == FAIL_ERRNO && (f->code == ENOMEM || f->code == EMFILE || f->code == EAGAIN ||
					       f->code == EADDRNOTAVAIL || f->code == ENOSPC)) ||
		    (f->kind == FAIL_REFUSED && f->code == REFUSE_NO_RESOURCES))
			return STOP_RESOURCE_EXHAUSTED;
	}
	return s->step_timeout ? STOP_STEP_TIMEOUT : STOP_ERROR_RATE;
}

enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size)
{
	text[0] = '\0';
	if (s->connected_held * 100.0 >= s->target * 99.0 && !s->step_timeout)
		return STOP_NOT;
	describe_failure(s, text, size);
	return reason_of(s);
}
