/* SPDX-License-Identifier: BSD-2-Clause */
/* The success criteria of the capacity plan. See verdict.h and docs/results.md, "Verdict". */
#include "loadgen/verdict/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "loadgen/verdict/graceful.h"
#include "loadgen/verdict/slo_judge.h"
#include "loadgen/measurement/connect_json.h"

/* With fewer connections no median is known (hist_supports), so their time is not judged. */
#define CONNECT_CLIENTS_MIN 5

static const char *const result_names[] = { "pass", "fail", "inconclusive", "not_judged" };

struct tier {
	uint32_t up_to;		/* clients */
	double connect_ms;	/* upper limit of p50 and p99 of connection time; 0: no limit */
	double success_ratio;	/* minimum share of clients held */
};

/* A step belongs to the smallest tier with room for its clients; above 10,000 clients the last tier counts. */
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

/* Returns the criterion, borrowed, so that members can be added. */
static json_t *add_criterion(json_t *verdict, const struct step *s, const char *criterion, const char *required,
		   const char *measured, enum criterion_result result)
{
	json_t *c = json_pack("{s:i, s:I, s:i, s:s, s:s, s:s, s:s}", "clients", s->target,
		"message_bytes", (json_int_t)s->bytes, "repetition", s->repetition, "criterion", criterion, "required",
		required, "measured", measured, "result", result_names[result]);

	json_array_append_new(verdict, c);
	return c;
}

const char *verdict_excuse(const json_t *server, const json_t *clients)
{
	if (json_is_true(json_at(server, "is_emulated_cpu")) || json_is_true(json_at(clients, "is_emulated_cpu")))
		return "emulated CPU";
	if (json_is_true(json_at(server, "rdma_device.is_software")) ||
	    json_is_true(json_at(clients, "rdma_device.is_software")))
		return "software RDMA";
	return NULL;
}

/* Appends the text about the server that was worse than the others, if there is one. */
static void say_server(char *measured, size_t size, const char *which)
{
	size_t used = strlen(measured);

	if (which && *which)
		snprintf(measured + used, size - used, "; %s", which);
}

static void add_success(json_t *verdict, const struct step *s, const struct tier *t, const struct verdict_terms *terms)
{
	double ratio = s->target ? (double)s->connected_held / s->target : 0;
	char required[64], measured[448];

	if (t->success_ratio >= 1)
		snprintf(required, sizeof(required), "100 %%");
	else
		snprintf(required, sizeof(required), "over %g %%", t->success_ratio * 100);
	snprintf(measured, sizeof(measured), "%.4g %% (%u of %u held at once)", ratio * 100,
		 s->connected_held, s->target);
	say_server(measured, sizeof(measured), terms->fewest);
	add_criterion(verdict, s, "success rate", required, measured,
	    (t->success_ratio >= 1 ? ratio >= 1 : ratio > t->success_ratio) ? CRITERION_PASS : CRITERION_FAIL);
}

static const char *ms_text(double ns, char *text, size_t size)
{
	snprintf(text, size, ns >= 100e6 ? "%.0f ms" : "%.3g ms", ns / 1e6);
	return text;
}

/* A percentile of connection time, compared with the tier's limit. */
struct connect_time {
	double percentile, limit_ns;
	uint64_t samples, beyond;
	double ns;			/* NAN: too few samples */
	enum criterion_result result;	/* the result if times are judged */
};

/* With too few samples, a p99 is judged like a term of an SLO (slo_judge.h), and a median not at all. */
static struct connect_time judge_connect_time(const struct step *s, double limit_ns, double percentile)
{
	static const enum criterion_result of[] = { [SLO_PASS] = CRITERION_PASS, [SLO_FAIL] = CRITERION_FAIL,
						    [SLO_INCONCLUSIVE] = CRITERION_INCONCLUSIVE };
	const struct slo_term term = { .subject = SLO_CONNECT, .measure = SLO_PERCENTILE, .percentile = percentile,
				       .below = true, .limit = limit_ns };
	struct connect_time c = { .percentile = percentile, .limit_ns = limit_ns, .samples = hist_count(s->total),
				  .beyond = hist_count_between(s->total, (uint64_t)limit_ns, UINT64_MAX) };

	c.result = of[slo_judge_term(&term, s, &c.ns)];
	if (!hist_supports(s->total, 50))
		c.result = CRITERION_INCONCLUSIVE;
	return c;
}

