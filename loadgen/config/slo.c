/* See slo.h; the grammar is in docs/capacity.md. */
#include "loadgen/config/slo.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "loadgen/step/step.h"

#define ALLOWED "allowed: [STAGE_]pN, mean or max < TIME (such as p99<500us, connect_p99<100ms), errors<PERCENT%%, " \
	"msgs_per_s, bytes_per_s or connects_per_s > NUMBER"

/* That a step misses a percentile is not believed of what chance brings more often than this. */
#define CHANCE 0.05

const char *const slo_result_names[] = { "pass", "fail", "inconclusive" };

static const struct {
	const char *name;
	enum slo_subject subject;
} rates[] = {
	{ "errors", SLO_ERRORS }, { "msgs_per_s", SLO_MSGS_RATE }, { "bytes_per_s", SLO_BYTES_RATE },
	{ "connects_per_s", SLO_CONNECTS_RATE },
};

static const struct {
	const char *name;
	enum slo_subject subject;
} subjects[] = {
	{ "response", SLO_RESPONSE }, { "service", SLO_SERVICE }, { "lag", SLO_LAG }, { "connect", SLO_CONNECT },
};

static bool is_latency(const struct slo_term *t)
{
	return t->subject <= SLO_STAGE;
}

static const char *unit_of(const struct slo_term *t)
{
	return is_latency(t) ? "ns" : t->subject == SLO_ERRORS ? "ratio" : "per_s";
}

/* --- parsing --- */

/* p50, p99.9, mean, max. */
static bool parse_measure(struct slo_term *t, const char *s)
{
	char *end;

	t->measure = strcmp(s, "mean") == 0 ? SLO_MEAN : strcmp(s, "max") == 0 ? SLO_MAX : SLO_PERCENTILE;
	if (t->measure != SLO_PERCENTILE)
		return true;
	if (s[0] != 'p' || !isdigit((unsigned char)s[1]))
		return false;
	t->percentile = strtod(s + 1, &end);
	return *end == '\0' && strspn(s + 1, "0123456789.") == strlen(s + 1) && t->percentile > 0 && t->percentile < 100;
}

static bool parse_subject(struct slo_term *t, const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		if (strlen(subjects[i].name) == n && strncmp(subjects[i].name, name, n) == 0) {
			t->subject = subjects[i].subject;
			return true;
		}
	for (int i = 0; i < STAGE_TIMED; i++)
		if (strlen(stage_names[i]) == n && strncmp(stage_names[i], name, n) == 0) {
			t->subject = SLO_STAGE;
			t->stage = (enum stage)i;
			return true;
		}
	return false;
}

static bool parse_metric(struct slo_term *t, const char *name)
{
	const char *last = strrchr(name, '_');

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (strcmp(name, rates[i].name) == 0) {
			t->subject = rates[i].subject;
			snprintf(t->metric, sizeof(t->metric), "%s", name);
			return true;
		}
	if (!last) {
		t->subject = SLO_RESPONSE;
		snprintf(t->metric, sizeof(t->metric), "response_%.20s", name);
		return parse_measure(t, name);
	}
	snprintf(t->metric, sizeof(t->metric), "%.39s", name);
	return parse_subject(t, name, (size_t)(last - name)) && parse_measure(t, last + 1);
}

/* The factor of a unit; 0 when it is none of this subject's. */
static double factor_of(const struct slo_term *t, const char *unit)
{
	if (is_latency(t))
		return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 1e3 :
		       strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "s") == 0 ? 1e9 : 0;
	if (t->subject == SLO_ERRORS)
		return strcmp(unit, "%") == 0 ? 0.01 : *unit == '\0' ? 1 : 0;
	return *unit == '\0' ? 1 : strcmp(unit, "k") == 0 ? 1e3 : strcmp(unit, "M") == 0 ? 1e6 :
	       strcmp(unit, "G") == 0 ? 1e9 : 0;
}

static bool parse_limit(struct slo_term *t, const char *s)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*s) && *s != '.')
		return false;
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return false;
	v = strtod(s, &end);
	t->limit = v * factor_of(t, end);
	if (factor_of(t, end) <= 0 || !isfinite(t->limit))
		return false;
	if (t->subject == SLO_ERRORS)
		return t->limit <= 1 && (t->limit > 0 || t->or_equal);
	return t->limit > 0;
}

