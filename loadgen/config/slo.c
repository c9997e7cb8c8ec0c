/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of --slo. See slo.h; the grammar is in docs/capacity.md. */
#include "loadgen/config/slo.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED "allowed: [STAGE_]pN, mean or max < TIME (such as p99<500us, connect_p99<100ms), cpu_per_op<TIME, " \
	"errors, timeouts, retries or refusals < PERCENT%%, jitter<NUMBER, msgs_per_s, bytes_per_s or " \
	"connects_per_s > NUMBER"

static const struct {
	const char *name;
	enum slo_subject subject;
} plain[] = {
	{ "errors", SLO_ERRORS }, { "timeouts", SLO_TIMEOUTS }, { "retries", SLO_RETRIES },
	{ "refusals", SLO_REFUSALS }, { "jitter", SLO_JITTER }, { "cpu_per_op", SLO_CPU_PER_OP },
	{ "msgs_per_s", SLO_MSGS_RATE }, { "bytes_per_s", SLO_BYTES_RATE }, { "connects_per_s", SLO_CONNECTS_RATE },
};

static const struct {
	const char *name;
	enum slo_subject subject;
} subjects[] = {
	{ "response", SLO_RESPONSE }, { "service", SLO_SERVICE }, { "lag", SLO_LAG }, { "connect", SLO_CONNECT },
	{ "psn_generate", SLO_PSN_GENERATE },
};

/* Parses p50, p99.9, mean or max. */
static bool parse_measure(struct slo_term *t, const char *s)
{
	char *end;

	t->measure = strcmp(s, "mean") == 0 ? SLO_MEAN : strcmp(s, "max") == 0 ? SLO_MAX : SLO_PERCENTILE;
	if (t->measure != SLO_PERCENTILE)
		return true;
	if (s[0] != 'p' || !isdigit((unsigned char)s[1]))
		return false;
	t->percentile = strtod(s + 1, &end);
	return *end == '\0' && strspn(s + 1, "0123456789.") == strlen(s + 1) && t->percentile > 0 &&
		t->percentile < 100;
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

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(name, plain[i].name) == 0) {
			t->subject = plain[i].subject;
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

/* The factor of a unit; 0: the subject has no such unit. */
static double factor_of(const struct slo_term *t, const char *unit)
{
	if (slo_is_time(t))
		return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 1e3 :
		       strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "s") == 0 ? 1e9 : 0;
	if (t->subject == SLO_JITTER)
		return *unit == '\0' ? 1 : 0;
	if (slo_is_share(t))
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
	if (slo_is_share(t))
		return t->limit <= 1 && (t->limit > 0 || t->or_equal);
	return t->limit > 0;
}

/* Parses one term, which has no blanks. */
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
	/* Rates have a lower limit, all other subjects an upper limit. */
	return t->below != slo_is_rate(t);
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
