/* The success criteria of the capacity plan. See verdict.h and docs/results.md, "Verdict". */
#include "loadgen/judge/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/hist/hist.h"
#include "loadgen/judge/slo_judge.h"

/* Of fewer connections no median is known (hist_supports), so nothing is required of their time. */
#define CONNECT_CLIENTS_MIN 5

static const char *const result_names[] = { "pass", "fail", "inconclusive" };

struct tier {
	uint32_t up_to;		/* clients */
	double connect_ms;	/* p50 of total below this; 0: none */
	double success_ratio;	/* at least */
};

/* A step belongs to the smallest tier that holds it; above 10,000 the last one counts. */
static const struct tier tiers[] = {
	{ 10, 1, 1 }, { 100, 10, 1 }, { 1000, 100, 0.99 }, { 10000, 0, 0 },
};

static const struct tier *tier_of(uint32_t clients)
{
	size_t n = sizeof(tiers) / sizeof(tiers[0]), i = 0;

	while (i < n - 1 && clients > tiers[i].up_to)
		i++;
	return &tiers[i];
}

static void add(json_t *verdict, const struct step *s, const char *criterion, const char *required,
		const char *measured, enum criterion_result result)
{
	json_array_append_new(verdict, json_pack("{s:i, s:I, s:i, s:s, s:s, s:s, s:s}", "clients", s->target,
		"message_bytes", (json_int_t)s->bytes, "repetition", s->repetition, "criterion", criterion, "required",
		required, "measured", measured, "result", result_names[result]));
}

static void add_success(json_t *verdict, const struct step *s, const struct tier *t)
{
	double ratio = s->target ? (double)s->connected_held / s->target : 0;
	char required[64], measured[64];

	if (t->success_ratio >= 1)
		snprintf(required, sizeof(required), "100 %%");
	else
		snprintf(required, sizeof(required), "over %g %%", t->success_ratio * 100);
	snprintf(measured, sizeof(measured), "%.4g %% (%u of %u held at once)", ratio * 100,
		 s->connected_held, s->target);
	add(verdict, s, "success rate", required, measured,
	    (t->success_ratio >= 1 ? ratio >= 1 : ratio > t->success_ratio) ? CRITERION_PASS : CRITERION_FAIL);
}

static void add_connect_time(json_t *verdict, const struct step *s, const struct tier *t)
{
	double p50_ms = (double)hist_percentile(s->total, 50) / 1e6;
	char required[64], measured[64];

	snprintf(required, sizeof(required), "under %g ms", t->connect_ms);
	if (!hist_supports(s->total, 50)) {
		snprintf(measured, sizeof(measured), "too few samples (%llu)",
			 (unsigned long long)hist_count(s->total));
		add(verdict, s, "connection time p50", required, measured, CRITERION_INCONCLUSIVE);
		return;
	}
	snprintf(measured, sizeof(measured), p50_ms >= 100 ? "%.0f ms" : "%.3g ms", p50_ms);
	add(verdict, s, "connection time p50", required, measured,
	    p50_ms < t->connect_ms ? CRITERION_PASS : CRITERION_FAIL);
}

static bool is_stable(const struct step *s)
{
	return s->connected_held == s->target && s->measured && !s->replies_missing && s->failed == 0 && s->dropped == 0;
}

static const char *pools_words(enum step_pools pools)
{
	switch (pools) {
	case POOLS_RESTORED: return "";
	case POOLS_NOT_RESTORED: return "; the server's pools did not come back";
	case POOLS_UNKNOWN: break;
	}
	return "; whether the server's pools came back is unknown";
}

/* Stable, or failed in a way that names stage and code, with the server's pools restored. */
static void add_stability(json_t *verdict, const struct step *s)
{
	static const enum criterion_result of[] = { [POOLS_UNKNOWN] = CRITERION_INCONCLUSIVE,
		[POOLS_RESTORED] = CRITERION_PASS, [POOLS_NOT_RESTORED] = CRITERION_FAIL };
	enum criterion_result result = s->server_ended ? CRITERION_FAIL : of[s->pools];
	const char *pools = s->server_ended ? "; the server ended" : pools_words(s->pools);
	char measured[256], code[96];
	struct fail f = { 0 };
	uint64_t most;

	if (is_stable(s)) {
		snprintf(measured, sizeof(measured), "stable: %u held, no failures%s", s->connected_held, pools);
	} else if (fail_table_top(&s->failures, &f, &most)) {
		snprintf(measured, sizeof(measured), "%u of %u held%s; %s%s at %s (%llu times)", s->connected_held, s->target,
			 pools, result == CRITERION_PASS ? "graceful failure: " : "", fail_code_text(&f, code, sizeof(code)),
			 stage_names[f.stage], (unsigned long long)most);
	} else {
		snprintf(measured, sizeof(measured), "%u of %u held%s%s", s->connected_held, s->target, pools,
			 s->step_timeout ? "; connecting took too long" : "");
		result = CRITERION_FAIL;
	}
	add(verdict, s, "stability", "stable operation or graceful failure", measured, result);
}