/* One term, without blanks. */
static bool parse_term(struct slo_term *t, const char *s)
{
	size_t n = strcspn(s, "<>");
	char name[40];

	if (s[n] == '\0' || n == 0 || n >= sizeof(name))
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	t->below = s[n] == '<';
	t->or_equal = s[n + 1] == '=';
	snprintf(t->text, sizeof(t->text), "%s", s);
	if (!parse_metric(t, name) || !parse_limit(t, s + n + 1 + t->or_equal))
		return false;
	/* Nobody asks for more errors, or for fewer messages. */
	return t->below == (is_latency(t) || t->subject == SLO_ERRORS);
}

int slo_parse(const char *text, struct slo *out, char *err, size_t err_size)
{
	const char *p = text;

	out->n = 0;
	for (;;) {
		size_t n = strcspn(p, ","), kept = 0;
		char term[64];

		for (size_t i = 0; i < n && kept < sizeof(term) - 1; i++)
			if (p[i] != ' ')
				term[kept++] = p[i];
		term[kept] = '\0';
		if (out->n == SLO_TERMS_MAX) {
			snprintf(err, err_size, "--slo: more than %d terms", SLO_TERMS_MAX);
			return -EINVAL;
		}
		memset(&out->terms[out->n], 0, sizeof(out->terms[0]));
		if (n >= sizeof(term) || !parse_term(&out->terms[out->n], term)) {
			snprintf(err, err_size, "--slo: '%.60s' is not allowed; " ALLOWED, term);
			out->n = 0;
			return -EINVAL;
		}
		out->n++;
		if (p[n] == '\0')
			return 0;
		p += n + 1;
	}
}

/* --- judging --- */

static const struct hist *hist_of(const struct slo_term *t, const struct step *s)
{
	switch (t->subject) {
	case SLO_RESPONSE: return s->response;
	/* A closed loop has no schedule: an operation is due when it is sent. */
	case SLO_SERVICE: return hist_count(s->service) ? s->service : s->response;
	case SLO_LAG: return s->lag;
	case SLO_CONNECT: return s->total;
	case SLO_STAGE: return s->stages[t->stage];
	case SLO_ERRORS:
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
	switch (t->subject) {
	case SLO_ERRORS: return s->target ? (double)(s->failed + s->dropped) / s->target : NAN;
	case SLO_MSGS_RATE: return s->measured ? s->messages_per_s : NAN;
	case SLO_BYTES_RATE: return s->measured ? s->bytes_per_s : NAN;
	case SLO_CONNECTS_RATE:
		return s->connect_wall_ns ? (double)s->connected_peak * 1e9 / (double)s->connect_wall_ns : NAN;
	case SLO_RESPONSE:
	case SLO_SERVICE:
	case SLO_LAG:
	case SLO_CONNECT:
	case SLO_STAGE: break;
	}
	return latency_of(t, hist_of(t, s));
}

/* How likely it is that of n samples k or more are beyond a limit that a share of them is. */
static double chance_of(uint64_t k, uint64_t n, double share)
{
	double term = pow(1 - share, (double)n), below = 0;

	for (uint64_t i = 0; i < k; i++) {
		below += term;
		term *= (double)(n - i) / (double)(i + 1) * share / (1 - share);
	}
	return 1 - below;
}

/* Of a percentile for which there are too few samples. */
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
		if (is_latency(&slo->terms[i]) && hist_count(hist_of(&slo->terms[i], s)) == 0)
			return false;
	return true;
}

enum slo_result slo_judge_term(const struct slo_term *t, const struct step *s, double *measured)
{
	double v = measure(t, s);

	*measured = v;
	if (!isfinite(v))
		return is_latency(t) && hist_count(hist_of(t, s)) ? judge_few(t, hist_of(t, s)) : SLO_INCONCLUSIVE;
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
	if (!isfinite(v))
		snprintf(text, size, "%s", result == SLO_PASS ? "all within, too few for a percentile" :
			 result == SLO_FAIL ? "too many beyond, for so few" : "unknown: too few samples");
	else if (t->subject == SLO_ERRORS)
		snprintf(text, size, "%.3g %%", 100 * v);
	else if (!is_latency(t))
		snprintf(text, size, "%.0f a second", v);
	else if (v < 1e6)
		snprintf(text, size, "%.4g us", v / 1e3);
	else
		snprintf(text, size, "%.4g ms", v / 1e6);
	return text;
}