/* "185 ms"; with too few samples "2 of 10 above the limit, the longest 300 ms". */
static const char *connect_time_text(const struct step *s, const struct connect_time *c, char *text, size_t size)
{
	char most[32];

	if (isfinite(c->ns))
		return ms_text(c->ns, text, size);
	ms_text((double)hist_max(s->total), most, sizeof(most));
	if (!hist_supports(s->total, 50))
		snprintf(text, size, "too few samples (%llu)", (unsigned long long)c->samples);
	else if (c->beyond == 0)
		snprintf(text, size, "all %llu within the limit, the longest %s", (unsigned long long)c->samples, most);
	else
		snprintf(text, size, "%llu of %llu above the limit, the longest %s", (unsigned long long)c->beyond,
			 (unsigned long long)c->samples, most);
	return text;
}

static bool is_missed(const struct connect_time *c)
{
	return isfinite(c->ns) ? c->ns >= c->limit_ns : c->beyond > 0;
}

/* Adds the stage that took the most time to a criterion whose limit was missed. */
static void say_longest(json_t *criterion, const struct longest *l)
{
	json_object_set_new(criterion, "longest_stage", json_string(connect_longest_name(l)));
	json_object_set_new(criterion, "longest_stage_ns", json_whole(l->ns));
	json_object_set_new(criterion, "longest_stage_ratio", json_number(l->share));
}

static void add_connect_time(json_t *verdict, const struct step *s, const struct tier *t, double percentile,
			     const struct verdict_terms *terms)
{
	const char *excuse = terms->excuse;
	struct connect_time c = judge_connect_time(s, t->connect_ms * 1e6, percentile);
	char name[32], required[32], figure[96], stage_ms[32], measured[640];
	struct longest longest;
	bool missed = is_missed(&c) && connect_longest(s->stages, s->total, isfinite(c.ns) ? percentile : 100,
						       &longest);
	json_t *criterion;

	snprintf(name, sizeof(name), "connection time p%g", percentile);
	snprintf(required, sizeof(required), "under %g ms", t->connect_ms);
	connect_time_text(s, &c, figure, sizeof(figure));
	if (excuse)
		snprintf(measured, sizeof(measured), "not judged (%s: %s)", excuse, figure);
	else if (missed)
		snprintf(measured, sizeof(measured), "%s, the longest stage %s: %s (%.0f %%)", figure,
			 connect_longest_name(&longest), ms_text(longest.ns, stage_ms, sizeof(stage_ms)),
			 100 * longest.share);
	else
		snprintf(measured, sizeof(measured), "%s", figure);
	say_server(measured, sizeof(measured), terms->slowest);
	criterion = add_criterion(verdict, s, name, required, measured, excuse ? CRITERION_NOT_JUDGED : c.result);
	json_object_set_new(criterion, "measured_ns", json_whole(c.ns));
	json_object_set_new(criterion, "limit_ns", json_whole(c.limit_ns));
	if (missed)
		say_longest(criterion, &longest);
}

static void add_stable(json_t *verdict, const struct step *s, const char *required)
{
	static const enum criterion_result of[] = { [POOLS_UNKNOWN] = CRITERION_INCONCLUSIVE,
		[POOLS_RESTORED] = CRITERION_PASS, [POOLS_NOT_RESTORED] = CRITERION_FAIL };
	static const char *const words[] = { [POOLS_UNKNOWN] = "; whether the server's pools came back is unknown",
		[POOLS_RESTORED] = "", [POOLS_NOT_RESTORED] = "; the server's pools did not come back" };
	char measured[160];

	snprintf(measured, sizeof(measured), "stable: %u held, no failures%s", s->connected_held,
		 s->server_ended ? "; the server ended" : words[s->pools]);
	add_criterion(verdict, s, "stability", required, measured, s->server_ended ? CRITERION_FAIL : of[s->pools]);
}

