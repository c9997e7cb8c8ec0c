/* SPDX-License-Identifier: BSD-2-Clause */
/* Service level objectives (--slo). loadgen/verdict/slo_judge.h judges whether a step met them. No I/O. */
#ifndef RAMPART_LOADGEN_SLO_H
#define RAMPART_LOADGEN_SLO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/wire/fail.h"

#define SLO_TERMS_MAX 16

/* The figure that a term limits. */
enum slo_subject {
	SLO_RESPONSE,		/* latency of operations from when they were due */
	SLO_SERVICE,		/* latency of operations from when they were sent */
	SLO_LAG,		/* delay between due and sent */
	SLO_CONNECT,		/* time of a whole connection */
	SLO_PSN_GENERATE,	/* time to draw the client's PSN */
	SLO_STAGE,		/* time of one stage of connecting */
	SLO_CPU_PER_OP,		/* CPU time of the server for each operation */
	SLO_ERRORS,		/* share of a step's clients that failed or were dropped */
	SLO_TIMEOUTS, SLO_RETRIES, SLO_REFUSALS,	/* per attempt to connect: loadgen/measurement/rates.h */
	SLO_JITTER,		/* p99 / p50 of SLO_RESPONSE */
	SLO_MSGS_RATE, SLO_BYTES_RATE, SLO_CONNECTS_RATE,	/* per second */
};

/* The statistic of a latency. */
enum slo_measure { SLO_PERCENTILE, SLO_MEAN, SLO_MAX };

struct slo_term {
	char text[64];			/* as it was given */
	char metric[40];		/* response_p99, connect_p50, errors, jitter, msgs_per_s, ... */
	enum slo_subject subject;
	enum slo_measure measure;
	enum stage stage;		/* for SLO_STAGE */
	double percentile;		/* for SLO_PERCENTILE */
	bool below;			/* the figure must be below the limit; otherwise above */
	bool or_equal;
	double limit;			/* in ns, as a ratio, or per second */
};

struct slo {
	struct slo_term terms[SLO_TERMS_MAX];
	size_t n;			/* 0: none was given */
};

/* Parses 'p99<500us,errors<0.1%'. Returns 0, or -EINVAL with a line that names the bad term and the valid forms. */
int slo_parse(const char *text, struct slo *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* True if the figure comes from a histogram of samples. */
static inline bool slo_is_latency(const struct slo_term *t)
{
	return t->subject <= SLO_STAGE;
}

/* True if the limit is a time. */
static inline bool slo_is_time(const struct slo_term *t)
{
	return t->subject <= SLO_CPU_PER_OP;
}

/* True if the limit is a share, between 0 and 1. */
static inline bool slo_is_share(const struct slo_term *t)
{
	return t->subject >= SLO_ERRORS && t->subject <= SLO_REFUSALS;
}

/* True if the limit is a minimum number per second. */
static inline bool slo_is_rate(const struct slo_term *t)
{
	return t->subject >= SLO_MSGS_RATE;
}

#endif
