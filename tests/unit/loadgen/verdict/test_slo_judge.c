/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/verdict/slo_judge.c: every term at its limit, and with too few samples. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/wire/frame.h"
#include "loadgen/verdict/slo_judge.h"
#include "loadgen/measurement/rates.h"
#include "loadgen/measurement/step.h"

static struct slo slo;
static struct step *s;

static const struct slo_term *parsed(const char *text)
{
	char err[256];

	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), 0);
	return &slo.terms[slo.n - 1];
}

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	s = NULL;
	return 0;
}

/* 1,000 clients, connected in 10 s, with 1,000 operations of 1 to 1,000 us. */
static int set_up(void **state)
{
	(void)state;
	if (step_new(1000, 64, 1, &s))
		return -1;
	s->connected_peak = s->connected_held = 1000;
	s->connect_wall_ns = 10 * NS_PER_S;
	s->measured = true;
	s->messages_per_s = 5000;
	s->bytes_per_s = 5000 * 64;
	for (uint64_t i = 1; i <= 1000; i++) {
		hist_record(s->hists.response, i * NS_PER_US);
		hist_record(s->total, i * NS_PER_MS);
		hist_record(s->stages[STAGE_TLS_HANDSHAKE], 7 * NS_PER_MS);
	}
	return 0;
}

static enum slo_result judged(const char *text)
{
	double measured;

	return slo_judge_term(parsed(text), s, &measured);
}

TEST(judge__at_its_limit__passes_below_and_fails_above)
{
	assert_int_equal(judged("p50<510us"), SLO_PASS);
	assert_int_equal(judged("p50<490us"), SLO_FAIL);
	assert_int_equal(judged("max<1ms"), SLO_FAIL);
	assert_int_equal(judged("max<=1ms"), SLO_PASS);
	assert_int_equal(judged("mean<501us"), SLO_PASS);
	assert_int_equal(judged("mean<500us"), SLO_FAIL);
	assert_int_equal(judged("connect_p99<1s"), SLO_PASS);
	assert_int_equal(judged("connect_p99<980ms"), SLO_FAIL);
	assert_int_equal(judged("tls_handshake_p50<6ms"), SLO_FAIL);
	assert_int_equal(judged("tls_handshake_p50<8ms"), SLO_PASS);
	assert_int_equal(judged("msgs_per_s>5000"), SLO_FAIL);
	assert_int_equal(judged("msgs_per_s>=5000"), SLO_PASS);
	assert_int_equal(judged("bytes_per_s>319k"), SLO_PASS);
	assert_int_equal(judged("connects_per_s>99"), SLO_PASS);
	assert_int_equal(judged("connects_per_s>101"), SLO_FAIL);
	/* A closed loop has no schedule to lag behind. */
	assert_int_equal(judged("service_p50<510us"), SLO_PASS);
	assert_int_equal(judged("lag_p50<1s"), SLO_INCONCLUSIVE);
}

TEST(judge__errors__failed_and_dropped_of_all_clients)
{
	double measured;

	s->failed = 1;
	assert_int_equal(judged("errors<0.1%"), SLO_FAIL);
	assert_int_equal(judged("errors<=0.1%"), SLO_PASS);
	s->dropped = 1;
	assert_int_equal(slo_judge_term(parsed("errors<=0.1%"), s, &measured), SLO_FAIL);
	assert_true(fabs(measured - 0.002) < 1e-12);
}

static void count(struct fail_table *t, enum fail_kind kind, int n)
{
	const struct fail f = { .stage = STAGE_TLS_HANDSHAKE, .kind = kind, .code = kind == FAIL_REFUSED ? REFUSE_FULL :
				0 };

	while (n--)
		fail_table_count(t, &f);
}

/* 1,000 connections succeeded, 6 attempts were repeated and 4 clients failed: 1,010 attempts. */
TEST(judge__timeouts_retries_refusals__of_all_attempts)
{
	struct rates r;
	double measured;
	json_t *o;

	s->retries = 6;
	s->span_ns = 5 * NS_PER_S;
	count(&s->retried, FAIL_TIMEOUT, 5);
	count(&s->retried, FAIL_REFUSED, 1);
	count(&s->failures, FAIL_TIMEOUT, 1);
	count(&s->failures, FAIL_REFUSED, 3);
	r = rates_of(s);
	assert_int_equal(r.attempts, 1010);
	assert_int_equal(r.timeouts, 6);
	assert_int_equal(r.refusals, 4);
	assert_int_equal(slo_judge_term(parsed("timeouts<0.59%"), s, &measured), SLO_FAIL);
	assert_true(fabs(measured - 6. / 1010) < 1e-12);
	assert_int_equal(judged("timeouts<0.6%"), SLO_PASS);
	assert_int_equal(judged("retries<0.6%"), SLO_PASS);
	assert_int_equal(judged("refusals<0.39%"), SLO_FAIL);
	assert_int_equal(judged("refusals<0.4%"), SLO_PASS);
	o = rates_json(s);
	assert_float_equal(json_number_at(o, "timeouts.per_s"), 1.2, 1e-9);
	assert_float_equal(json_number_at(o, "refusals.per_attempt_ratio"), 4. / 1010, 1e-9);
	json_decref(o);
	/* Without attempts the ratios are unknown. */
	hist_reset(s->total);
	fail_table_reset(&s->failures);
	s->retries = 0;
	assert_int_equal(judged("retries<=0"), SLO_INCONCLUSIVE);
}

