/* SPDX-License-Identifier: BSD-2-Clause */
/* See slo_judge.h. */
#include "loadgen/verdict/slo_judge.h"

#include <math.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/latency_json.h"
#include "loadgen/measurement/rates.h"
#include "loadgen/measurement/step.h"

/* With too few samples, a step misses a percentile only if a step that meets it would have as many samples beyond the
 * limit with a probability below this. */
#define CHANCE 0.05

const char *const slo_result_names[] = { "pass", "fail", "inconclusive" };

static const char *unit_of(const struct slo_term *t)
{
	return slo_is_time(t) ? "ns" : slo_is_rate(t) ? "per_s" : "ratio";
}

static const struct hist *hist_of(const struct slo_term *t, const struct step *s)
{
	switch (t->subject) {
	case SLO_RESPONSE: return s->hists.response;
	/* In a closed loop an operation is due when it is sent, so service time is response time. */
	case SLO_SERVICE: return hist_count(s->hists.service) ? s->hists.service : s->hists.response;
	case SLO_LAG: return s->hists.lag;
	case SLO_CONNECT: return s->total;
	case SLO_PSN_GENERATE: return s->hists.psn_generate;
	case SLO_STAGE: return s->stages[t->stage];
	case SLO_CPU_PER_OP:
	case SLO_ERRORS:
	case SLO_TIMEOUTS:
	case SLO_RETRIES:
	case SLO_REFUSALS:
	case SLO_JITTER:
	case SLO_MSGS_RATE:
	case SLO_BYTES_RATE:
	case SLO_CONNECTS_RATE: break;
	}
	return NULL;
}

static double latency_of(const struct slo_term *t, const struct hist *h)
{
	if (hist_count(h) == 0)
		return NAN;
	switch (t->measure) {
	case SLO_MEAN: return hist_mean(h);
	case SLO_MAX: return (double)hist_max(h);
	case SLO_PERCENTILE: break;
	}
	return hist_supports(h, t->percentile) ? (double)hist_percentile(h, t->percentile) : NAN;
}

static double measure(const struct slo_term *t, const struct step *s)
{
	struct rates r = rates_of(s);

	switch (t->subject) {
	case SLO_CPU_PER_OP: return step_cpu_per_op_ns(s, SIDE_SERVER);
	case SLO_TIMEOUTS: return rates_ratio(&r, r.timeouts);
	case SLO_RETRIES: return rates_ratio(&r, r.retries);
	case SLO_REFUSALS: return rates_ratio(&r, r.refusals);
	case SLO_JITTER: return latency_jitter(s->hists.response);
	case SLO_ERRORS: return s->target ? (double)(s->failed + s->dropped) / s->target : NAN;
	case SLO_MSGS_RATE: return s->measured ? s->messages_per_s : NAN;
	case SLO_BYTES_RATE: return s->measured ? s->bytes_per_s : NAN;
	case SLO_CONNECTS_RATE:
		return s->connect_wall_ns ? (double)s->connected_peak * 1e9 / (double)s->connect_wall_ns : NAN;
	case SLO_RESPONSE:
	case SLO_SERVICE:
	case SLO_LAG:
	case SLO_CONNECT:
	case SLO_PSN_GENERATE:
	case SLO_STAGE: break;
	}
	return latency_of(t, hist_of(t, s));
}

/* The probability that k or more of n samples exceed a limit that is exceeded by `share` of all operations. */
static double chance_of(uint64_t k, uint64_t n, double share)
{
	double term = pow(1 - share, (double)n), below = 0;

	for (uint64_t i = 0; i < k; i++) {
		below += term;
		term *= (double)(n - i) / (double)(i + 1) * share / (1 - share);
	}
	return 1 - below;
}

/* Judges a percentile for which there are too few samples. */
static enum slo_result judge_few(const struct slo_term *t, const struct hist *h)
{
	uint64_t n = hist_count(h), beyond;

	if ((double)hist_max(h) < t->limit || (t->or_equal && (double)hist_max(h) == t->limit))
		return SLO_PASS;
	beyond = hist_count_between(h, (uint64_t)t->limit, UINT64_MAX);
	return beyond && chance_of(beyond, n, 1 - t->percentile / 100) < CHANCE ? SLO_FAIL : SLO_INCONCLUSIVE;
}

bool slo_has_samples(const struct slo *slo, const struct step *s)
{
	for (size_t i = 0; i < slo->n; i++)
		if (slo_is_latency(&slo->terms[i]) && hist_count(hist_of(&slo->terms[i], s)) == 0)
			return false;
	return true;
}

enum slo_result slo_judge_term(const struct slo_term *t, const struct step *s, double *measured)
{
	double v = measure(t, s);

	*measured = v;
	if (!isfinite(v))
		return slo_is_latency(t) && hist_count(hist_of(t, s)) ? judge_few(t, hist_of(t, s)) : SLO_INCONCLUSIVE;
	if (t->or_equal && v == t->limit)
		return SLO_PASS;
	return (t->below ? v < t->limit : v > t->limit) ? SLO_PASS : SLO_FAIL;
}

enum slo_result slo_judge(const struct slo *slo, const struct step *s)
{
	enum slo_result worst = SLO_PASS;
	double measured;

	for (size_t i = 0; i < slo->n; i++) {
		enum slo_result r = slo_judge_term(&slo->terms[i], s, &measured);

		if (r == SLO_FAIL)
			return SLO_FAIL;
		if (r == SLO_INCONCLUSIVE)
			worst = r;
	}
	return worst;
}

json_t *slo_json(const struct slo *slo, const struct step *s)
{
	json_t *a;

	if (slo->n == 0)
		return json_null();
	a = json_array();
	for (size_t i = 0; i < slo->n; i++) {
		const struct slo_term *t = &slo->terms[i];
		double measured;
		enum slo_result r = slo_judge_term(t, s, &measured);

		json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:f, s:o, s:s}", "expression", t->text, "metric",
			t->metric, "unit", unit_of(t), "limit", t->limit, "measured", json_number(measured), "result",
			slo_result_names[r]));
	}
	return a;
}

const char *slo_value_text(const struct slo_term *t, enum slo_result result, double v, char *text, size_t size)
{
	if (!isfinite(v) && !slo_is_latency(t))
		snprintf(text, size, "unknown");
	else if (!isfinite(v))
		snprintf(text, size, "%s", result == SLO_PASS ? "all within, too few for a percentile" :
			 result == SLO_FAIL ? "too many beyond, for so few" : "unknown: too few samples");
	else if (slo_is_share(t))
		snprintf(text, size, "%.3g %%", 100 * v);
	else if (t->subject == SLO_JITTER)
		snprintf(text, size, "%.3g", v);
	else if (slo_is_rate(t))
		snprintf(text, size, "%.0f a second", v);
	else if (v < 1e6)
		snprintf(text, size, "%.4g us", v / 1e3);
	else
		snprintf(text, size, "%.4g ms", v / 1e6);
	return text;
}
