/* Unit tests of loadgen/config/slo.c: the grammar, and every term at its limit. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "loadgen/config/slo.h"
#include "loadgen/step/step.h"
#include "loadgen/traffic/worker.h"

const struct worker_stats *worker_stats(const struct worker *w)
{
	fail_msg("the SLO asks a worker (%p)", (const void *)w);
	return NULL;
}

static struct slo slo;
static char err[256];

static const struct slo_term *parsed(const char *text)
{
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), 0);
	return &slo.terms[slo.n - 1];
}

static void parse__each_kind_of_term__metric_and_limit(void **state)
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
		{ "msgs_per_s>10k", "msgs_per_s", SLO_MSGS_RATE, 10e3 },
		{ "bytes_per_s>=1.5G", "bytes_per_s", SLO_BYTES_RATE, 1.5e9 },
		{ "connects_per_s>100", "connects_per_s", SLO_CONNECTS_RATE, 100 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct slo_term *t = parsed(cases[i].text);

		assert_int_equal(slo.n, 1);
		assert_string_equal(t->text, cases[i].text);
		assert_string_equal(t->metric, cases[i].metric);
		assert_int_equal(t->subject, cases[i].subject);
		assert_true(fabs(t->limit - cases[i].limit) <= 1e-9 * cases[i].limit);
	}
}

static void parse__several_with_blanks__all(void **state)
{
	(void)state;
	parsed("p99 < 500us, errors < 0.1%, connect_p99<100ms");
	assert_int_equal(slo.n, 3);
	assert_string_equal(slo.terms[0].text, "p99<500us");
	assert_string_equal(slo.terms[1].metric, "errors");
	assert_int_equal(slo.terms[2].subject, SLO_CONNECT);
}

static void parse__anything_else__one_line_that_names_it(void **state)
{
	static const char *const bad[] = { "", ",", "p99<1ms,", ",p99<1ms", "p99", "p99<", "<1ms", "p99=1ms", "p99>1ms", "p99<1",
		"p99<1m", "p99<-1ms", "p99<1e400s", "p99<nanms", "p99<0ms", "p100<1ms", "p0<1ms", "p<1ms", "pp<1ms", "p9x<1ms",
		"p99<0x10us", "p99<1ms ms", "errors>1%", "errors<200%", "errors<1ms", "errors<0", "errors<0%", "msgs_per_s<100", "msgs_per_s>0",
		"msgs_per_s>1x", "nothing_p99<1ms", "connect<1ms", "connect_<1ms", "_p99<1ms", "p99<<1ms", "p99<=<1ms",
		"p1e1<1ms", "p99<1ms;errors<1%", "traffic_p99<1ms",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<1ms" };

	(void)state;
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

static void parse__more_terms_than_there_is_room_for__refused(void **state)
{
	char text[SLO_TERMS_MAX * 10 + 16] = "p50<1s";

	(void)state;
	for (int i = 1; i < SLO_TERMS_MAX; i++)
		strcat(text, ",p50<1s");
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), 0);
	assert_int_equal(slo.n, SLO_TERMS_MAX);
	strcat(text, ",p50<1s");
	assert_int_equal(slo_parse(text, &slo, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "16 terms"));
}

/* --- judging --- */

static struct step *s;

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	s = NULL;
	return 0;
}

/* 1000 clients, 1000 operations of 1 to 1000 us, connected in 10 s. */
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
		hist_record(s->response, i * NS_PER_US);
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

static void judge__at_its_limit__passes_below_and_fails_above(void **state)
{
	(void)state;
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
	/* A closed loop has no schedule. */
	assert_int_equal(judged("service_p50<510us"), SLO_PASS);
	assert_int_equal(judged("lag_p50<1s"), SLO_INCONCLUSIVE);
}

static void judge__errors__failed_and_dropped_of_all_clients(void **state)
{
	double measured;

	(void)state;
	s->failed = 1;
	assert_int_equal(judged("errors<0.1%"), SLO_FAIL);
	assert_int_equal(judged("errors<=0.1%"), SLO_PASS);
	s->dropped = 1;
	assert_int_equal(slo_judge_term(parsed("errors<=0.1%"), s, &measured), SLO_FAIL);
	assert_true(fabs(measured - 0.002) < 1e-12);
}

static void judge__too_few_samples__inconclusive_but_errors_count(void **state)
{
	(void)state;
	/* Of 1,000 the one that is beyond may be the thousandth; three are too many, and none is met. */
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

static void json__terms_with_unit_and_result(void **state)
{
	json_t *a;

	(void)state;
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

static void value_text__by_its_unit(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, 1.25e6, text, sizeof(text)), "1.25 ms");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, 990e3, text, sizeof(text)), "990 us");
	assert_string_equal(slo_value_text(parsed("errors<1%"), SLO_PASS, 0.003, text, sizeof(text)), "0.3 %");
	assert_string_equal(slo_value_text(parsed("msgs_per_s>1"), SLO_PASS, 12000, text, sizeof(text)), "12000 a second");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_INCONCLUSIVE, NAN, text, sizeof(text)),
			    "unknown: too few samples");
	assert_string_equal(slo_value_text(parsed("p99<1s"), SLO_PASS, NAN, text, sizeof(text)),
			    "all within, too few for a percentile");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__each_kind_of_term__metric_and_limit),
		cmocka_unit_test(parse__several_with_blanks__all),
		cmocka_unit_test(parse__anything_else__one_line_that_names_it),
		cmocka_unit_test(parse__more_terms_than_there_is_room_for__refused),
		cmocka_unit_test_setup_teardown(judge__at_its_limit__passes_below_and_fails_above, set_up, tear_down),
		cmocka_unit_test_setup_teardown(judge__errors__failed_and_dropped_of_all_clients, set_up, tear_down),
		cmocka_unit_test_setup_teardown(judge__too_few_samples__inconclusive_but_errors_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json__terms_with_unit_and_result, set_up, tear_down),
		cmocka_unit_test_setup_teardown(value_text__by_its_unit, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("loadgen_slo", tests, NULL, NULL);
}