/* Operations of 1 to 1,000 us: p99 is 1.98 times p50. */
TEST(judge__jitter__p99_over_p50)
{
	assert_int_equal(judged("jitter<1.9"), SLO_FAIL);
	assert_int_equal(judged("jitter<2.1"), SLO_PASS);
	hist_reset(s->hists.response);
	hist_record_n(s->hists.response, 1000, 298);
	assert_int_equal(judged("jitter<2.1"), SLO_INCONCLUSIVE);
}

/* 5,000 messages a second, for which the server used 1.5 s of CPU time in 10 s: 30 us each. */
TEST(judge__cpu_per_op__of_the_server)
{
	assert_int_equal(judged("cpu_per_op<1s"), SLO_INCONCLUSIVE);
	s->begin.server = json_pack("{s:f, s:{s:f, s:f}}", "uptime_s", 100., "resources", "cpu_user_s", 7.,
				    "cpu_system_s", 3.);
	s->end.server = json_pack("{s:f, s:{s:f, s:f}}", "uptime_s", 110., "resources", "cpu_user_s", 8.,
				  "cpu_system_s", 3.5);
	assert_int_equal(judged("cpu_per_op<29us"), SLO_FAIL);
	assert_int_equal(judged("cpu_per_op<31us"), SLO_PASS);
	s->messages_per_s = 0;
	assert_int_equal(judged("cpu_per_op<31us"), SLO_INCONCLUSIVE);
}

TEST(judge__too_few_samples__inconclusive_but_errors_count)
{
	/* With 1,000 samples, one beyond the limit may be chance, three miss the objective, and none meets it. */
	assert_int_equal(judged("p99.9<999500ns"), SLO_INCONCLUSIVE);
	assert_int_equal(judged("p99.9<990us"), SLO_FAIL);
	assert_int_equal(judged("p99.9<1s"), SLO_PASS);
	parsed("p99.9<999500ns,errors<1%");
	assert_true(slo_has_samples(&slo, s));
	parsed("lag_p99<1s");
	assert_false(slo_has_samples(&slo, s));
	parsed("p99.9<999500ns,errors<1%");
	assert_int_equal(slo_judge(&slo, s), SLO_INCONCLUSIVE);
	s->failed = 1000;
	assert_int_equal(slo_judge(&slo, s), SLO_FAIL);
	s->measured = false;
	assert_int_equal(judged("msgs_per_s>1"), SLO_INCONCLUSIVE);
	slo.n = 0;
	assert_int_equal(slo_judge(&slo, s), SLO_PASS);
}

TEST(json__terms_with_unit_and_result)
{
	json_t *a;

	slo.n = 0;
	a = slo_json(&slo, s);
	assert_true(json_is_null(a));
	json_decref(a);
	parsed("p99.9<999500ns,errors<1%,msgs_per_s>1M");
	a = slo_json(&slo, s);
	assert_int_equal(json_array_size(a), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(a, 0), "result")), "inconclusive");
	assert_true(json_is_null(json_object_get(json_array_get(a, 0), "measured")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(a, 0), "unit")), "ns");
	assert_string_equal(json_string_value(json_object_get(json_array_get(a, 1), "result")), "pass");
	assert_string_equal(json_string_value(json_object_get(json_array_get(a, 1), "unit")), "ratio");
	assert_string_equal(json_string_value(json_object_get(json_array_get(a, 2), "result")), "fail");
	json_decref(a);
}

TEST(value_text__by_its_unit)
{
	char text[64];

	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, 1.25e6, text, sizeof(text)), "1.25 ms");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, 990e3, text, sizeof(text)), "990 us");
	assert_string_equal(slo_value_text(parsed("errors<1%"), SLO_PASS, 0.003, text, sizeof(text)), "0.3 %");
	assert_string_equal(slo_value_text(parsed("refusals<1%"), SLO_PASS, 0.003, text, sizeof(text)), "0.3 %");
	assert_string_equal(slo_value_text(parsed("jitter<3"), SLO_PASS, 2.5, text, sizeof(text)), "2.5");
	assert_string_equal(slo_value_text(parsed("cpu_per_op<1ms"), SLO_PASS, 30e3, text, sizeof(text)), "30 us");
	assert_string_equal(slo_value_text(parsed("cpu_per_op<1ms"), SLO_INCONCLUSIVE, NAN, text, sizeof(text)),
			    "unknown");
	assert_string_equal(slo_value_text(parsed("msgs_per_s>1"), SLO_PASS, 12000, text, sizeof(text)),
			    "12000 a second");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_INCONCLUSIVE, NAN, text, sizeof(text)),
			    "unknown: too few samples");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, NAN, text, sizeof(text)),
			    "all within, too few for a percentile");
}

TEST_EACH(set_up, tear_down)