static void add_pools(json_t *verdict, const struct step *s)
{
	if (s->pools == POOLS_NOT_RESTORED)
		add(verdict, s, "server's pools after the step", "as at the start", "not restored", CRITERION_FAIL);
	else if (s->pools == POOLS_UNKNOWN)
		add(verdict, s, "server's pools after the step", "as at the start",
		    s->server_ended ? "unknown: the server ended" : "unknown: the server could not be asked",
		    CRITERION_INCONCLUSIVE);
}

void verdict_add_integrity(json_t *verdict, const struct step *s)
{
	double server = step_server_delta(s, "events.messages_corrupt");
	double server_checked = step_server_delta(s, "events.messages_checked");
	uint64_t corrupt = s->corrupt + (isfinite(server) ? (uint64_t)server : 0);
	char measured[96];

	if (s->checked == 0 && !(server_checked > 0))
		return;
	snprintf(measured, sizeof(measured), "%llu corrupt", (unsigned long long)corrupt);
	add(verdict, s, "data", "as sent", measured, corrupt ? CRITERION_FAIL : CRITERION_PASS);
}

void verdict_add_undisturbed(json_t *verdict, const struct step *s)
{
	char measured[96];

	if (step_has_hole(s)) {
		snprintf(measured, sizeof(measured), "clock_hole: the generator did not run for %.1f s",
			 (double)s->clock_late_ns / 1e9);
		add(verdict, s, "measurement", "without holes in the clock", measured, CRITERION_INCONCLUSIVE);
	}
	if (step_is_stalled(s)) {
		snprintf(measured, sizeof(measured), "replies_stalled: no reply came for %.1f s",
			 (double)s->reply_stall_ns / 1e9);
		add(verdict, s, "measurement", "without stalls of all replies", measured, CRITERION_INCONCLUSIVE);
	}
}

void verdict_add_step(json_t *verdict, const struct step *s)
{
	const struct tier *t = tier_of(s->target);

	if (t->success_ratio > 0)
		add_success(verdict, s, t);
	else
		add_stability(verdict, s);
	if (t->connect_ms > 0 && s->target >= CONNECT_CLIENTS_MIN)
		add_connect_time(verdict, s, t);
	verdict_add_integrity(verdict, s);
	verdict_add_undisturbed(verdict, s);
	if (t->success_ratio > 0)
		add_pools(verdict, s);
}

void verdict_add_slo(json_t *verdict, const struct slo *slo, const struct step *s)
{
	static const enum criterion_result of[] = { [SLO_PASS] = CRITERION_PASS, [SLO_FAIL] = CRITERION_FAIL,
						    [SLO_INCONCLUSIVE] = CRITERION_INCONCLUSIVE };

	for (size_t i = 0; i < slo->n; i++) {
		const struct slo_term *t = &slo->terms[i];
		double measured;
		enum slo_result result = slo_judge_term(t, s, &measured);
		bool disturbed = step_has_hole(s) || step_is_stalled(s);
		char text[64];

		add(verdict, s, "SLO", t->text, slo_value_text(t, result, measured, text, sizeof(text)),
		    disturbed ? CRITERION_INCONCLUSIVE : of[result]);
	}
}

void verdict_add_capacity(json_t *verdict, uint32_t clients, const char *measured, enum criterion_result result)
{
	json_array_append_new(verdict, json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "clients", clients, "repetition", 1,
		"criterion", "capacity", "required", "to be found", "measured", measured, "result",
		result_names[result]));
}

void verdict_add_not_judged(json_t *verdict, const struct step *s, const char *why)
{
	add(verdict, s, "step", "to be completed", why, CRITERION_INCONCLUSIVE);
}

void verdict_add_not_reached(json_t *verdict, uint32_t clients)
{
	json_array_append_new(verdict, json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "clients", clients,
		"repetition", 1, "criterion", "step", "required", "to be reached", "measured", "not reached",
		"result", result_names[CRITERION_INCONCLUSIVE]));
}

enum criterion_result verdict_overall(const json_t *verdict)
{
	enum criterion_result worst = CRITERION_PASS;
	json_t *c;
	size_t i;

	if (json_array_size(verdict) == 0)
		return CRITERION_INCONCLUSIVE;
	json_array_foreach((json_t *)verdict, i, c) {
		const char *r = json_string_value(json_object_get(c, "result"));

		if (strcmp(r, "fail") == 0)
			return CRITERION_FAIL;
		if (strcmp(r, "inconclusive") == 0)
			worst = CRITERION_INCONCLUSIVE;
	}
	return worst;
}
