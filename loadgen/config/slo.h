/* SPDX-License-Identifier: BSD-2-Clause */
/* Service level objectives: what --slo asks for. loadgen/verdict/slo_judge.h says whether a step met it. Pure. */
#ifndef RAMPART_LOADGEN_SLO_H
#define RAMPART_LOADGEN_SLO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/wire/fail.h"

#define SLO_TERMS_MAX 16

/* What a term is about. */
enum slo_subject {
	SLO_RESPONSE,		/* operations, from when they were due */
	SLO_SERVICE,		/* operations, from when they were sent */
	SLO_LAG,		/* how long after they were due they were sent */
	SLO_CONNECT,		/* whole connections */
	SLO_PSN_GENERATE,	/* drawing the client's PSN */
	SLO_STAGE,		/* one stage of them */
	SLO_CPU_PER_OP,		/* CPU time of the server for each operation */
	SLO_ERRORS,		/* share of a step's clients that failed or were dropped */
	SLO_TIMEOUTS, SLO_RETRIES, SLO_REFUSALS,	/* for each attempt to connect: loadgen/measurement/rates.h */
	SLO_JITTER,		/* p99 / p50 of SLO_RESPONSE */
	SLO_MSGS_RATE, SLO_BYTES_RATE, SLO_CONNECTS_RATE,	/* a second */
};

/* Which figure of a latency. */
enum slo_measure { SLO_PERCENTILE, SLO_MEAN, SLO_MAX };

struct slo_term {
	char text[64];			/* as it was given */
	char metric[40];		/* response_p99, connect_p50, errors, jitter, msgs_per_s, ... */
	enum slo_subject subject;
	enum slo_measure measure;
	enum stage stage;		/* of SLO_STAGE */
	double percentile;		/* of SLO_PERCENTILE */
	bool below;			/* allowed is what is below the limit, else what is above */
	bool or_equal;
	double limit;			/* ns, a ratio, or so many a second */
};

struct slo {
	struct slo_term terms[SLO_TERMS_MAX];
	size_t n;			/* 0: none was given */
};

/* 'p99<500us,errors<0.1%,connect_p99<100ms'. 0, or -EINVAL with a line that names the term and what is allowed. */
int slo_parse(const char *text, struct slo *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Of samples, in a histogram. */
static inline bool slo_is_latency(const struct slo_term *t)
{
	return t->subject <= SLO_STAGE;
}

/* Its limit is a time. */
static inline bool slo_is_time(const struct slo_term *t)
{
	return t->subject <= SLO_CPU_PER_OP;
}

/* Its limit is a share, between 0 and 1. */
static inline bool slo_is_share(const struct slo_term *t)
{
	return t->subject >= SLO_ERRORS && t->subject <= SLO_REFUSALS;
}

/* Its limit is so many a second, at least. */
static inline bool slo_is_rate(const struct slo_term *t)
{
	return t->subject >= SLO_MSGS_RATE;
}

#endif