/* Appends whether the step was stable or failed gracefully (graceful.h). */
static void add_stability(json_t *verdict, const struct step *s, const struct verdict_terms *terms)
{
	static const char required[] = "stable operation or graceful failure";
	static const enum criterion_result of[] = { [GRACEFUL_YES] = CRITERION_PASS, [GRACEFUL_NO] = CRITERION_FAIL,
		[GRACEFUL_BUT_SLOW] = CRITERION_FAIL, [GRACEFUL_UNKNOWN] = CRITERION_INCONCLUSIVE };
	char measured[832], why[200], code[96], top[200] = "";
	struct fail f = { 0 };
	enum graceful graceful;
	uint64_t most;

	if (step_is_stable(s)) {
		add_stable(verdict, s, required);
		return;
	}
	graceful = graceful_judge(s, terms->whole_before, why, sizeof(why));
	if (fail_table_top(&s->failures, &f, &most))
		snprintf(top, sizeof(top), "%s at %s (%llu times)", fail_code_text(&f, code, sizeof(code)),
			 stage_names[f.stage], (unsigned long long)most);
	if (graceful == GRACEFUL_BUT_SLOW && terms->excuse) {
		snprintf(measured, sizeof(measured), "not judged (%s: %u of %u held; %s)", terms->excuse,
			 s->connected_held, s->target, why);
		add_criterion(verdict, s, "stability", required, measured, CRITERION_NOT_JUDGED);
		return;
	}
	snprintf(measured, sizeof(measured), "%u of %u held; %s%s%s", s->connected_held, s->target,
		 graceful == GRACEFUL_YES ? "graceful failure: " : why, graceful != GRACEFUL_YES && *top ? "; " : "",
		 top);
	say_server(measured, sizeof(measured), terms->fewest);
	add_criterion(verdict, s, "stability", required, measured, of[graceful]);
}

