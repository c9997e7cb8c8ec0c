/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/config/slo.c: the grammar. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "loadgen/config/slo.h"

static struct slo slo;
static char err[256];

static const struct slo_term *parsed(const char *text)
{
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), 0);
	return &slo.terms[slo.n - 1];
}

TEST(parse__each_kind_of_term__metric_and_limit)
{
	static const struct {
		const char *text, *metric;
		enum slo_subject subject;
		double limit;
	} cases[] = {
		{ "p99<500us", "response_p99", SLO_RESPONSE, 500e3 },
		{ "p50<=1ms", "response_p50", SLO_RESPONSE, 1e6 },
		{ "p99.9<2.5s", "response_p99.9", SLO_RESPONSE, 2.5e9 },
		{ "mean<100ns", "response_mean", SLO_RESPONSE, 100 },
		{ "max<1s", "response_max", SLO_RESPONSE, 1e9 },
		{ "response_p95<1ms", "response_p95", SLO_RESPONSE, 1e6 },
		{ "service_p99<1ms", "service_p99", SLO_SERVICE, 1e6 },
		{ "lag_max<1ms", "lag_max", SLO_LAG, 1e6 },
		{ "connect_p99<100ms", "connect_p99", SLO_CONNECT, 100e6 },
		{ "tls_handshake_p50<5ms", "tls_handshake_p50", SLO_STAGE, 5e6 },
		{ "first_reply_mean<5ms", "first_reply_mean", SLO_STAGE, 5e6 },
		{ "errors<0.1%", "errors", SLO_ERRORS, 0.001 },
		{ "errors<=0", "errors", SLO_ERRORS, 0 },
		{ "timeouts<0.1%", "timeouts", SLO_TIMEOUTS, 0.001 },
		{ "retries<=0.05", "retries", SLO_RETRIES, 0.05 },
		{ "refusals<=0", "refusals", SLO_REFUSALS, 0 },
		{ "jitter<4.5", "jitter", SLO_JITTER, 4.5 },
		{ "cpu_per_op<20us", "cpu_per_op", SLO_CPU_PER_OP, 20e3 },
		{ "psn_generate_p99<1ms", "psn_generate_p99", SLO_PSN_GENERATE, 1e6 },
		{ "msgs_per_s>10k", "msgs_per_s", SLO_MSGS_RATE, 10e3 },
		{ "bytes_per_s>=1.5G", "bytes_per_s", SLO_BYTES_RATE, 1.5e9 },
		{ "connects_per_s>100", "connects_per_s", SLO_CONNECTS_RATE, 100 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct slo_term *t = parsed(cases[i].text);

		assert_int_equal(slo.n, 1);
		assert_string_equal(t->text, cases[i].text);
		assert_string_equal(t->metric, cases[i].metric);
		assert_int_equal(t->subject, cases[i].subject);
		assert_true(fabs(t->limit - cases[i].limit) <= 1e-9 * cases[i].limit);
	}
}

TEST(parse__several_with_blanks__all)
{
	parsed("p99 < 500us, errors < 0.1%, connect_p99<100ms");
	assert_int_equal(slo.n, 3);
	assert_string_equal(slo.terms[0].text, "p99<500us");
	assert_string_equal(slo.terms[1].metric, "errors");
	assert_int_equal(slo.terms[2].subject, SLO_CONNECT);
}

TEST(parse__anything_else__one_line_that_names_it)
{
	static const char *const bad[] = { "", ",", "p99<1ms,", ",p99<1ms", "p99", "p99<", "<1ms", "p99=1ms", "p99>1ms",
					   "p99<1",
		"p99<1m", "p99<-1ms", "p99<1e400s", "p99<nanms", "p99<0ms", "p100<1ms", "p0<1ms", "p<1ms", "pp<1ms",
		"p9x<1ms",
		"p99<0x10us", "p99<1ms ms", "errors>1%", "errors<200%", "errors<1ms", "errors<0", "errors<0%",
		"msgs_per_s<100", "msgs_per_s>0",
		"msgs_per_s>1x", "timeouts>1%", "retries<2", "refusals<1ms", "jitter<2us", "jitter>2", "jitter<0",
		"jitter<2%",
		"cpu_per_op<20", "cpu_per_op>20us", "response_jitter<2", "nothing_p99<1ms", "connect<1ms",
		"connect_<1ms", "_p99<1ms", "p99<<1ms", "p99<=<1ms", "p1e1<1ms", "p99<1ms;errors<1%", "traffic_p99<1ms",
		("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaaaaaaaaaaaaaaaaaaaaa<1ms") };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(err, 0, sizeof(err));
		if (slo_parse(bad[i], &slo, err, sizeof(err)) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(slo.n, 0);
		assert_non_null(strstr(err, "--slo: "));
		assert_non_null(strstr(err, "allowed"));
		assert_null(strchr(err, '\n'));
	}
}

TEST(parse__more_terms_than_there_is_room_for__refused)
{
	char text[SLO_TERMS_MAX * 10 + 16] = "p50<1s";

	for (int i = 1; i < SLO_TERMS_MAX; i++)
		strcat(text, ",p50<1s");
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), 0);
	assert_int_equal(slo.n, SLO_TERMS_MAX);
	strcat(text, ",p50<1s");
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "16 terms"));
}
