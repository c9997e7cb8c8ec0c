/* SPDX-License-Identifier: BSD-2-Clause */
/* See graceful.h. */
#include "loadgen/verdict/graceful.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/param.h>

#include "loadgen/measurement/step.h"

/* A step of fewer clients does not show how many the server can hold. */
#define WHOLE_MIN 10
/* With fewer operations per client on average, a client without any may just not have had its turn. */
#define OPERATIONS_MIN 10

uint32_t graceful_least_held(uint32_t target, uint32_t whole_before)
{
	return whole_before >= WHOLE_MIN ? whole_before : (target + 9) / 10;
}

static enum graceful judge_pools(const struct step *s, char *why, size_t size)
{
	if (s->server_ended) {
		snprintf(why, size, "the server ended");
		return GRACEFUL_NO;
	}
	if (s->pools == POOLS_RESTORED)
		return GRACEFUL_YES;
	snprintf(why, size, "%s", s->pools == POOLS_UNKNOWN ? "whether the server's pools came back is unknown" :
		 "the server's pools did not come back");
	return s->pools == POOLS_UNKNOWN ? GRACEFUL_UNKNOWN : GRACEFUL_NO;
}

/* True if enough clients were held, and all of them were served. */
static bool serves_the_held(const struct step *s, uint32_t least, char *why, size_t size)
{
	const struct step_fairness *f = &s->fairness;

	if (!s->measured)
		snprintf(why, size, "%s", s->step_timeout ? "connecting took too long" :
			 "those held were not measured");
	else if (s->connected_held < least)
		snprintf(why, size, "at least %u must be held", least);
	else if (s->dropped)
		snprintf(why, size, "%u connected clients were lost", s->dropped);
	else if (s->replies_missing)
		snprintf(why, size, "replies to those held were missing");
	else if (f->clients && (f->sum <= 0 || (f->min == 0 && f->sum / (double)f->clients >= OPERATIONS_MIN)))
		snprintf(why, size, "%s got no reply", f->sum > 0 ? "some of those held" : "those held");
	else
		return true;
	return false;
}

/* True for failures that tell only that a client waited or was cut off, and not why. */
static bool has_no_reason(const struct fail *f)
{
	return f->kind == FAIL_NONE || f->kind == FAIL_TIMEOUT || (f->kind == FAIL_CLOSED && f->code == 0);
}

static enum graceful judge_codes(const struct step *s, char *why, size_t size)
{
	uint64_t counted = fail_table_total(&s->failures), without = fail_table_sum(&s->failures, has_no_reason);
	uint32_t missing = MAX(s->failed + s->dropped, s->target - s->connected_held);

	if (counted < missing || counter_get(&s->failures.overflow)) {
		snprintf(why, size, "not every failure has a code");
		return GRACEFUL_NO;
	}
	if (without == 0)
		return GRACEFUL_YES;
	snprintf(why, size, "%llu failed without being told why (timeout, closed_by_peer)",
		 (unsigned long long)without);
	return GRACEFUL_BUT_SLOW;
}

static enum graceful judge_follow_up(const struct step *s, char *why, size_t size)
{
	if (s->follow_up.tried == 0) {
		snprintf(why, size, "whether others can connect afterwards is unknown");
		return GRACEFUL_UNKNOWN;
	}
	if (s->follow_up.connected == s->follow_up.tried)
		return GRACEFUL_YES;
	snprintf(why, size, "afterwards only %u of %u connected", s->follow_up.connected, s->follow_up.tried);
	return GRACEFUL_NO;
}

enum graceful graceful_judge(const struct step *s, uint32_t whole_before, char *why, size_t size)
{
	char slow[160];
	enum graceful pools = judge_pools(s, why, size), codes, follow_up;

	if (pools == GRACEFUL_NO || !serves_the_held(s, graceful_least_held(s->target, whole_before), why, size))
		return GRACEFUL_NO;
	if (pools == GRACEFUL_UNKNOWN) {
		judge_pools(s, why, size);
		return pools;
	}
	codes = judge_codes(s, slow, sizeof(slow));
	if (codes == GRACEFUL_NO) {
		snprintf(why, size, "%s", slow);
		return codes;
	}
	follow_up = judge_follow_up(s, why, size);
	if (follow_up != GRACEFUL_YES)
		return follow_up;
	snprintf(why, size, "%s", codes == GRACEFUL_YES ? "" : slow);
	return codes;
}