static void add_pools(json_t *verdict, const struct step *s)
{
	if (s->pools == POOLS_NOT_RESTORED)
		add_criterion(verdict, s, "server's pools after the step", "as at the start", "not restored",
			      CRITERION_FAIL);
	else if (s->pools == POOLS_UNKNOWN)
		add_criterion(verdict, s, "server's pools after the step", "as at the start",
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
	add_criterion(verdict, s, "data", "as sent", measured, corrupt ? CRITERION_FAIL : CRITERION_PASS);
}

/* Sum of a generator's count and the server's, where that is known. */
static double with_servers(uint64_t own, double servers)
{
	return (double)own + (isfinite(servers) ? servers : 0);
}

void verdict_add_psns(json_t *verdict, const struct step *s)
{
	double redrawn = with_servers(s->psns_redrawn, step_server_since_mark(s, "events.psn_redraws"));
	double wrong = with_servers(s->psn_mismatches, step_server_since_mark(s, "events.psn_mismatches"));
	unsigned long long exchanged = s->psns_exchanged, shared = s->psns_shared, read = 2 * s->psn_verified;
	char distinct[96], read_back[64] = "not read back (--verify)", differ[64] = "", measured[768];
	/* The server may notice that a connection is lost, and reuse its PSNs, before the client notices. */
	bool lost = s->dropped || s->outages || s->rails_dropped;
	bool unknown = (read && read < exchanged) || (shared && lost);

	if (!exchanged && !(wrong > 0))
		return;
	snprintf(distinct, sizeof(distinct), "all distinct%s", s->hosts.n > 1 ? " on each host" : "");
	if (shared)
		snprintf(distinct, sizeof(distinct), "%llu not distinct%s", shared,
			 lost ? " (perhaps those of connections that were lost)" : "");
	if (read)
		snprintf(read_back, sizeof(read_back), "%llu read back", read);
	if (wrong > 0)
		snprintf(differ, sizeof(differ), ", %.0f connection%s with others than agreed", wrong,
			 wrong > 1 ? "s" : "");
	snprintf(measured, sizeof(measured), "%llu PSNs, %s, %.0f conflict%s redrawn, %s%s", exchanged, distinct,
		 redrawn, redrawn > 0 && redrawn < 2 ? "" : "s", read_back, differ);
	add_criterion(verdict, s, "psns", read || wrong > 0 ? "all distinct, and programmed" : "all distinct", measured,
		      wrong > 0 || (shared && !lost) ? CRITERION_FAIL : unknown ? CRITERION_INCONCLUSIVE :
		      CRITERION_PASS);
}

void verdict_add_undisturbed(json_t *verdict, const struct step *s)
{
	char measured[96];

	if (step_has_hole(s)) {
		snprintf(measured, sizeof(measured), "clock_hole: the generator did not run for %.1f s",
			 (double)s->clock_late_ns / 1e9);
		add_criterion(verdict, s, "measurement", "without holes in the clock", measured,
			      CRITERION_INCONCLUSIVE);
	}
	if (step_is_stalled(s)) {
		snprintf(measured, sizeof(measured), "replies_stalled: no reply came for %.1f s",
			 (double)s->reply_stall_ns / 1e9);
		add_criterion(verdict, s, "measurement", "without stalls of all replies", measured,
			      CRITERION_INCONCLUSIVE);
	}
}

void verdict_add_step(json_t *verdict, const struct step *s, const struct verdict_terms *terms)
{
	const struct tier *t = tier_of(s->target);

	if (t->success_ratio > 0)
		add_success(verdict, s, t, terms);
	else
		add_stability(verdict, s, terms);
	if (t->connect_ms > 0 && s->target >= CONNECT_CLIENTS_MIN) {
		add_connect_time(verdict, s, t, 50, terms);
		add_connect_time(verdict, s, t, 99, terms);
	}
	verdict_add_integrity(verdict, s);
	verdict_add_psns(verdict, s);
	verdict_add_undisturbed(verdict, s);
	if (t->success_ratio > 0)
		add_pools(verdict, s);
}

/* Says why an objective was not judged. */
static void add_lack_of_cpu(json_t *verdict, const struct step *s, enum series_side side)
{
	char measured[96];

	snprintf(measured, sizeof(measured), "cpu_stolen: a hypervisor gave CPU time of the %s's machine to others",
		 series_side_names[side]);
	if (step_is_stolen(s, side))
		add_criterion(verdict, s, "measurement", "with all CPU time", measured, CRITERION_INCONCLUSIVE);
	snprintf(measured, sizeof(measured), "cpu_throttled: the CPU quota of the %s was used up",
		 series_side_names[side]);
	if (step_is_throttled(s, side))
		add_criterion(verdict, s, "measurement", "with all CPU time", measured, CRITERION_INCONCLUSIVE);
}

void verdict_add_slo(json_t *verdict, const struct slo *slo, const struct step *s)
{
	static const enum criterion_result of[] = { [SLO_PASS] = CRITERION_PASS, [SLO_FAIL] = CRITERION_FAIL,
						    [SLO_INCONCLUSIVE] = CRITERION_INCONCLUSIVE };

	for (int side = 0; side < SIDE_N && slo->n; side++)
		add_lack_of_cpu(verdict, s, (enum series_side)side);
	for (size_t i = 0; i < slo->n; i++) {
		const struct slo_term *t = &slo->terms[i];
		double measured;
		enum slo_result result = slo_judge_term(t, s, &measured);
		bool disturbed = step_is_disturbed(s);
		char text[64];

		add_criterion(verdict, s, "SLO", t->text, slo_value_text(t, result, measured, text, sizeof(text)),
		    disturbed ? CRITERION_INCONCLUSIVE : of[result]);
	}
}

void verdict_add_capacity(json_t *verdict, const char *criterion, uint32_t clients, const char *measured,
			  enum criterion_result result)
{
	json_array_append_new(verdict, json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "clients", clients, "repetition", 1,
		"criterion", criterion, "required", "to be found", "measured", measured, "result",
		result_names[result]));
}

void verdict_add_not_judged(json_t *verdict, const struct step *s, const char *why)
{
	add_criterion(verdict, s, "step", "to be completed", why, CRITERION_INCONCLUSIVE);
}

void verdict_add_not_reached(json_t *verdict, uint32_t clients)
{
	json_array_append_new(verdict, json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "clients", clients,
		"repetition", 1, "criterion", "step", "required", "to be reached", "measured", "not reached",
		"result", result_names[CRITERION_INCONCLUSIVE]));
}

enum criterion_result verdict_overall(const json_t *verdict)
{
	enum criterion_result worst = CRITERION_NOT_JUDGED;
	json_t *c;
	size_t i;

	json_array_foreach((json_t *)verdict, i, c) {
		const char *r = json_string_value(json_object_get(c, "result"));

		if (strcmp(r, "fail") == 0)
			return CRITERION_FAIL;
		if (strcmp(r, "inconclusive") == 0)
			worst = CRITERION_INCONCLUSIVE;
		else if (strcmp(r, "pass") == 0 && worst == CRITERION_NOT_JUDGED)
			worst = CRITERION_PASS;
	}
	return worst == CRITERION_NOT_JUDGED ? CRITERION_INCONCLUSIVE : worst;
}
