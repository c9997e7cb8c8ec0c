/* Service level objectives: what --slo asks for, and whether a step met it. Pure. */
#ifndef RAMPART_LOADGEN_SLO_H
#define RAMPART_LOADGEN_SLO_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/wire/fail.h"

struct step;

#define SLO_TERMS_MAX 16

/* What a term is about. */
enum slo_subject {
	SLO_RESPONSE,		/* operations, from when they were due */
	SLO_SERVICE,		/* operations, from when they were sent */
	SLO_LAG,		/* how long after they were due they were sent */
	SLO_CONNECT,		/* whole connections */
	SLO_STAGE,		/* one stage of them */
	SLO_ERRORS,		/* share of a step's clients that failed or were dropped */
	SLO_MSGS_RATE, SLO_BYTES_RATE, SLO_CONNECTS_RATE,	/* a second */
};

/* What of a latency. */
enum slo_measure { SLO_PERCENTILE, SLO_MEAN, SLO_MAX };

struct slo_term {
	char text[64];			/* as it was given */
	char metric[40];		/* response_p99, connect_p50, errors, msgs_per_s, ... */
	enum slo_subject subject;
	enum slo_measure measure;
	enum stage stage;		/* of SLO_STAGE */
	double percentile;		/* of SLO_PERCENTILE */
	bool below;			/* allowed is what is below the limit, else what is above */
	bool or_equal;
	double limit;			/* ns, a ratio, or a second */
};

struct slo {
	struct slo_term terms[SLO_TERMS_MAX];
	size_t n;			/* 0: none was given */
};

enum slo_result { SLO_PASS, SLO_FAIL, SLO_INCONCLUSIVE };
extern const char *const slo_result_names[];	/* pass, fail, inconclusive */

/* 'p99<500us,errors<0.1%,connect_p99<100ms'. 0, or -EINVAL with a line that names the term and what is allowed. */
int slo_parse(const char *text, struct slo *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Whether a step that was collected met the term. `measured` in the limit's unit; NAN when the samples do not support
 * it. Then it is met if all of them are within the limit, and missed if so many are not that chance would bring as many
 * in fewer than 5 of 100 steps that meet it; else, and without a sample, it is inconclusive. */
enum slo_result slo_judge_term(const struct slo_term *t, const struct step *s, double *measured);

/* The worst of all terms, fail over inconclusive; SLO_PASS without a term. */
enum slo_result slo_judge(const struct slo *slo, const struct step *s);

/* [{expression, metric, unit, limit, measured, result}], or null without a term. NULL when out of memory. */
json_t *slo_json(const struct slo *slo, const struct step *s);

/* What was measured, with its unit, for people: "1.25 ms", "0.3 %", "12000 a second"; where `v` is NAN, what `result`
 * rests on. Returns `text`. */
const char *slo_value_text(const struct slo_term *t, enum slo_result result, double v, char *text, size_t size);

/* True if the step has samples for each of the latencies, be they too few. */
bool slo_has_samples(const struct slo *slo, const struct step *s);

#endif
