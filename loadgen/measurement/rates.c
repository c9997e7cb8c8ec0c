/* SPDX-License-Identifier: BSD-2-Clause */
/* See rates.h. */
#include "loadgen/measurement/rates.h"

#include <math.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "loadgen/measurement/step.h"

static bool is_of_connecting(const struct fail *f)
{
	return f->stage < STAGE_TIMED;
}

static bool is_timeout(const struct fail *f)
{
	return f->kind == FAIL_TIMEOUT;
}

static bool is_refusal(const struct fail *f)
{
	return f->kind == FAIL_REFUSED;
}

/* Counts failures that ended a client's attempts and failures that were followed by another attempt. */
static uint64_t count_of(const struct step *s, bool (*counts)(const struct fail *f))
{
	return fail_table_sum(&s->failures, counts) + fail_table_sum(&s->retried, counts);
}

struct rates rates_of(const struct step *s)
{
	return (struct rates){ .attempts = hist_count(s->total) + s->retries +
			       fail_table_sum(&s->failures, is_of_connecting),
			       .timeouts = count_of(s, is_timeout), .retries = s->retries,
			       .refusals = count_of(s, is_refusal), .span_s = (double)s->span_ns / 1e9 };
}

double rates_ratio(const struct rates *r, uint64_t count)
{
	return r->attempts ? (double)count / (double)r->attempts : NAN;
}

static json_t *rate_json(const struct rates *r, uint64_t count)
{
	return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)count, "per_s",
			 json_number(r->span_s > 0 ? (double)count / r->span_s : NAN), "per_attempt_ratio",
			 json_number(rates_ratio(r, count)));
}

json_t *rates_json(const struct step *s)
{
	struct rates r = rates_of(s);

	return json_pack("{s:o, s:I, s:o, s:o, s:o}", "span_s", json_number(r.span_s > 0 ? r.span_s : NAN), "attempts",
			 (json_int_t)r.attempts, "timeouts", rate_json(&r, r.timeouts), "retries",
			 rate_json(&r, r.retries), "refusals", rate_json(&r, r.refusals));
}
