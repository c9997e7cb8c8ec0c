/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/verdict/verdict.c: every tier at its bounds, and the overall result. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/wire/frame.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/worker/pulse.h"
#include "loadgen/worker/worker.h"

const struct worker_stats *worker_stats(const struct worker *w)
{
	fail_msg("the verdict asks a worker (%p)", (const void *)w);
	return NULL;
}

static struct step *s;
static json_t *verdict;
static struct verdict_terms terms;

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	json_decref(verdict);
	terms = (struct verdict_terms){ 0 };
	s = NULL;
	verdict = NULL;
	return 0;
}

/* Begins a good step: all clients held, each connected within `connect_ns`. */
static void begin(uint32_t target, uint64_t connect_ns)
{
	tear_down(NULL);
	assert_int_equal(step_new(target, 64, 2, &s), 0);
	verdict = json_array();
	s->attempted = s->connected_peak = s->connected_held = target;
	s->measured = true;
	s->pools = POOLS_RESTORED;
	for (uint32_t i = 0; i < target; i++)
		hist_record(s->total, connect_ns);
}

static void count_failures(enum stage stage, enum fail_kind kind, int code, int n)
{
	const struct fail f = { .stage = stage, .kind = kind, .code = code };

	while (n--)
		fail_table_count(&s->failures, &f);
}

static void judge(void)
{
	json_decref(verdict);
	verdict = json_array();
	verdict_add_step(verdict, s, &terms);
}

static json_t *find(const char *criterion)
{
	json_t *c, *found = NULL;
	size_t i;

	json_array_foreach(verdict, i, c)
		if (strcmp(json_string_value(json_object_get(c, "criterion")), criterion) == 0) {
			assert_null(found);
			found = c;
		}
	if (!found)
		fail_msg("no criterion '%s'", criterion);
	return found;
}

static const char *text_of(const char *criterion, const char *member)
{
	return json_string_value(json_object_get(find(criterion), member));
}

static const char *result_of(const char *criterion)
{
	judge();
	return text_of(criterion, "result");
}

static void assert_measured(const char *criterion, const char *part)
{
	if (!strstr(text_of(criterion, "measured"), part))
		fail_msg("'%s' does not say '%s'", text_of(criterion, "measured"), part);
}

#define CONNECT "connection time p50"
#define TAIL	"connection time p99"
#define SUCCESS "success rate"
#define STABLE	"stability"

TEST(add_step__any__documented_members)
{
	json_t *c;
	size_t i;

	begin(10, 1000);
	judge();
	assert_int_equal(json_array_size(verdict), 3);
	json_array_foreach(verdict, i, c) {
		bool of_time = json_object_get(c, "limit_ns");

		assert_int_equal(json_object_size(c), of_time ? 9 : 7);
		assert_int_equal(json_integer_value(json_object_get(c, "message_bytes")), 64);
		assert_int_equal(json_integer_value(json_object_get(c, "clients")), 10);
		assert_int_equal(json_integer_value(json_object_get(c, "repetition")), 2);
		assert_true(json_is_string(json_object_get(c, "required")));
		assert_true(json_is_string(json_object_get(c, "measured")));
	}
}

TEST(tiers__by_clients__their_criteria)
{
	static const struct { uint32_t clients; const char *connect, *success; } tiers[] = {
		{ 5, "under 1 ms", "100 %" }, { 10, "under 1 ms", "100 %" },
		{ 11, "under 10 ms", "100 %" }, { 100, "under 10 ms", "100 %" },
		{ 101, "under 100 ms", "over 99 %" }, { 1000, "under 100 ms", "over 99 %" },
	};
	static const uint32_t stable[] = { 1001, 10000, 10001 };

	for (size_t i = 0; i < N_ELEMENTS(tiers); i++) {
		begin(tiers[i].clients, 1000);
		judge();
		assert_int_equal(json_array_size(verdict), 3);
		assert_string_equal(text_of(CONNECT, "required"), tiers[i].connect);
		assert_string_equal(text_of(TAIL, "required"), tiers[i].connect);
		assert_string_equal(text_of(SUCCESS, "required"), tiers[i].success);
		assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	}
	for (size_t i = 0; i < N_ELEMENTS(stable); i++) {
		begin(stable[i], NS_PER_S);
		judge();
		assert_int_equal(json_array_size(verdict), 1);
		assert_string_equal(text_of(STABLE, "result"), "pass");
	}
}

TEST(connect_time__at_the_bound__fails)
{
	static const struct { uint32_t clients; uint64_t bound_ns; } tiers[] = {
		{ 10, NS_PER_MS }, { 100, 10 * NS_PER_MS }, { 1000, 100 * NS_PER_MS },
	};

	for (size_t i = 0; i < N_ELEMENTS(tiers); i++) {
		begin(tiers[i].clients, tiers[i].bound_ns);
		assert_string_equal(result_of(CONNECT), "fail");
		assert_string_equal(result_of(TAIL), "fail");
		begin(tiers[i].clients, tiers[i].bound_ns - 1);
		assert_string_equal(result_of(CONNECT), "pass");
		assert_string_equal(result_of(TAIL), "pass");
		assert_string_equal(result_of(SUCCESS), "pass");
	}
}

/* The median decides: 5 of 10 below the bound are enough, 4 are not. */
TEST(connect_time__half_below__passes)
{
	begin(10, 500000);
	hist_reset(s->total);
	for (int i = 0; i < 10; i++)
		hist_record(s->total, i < 5 ? 500000 : 50 * NS_PER_MS);
	assert_string_equal(result_of(CONNECT), "pass");
	assert_measured(CONNECT, "0.5 ms");
	hist_reset(s->total);
	for (int i = 0; i < 10; i++)
		hist_record(s->total, i < 4 ? 500000 : 50 * NS_PER_MS);
	assert_string_equal(result_of(CONNECT), "fail");
	assert_measured(CONNECT, "50 ms");
	hist_reset(s->total);
	for (int i = 0; i < 10; i++)
		hist_record(s->total, 12345 * NS_PER_MS);
	assert_string_equal(result_of(CONNECT), "fail");
	assert_measured(CONNECT, "12345 ms");	/* and not 1.23e+04 */
}

TEST(connect_time__too_few_samples__inconclusive)
{
	begin(8, 1000);
	hist_reset(s->total);
	for (int i = 0; i < 4; i++)
		hist_record(s->total, 1000);
	assert_string_equal(result_of(TAIL), "inconclusive");
	assert_string_equal(result_of(CONNECT), "inconclusive");
	assert_measured(CONNECT, "too few samples (4)");
	assert_string_equal(result_of(SUCCESS), "pass");
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
	begin(10, 1000);
	hist_reset(s->total);
	s->connected_held = 0;
	assert_string_equal(result_of(CONNECT), "inconclusive");
	assert_int_equal(verdict_overall(verdict), CRITERION_FAIL);
}

/* A step too small for a median is not held to criteria that need one. */
TEST(connect_time__fewer_clients_than_a_median_takes__no_criterion)
{
	begin(4, 50 * NS_PER_MS);
	judge();
	assert_int_equal(json_array_size(verdict), 1);
	assert_string_equal(result_of(SUCCESS), "pass");
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	begin(5, 50 * NS_PER_MS);
	assert_string_equal(result_of(CONNECT), "fail");
}

/* 10 connections are too few for a p99: all within the limit passes, more beyond it than chance allows fails. */
TEST(connect_time__p99_of_few__judged_where_it_is_certain)
{
	begin(10, 500000);
	assert_string_equal(result_of(TAIL), "pass");
	assert_measured(TAIL, "all 10 within the limit, the longest 0.5 ms");
	hist_record(s->total, 50 * NS_PER_MS);
	assert_string_equal(result_of(TAIL), "inconclusive");
	assert_measured(TAIL, "1 of 11 above the limit, the longest 50 ms");
	assert_string_equal(result_of(CONNECT), "pass");
	hist_record_n(s->total, 50 * NS_PER_MS, 2);
	assert_string_equal(result_of(TAIL), "fail");
	begin(1000, 50 * NS_PER_MS);
	hist_record_n(s->total, 120 * NS_PER_MS, 20);
	assert_string_equal(result_of(CONNECT), "pass");
	assert_string_equal(result_of(TAIL), "fail");
	assert_measured(TAIL, "120 ms");
}

/* A missed limit says where the time went, at the percentile that missed it. */
TEST(connect_time__missed__longest_stage_named)
{
	begin(10, 100 * NS_PER_MS);
	hist_record_n(s->stages[STAGE_TCP_CONNECT], 10 * NS_PER_MS, 10);
	hist_record_n(s->stages[STAGE_TLS_HANDSHAKE], 60 * NS_PER_MS, 9);
	hist_record(s->stages[STAGE_TLS_HANDSHAKE], 10 * NS_PER_MS);
	hist_record_n(s->stages[STAGE_RDMA_CONNECT], 20 * NS_PER_MS, 9);
	hist_record(s->stages[STAGE_RDMA_CONNECT], 80 * NS_PER_MS);
	assert_string_equal(result_of(CONNECT), "fail");
	assert_measured(CONNECT, "100 ms, the longest stage tls_handshake: 60 ms (60 %)");
	assert_string_equal(text_of(CONNECT, "longest_stage"), "tls_handshake");
	assert_float_equal(json_number_value(json_object_get(find(CONNECT), "longest_stage_ratio")), 0.6, 0.01);
	assert_measured(TAIL, "the longest stage rdma_connect: 80 ms (80 %)");
	/* Time in no stage was spent before the attempt that succeeded. */
	begin(10, 100 * NS_PER_MS);
	hist_record_n(s->stages[STAGE_TLS_HANDSHAKE], 20 * NS_PER_MS, 10);
	assert_string_equal(result_of(CONNECT), "fail");
	assert_measured(CONNECT, "the longest stage waiting: 80 ms (80 %)");
	begin(10, 1000);
	judge();
	assert_null(json_object_get(find(CONNECT), "longest_stage"));
}

TEST(connect_time__with_an_excuse__shown_and_not_judged)
{
	begin(10, 185 * NS_PER_MS);
	terms.excuse = "emulated CPU";
	assert_string_equal(result_of(CONNECT), "not_judged");
	assert_string_equal(text_of(CONNECT, "measured"), "not judged (emulated CPU: 185 ms)");
	assert_string_equal(text_of(TAIL, "result"), "not_judged");
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	s->connected_held = 9;
	judge();
	assert_int_equal(verdict_overall(verdict), CRITERION_FAIL);
}

TEST(excuse__environments__emulated_before_software)
{
	json_auto_t *hardware = json_pack("{s:b, s:{s:b}}", "is_emulated_cpu", 0, "rdma_device", "is_software", 0);
	json_auto_t *software = json_pack("{s:b, s:{s:b}}", "is_emulated_cpu", 0, "rdma_device", "is_software", 1);
	json_auto_t *emulated = json_pack("{s:b, s:{s:b}}", "is_emulated_cpu", 1, "rdma_device", "is_software", 1);

	assert_null(verdict_excuse(hardware, hardware));
	assert_null(verdict_excuse(NULL, NULL));
	assert_string_equal(verdict_excuse(hardware, software), "software RDMA");
	assert_string_equal(verdict_excuse(software, NULL), "software RDMA");
	assert_string_equal(verdict_excuse(emulated, hardware), "emulated CPU");
}

static json_t *checks(int checked, int corrupt)
{
	return json_pack("{s:{s:i, s:i}}", "events", "messages_checked", checked, "messages_corrupt", corrupt);
}

/* The server alone checks one-way messages. */
TEST(data__checked_at_the_server_only__counts)
{
	begin(10, 1000);
	s->begin.server = checks(5, 1);
	s->end.server = checks(5, 1);
	judge();
	assert_int_equal(json_array_size(verdict), 3);
	json_decref(s->end.server);
	s->end.server = checks(7, 1);
	assert_string_equal(result_of("data"), "pass");
	json_decref(s->end.server);
	s->end.server = checks(7, 2);
	assert_string_equal(result_of("data"), "fail");
	assert_measured("data", "1 corrupt");
}

TEST(psns__distinct_and_read_back__by_what_is_known)
{
	static const struct { uint64_t shared, verified, mismatches; const char *result, *measured; } cases[] = {
		{ 0, 10, 0, "pass", "20 PSNs, all distinct, 4 conflicts redrawn, 20 read back" },
		{ 0, 0, 0, "pass", "20 PSNs, all distinct, 4 conflicts redrawn, not read back (--verify)" },
		{ 0, 9, 0, "inconclusive", "18 read back" },
		{ 0, 10, 1, "fail", "20 read back, 1 connection with others than agreed" },
		{ 2, 10, 0, "fail", "20 PSNs, 2 not distinct" },
	};

	begin(10, 1000);
	s->psns_redrawn = 3;
	s->marked = json_pack("{s:{s:i, s:i}}", "events", "psn_redraws", 5, "psn_mismatches", 1);
	s->after = json_pack("{s:{s:i, s:i}}", "events", "psn_redraws", 6, "psn_mismatches", 1);
	/* Without a connection, as over sockets, there is nothing to judge. */
	judge();
	assert_int_equal(json_array_size(verdict), 3);
	s->psns_exchanged = 20;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		s->psns_shared = cases[i].shared;
		s->psn_verified = cases[i].verified;
		s->psn_mismatches = cases[i].mismatches;
		assert_string_equal(result_of("psns"), cases[i].result);
		assert_measured("psns", cases[i].measured);
	}
	s->outages = 1;
	s->psn_mismatches = 0;
	assert_string_equal(result_of("psns"), "inconclusive");
	assert_measured("psns", "2 not distinct (perhaps those of connections that were lost)");
	/* Mismatches that the server read back count, too. */
	s->psns_shared = s->psn_mismatches = 0;
	json_object_set_new(json_object_get(s->after, "events"), "psn_mismatches", json_integer(3));
	assert_string_equal(result_of("psns"), "fail");
	assert_measured("psns", "2 connections with others than agreed");
}

TEST(success__one_missing_of_100__fails)
{
	begin(100, 1000);
	assert_string_equal(result_of(SUCCESS), "pass");
	assert_measured(SUCCESS, "100 % (100 of 100 held at once)");
	s->connected_held = 99;
	assert_string_equal(result_of(SUCCESS), "fail");
	assert_measured(SUCCESS, "99 % (99 of 100 held at once)");
	begin(10, 1000);
	s->connected_held = 9;
	assert_string_equal(result_of(SUCCESS), "fail");
}

TEST(success__exactly_99_percent_of_1000__fails)
{
	static const uint32_t targets[] = { 1000, 900, 700, 300, 200 };

	for (size_t i = 0; i < N_ELEMENTS(targets); i++) {
		begin(targets[i], 1000);
		s->connected_held = targets[i] / 100 * 99;
		assert_string_equal(result_of(SUCCESS), "fail");
		s->connected_held++;
		assert_string_equal(result_of(SUCCESS), "pass");
	}
}

/* Clients held at the same time count; a client that was connected and then dropped is a failure. */
TEST(success__peak_higher_than_held__held_counts)
{
	begin(10, 1000);
	s->connected_held = 8;
	s->dropped = 2;
	assert_string_equal(result_of(SUCCESS), "fail");
	assert_measured(SUCCESS, "80 % (8 of 10");
}

TEST(stability__all_held__stable)
{
	begin(10000, 1000);
	assert_string_equal(result_of(STABLE), "pass");
	assert_measured(STABLE, "stable: 10000 held, no failures");
}

/* Each of these alone is not stable, and without a failure that explains it, it is not graceful either. */
TEST(stability__unexplained__fails)
{
	for (int i = 0; i < 6; i++) {
		begin(5000, 1000);
		switch (i) {
		case 0: s->connected_held--; break;
		case 1: s->measured = false; break;
		case 2: s->replies_missing = true; break;
		case 3: s->pools = POOLS_NOT_RESTORED; break;
		case 4: s->failed = 1; break;
		case 5: s->dropped = 1; break;
		}
		assert_string_equal(result_of(STABLE), "fail");
	}
	begin(5000, 1000);
	s->connected_held = 0;
	s->measured = false;
	s->step_timeout = true;
	assert_string_equal(result_of(STABLE), "fail");
	assert_measured(STABLE, "connecting took too long");
}

/* A step of 10,000 clients: 8,000 were held and served, 2,000 were refused with a code. */
static void begin_graceful(void)
{
	begin(10000, 1000);
	s->connected_held = s->connected_peak = 8000;
	s->failed = 2000;
	s->fairness = (struct step_fairness){ .clients = 8000, .sum = 800000, .min = 50, .max = 150 };
	s->follow_up.tried = s->follow_up.connected = 5;
	count_failures(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL, 1500);
	count_failures(STAGE_RDMA_CONNECT, FAIL_ERRNO, ENOMEM, 500);
}

TEST(stability__all_conditions_met__graceful)
{
	begin_graceful();
	assert_string_equal(result_of(STABLE), "pass");
	/* The most frequent failure is named. */
	assert_measured(STABLE, "8000 of 10000 held; graceful failure: refused:full at psn_exchange (1500 times)");
}

/* Each condition of docs/results.md, "Graceful failure", is missing once. */
TEST(stability__one_condition_missing__not_graceful)
{
	static const struct { const char *result, *why; } cases[] = {
		{ "fail", "at least 5000 must be held" }, { "fail", "3 connected clients were lost" },
		{ "fail", "replies to those held were missing" }, { "fail", "some of those held got no reply" },
		{ "fail", "those held got no reply" }, { "fail", "not every failure has a code" },
		{ "fail", "7 failed without being told why" }, { "fail", "7 failed without being told why" },
		{ "fail", "the server's pools did not come back" }, { "fail", "afterwards only 4 of 5 connected" },
		{ "inconclusive", "whether others can connect afterwards is unknown" },
		{ "inconclusive", "whether the server's pools came back is unknown" }, { "fail", "the server ended" },
		{ "fail", "those held were not measured" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		begin_graceful();
		terms.whole_before = 5000;
		switch (i) {
		case 0: s->connected_held = 4999; break;
		case 1: s->dropped = 3; break;
		case 2: s->replies_missing = true; break;
		case 3: s->fairness.min = 0; break;
		case 4: s->fairness.sum = s->fairness.min = 0; break;
		case 5: s->failed++; break;
		case 6: s->failed += 7; count_failures(STAGE_TLS_HANDSHAKE, FAIL_TIMEOUT, 0, 7); break;
		case 7: s->failed += 7; count_failures(STAGE_TLS_HANDSHAKE, FAIL_CLOSED, 0, 7); break;
		case 8: s->pools = POOLS_NOT_RESTORED; break;
		case 9: s->follow_up.connected = 4; break;
		case 10: s->follow_up.tried = s->follow_up.connected = 0; break;
		case 11: s->pools = POOLS_UNKNOWN; break;
		case 12: s->server_ended = true; break;
		case 13: s->measured = false; break;
		}
		assert_string_equal(result_of(STABLE), cases[i].result);
		assert_measured(STABLE, cases[i].why);
	}
}

/* One held client does not pass: it takes as many as the largest step before held, or a tenth. */
TEST(stability__few_held__not_graceful)
{
	static const struct { uint32_t held, whole_before; const char *result; } cases[] = {
		{ 1, 0, "fail" }, { 999, 0, "fail" }, { 1000, 0, "pass" }, { 1, 1, "fail" }, { 999, 9, "fail" },
		{ 10, 10, "pass" }, { 9, 10, "fail" }, { 5000, 5000, "pass" }, { 4999, 5000, "fail" }, { 0, 0, "fail" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		begin_graceful();
		s->connected_held = cases[i].held;
		s->failed = 10000 - cases[i].held;
		count_failures(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL, (int)s->failed - 2000);
		terms.whole_before = cases[i].whole_before;
		assert_string_equal(result_of(STABLE), cases[i].result);
	}
}

/* Timeouts may only be due to a slow machine; other faults still count. */
TEST(stability__timeouts_on_an_emulated_cpu__not_judged)
{
	begin_graceful();
	terms.excuse = "emulated CPU";
	s->failed += 7;
	count_failures(STAGE_TLS_HANDSHAKE, FAIL_TIMEOUT, 0, 7);
	assert_string_equal(result_of(STABLE), "not_judged");
	assert_measured(STABLE, "not judged (emulated CPU: 8000 of 10000 held; 7 failed without being told why");
	s->follow_up.connected = 0;
	assert_string_equal(result_of(STABLE), "fail");
}

TEST(stability__failures_named_but_leaked__fails)
{
	begin_graceful();
	s->pools = POOLS_NOT_RESTORED;
	assert_string_equal(result_of(STABLE), "fail");
	assert_measured(STABLE, "8000 of 10000 held; the server's pools did not come back; refused:full at");
}

#define POOLS "server's pools after the step"

/* A verdict says only what is known: unknown pools count neither as restored nor as not restored. */
TEST(pools__not_restored_or_unknown__fail_or_inconclusive)
{
	begin(100, 1000);
	s->pools = POOLS_NOT_RESTORED;
	assert_string_equal(result_of(POOLS), "fail");
	assert_measured(POOLS, "not restored");
	s->pools = POOLS_UNKNOWN;
	assert_string_equal(result_of(POOLS), "inconclusive");
	assert_measured(POOLS, "unknown: the server could not be asked");
	s->server_ended = true;
	assert_string_equal(result_of(POOLS), "inconclusive");
	assert_measured(POOLS, "unknown: the server ended");
}

TEST(stability__pools_unknown__inconclusive_unless_the_server_ended)
{
	begin(5000, 1000);
	s->pools = POOLS_UNKNOWN;
	assert_string_equal(result_of(STABLE), "inconclusive");
	assert_measured(STABLE, "stable: 5000 held, no failures; whether the server's pools came back is unknown");
	begin_graceful();
	s->pools = POOLS_UNKNOWN;
	assert_string_equal(result_of(STABLE), "inconclusive");
	begin(5000, 1000);
	s->pools = POOLS_UNKNOWN;
	s->connected_held = 4000;
	s->dropped = 1000;
	count_failures(STAGE_TRAFFIC, FAIL_CLOSED, 0, 1000);
	s->server_ended = true;
	assert_string_equal(result_of(STABLE), "fail");
	assert_measured(STABLE, "4000 of 5000 held; the server ended; closed_by_peer at traffic (1000 times)");
}

#define MEASUREMENT "measurement"

TEST(measurement__nothing_stood_still__no_criterion)
{
	size_t n;

	begin(100, 1000);
	judge();
	n = json_array_size(verdict);
	s->clock_late_ns = PULSE_HOLE_NS;
	s->reply_stall_ns = STEP_STALL_NS;
	judge();
	assert_int_equal(json_array_size(verdict), n);
}

TEST(measurement__generator_stood_still__inconclusive_by_name)
{
	begin(100, 1000);
	s->clock_late_ns = 97 * NS_PER_S;
	assert_string_equal(result_of(MEASUREMENT), "inconclusive");
	assert_measured(MEASUREMENT, "clock_hole: the generator did not run for 97.0 s");
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
}

TEST(measurement__replies_stalled__inconclusive_by_name)
{
	begin(100, 1000);
	hist_record_n(s->hists.response, 63 * NS_PER_MS, 100000);
	s->reply_stall_ns = 113 * NS_PER_S;
	assert_string_equal(result_of(MEASUREMENT), "inconclusive");
	assert_measured(MEASUREMENT, "replies_stalled: no reply came for 113.0 s");
	/* With such long operations few end, so this is no stall. */
	hist_reset(s->hists.response);
	hist_record_n(s->hists.response, 20 * NS_PER_S, 50);
	assert_false(step_is_stalled(s));
}

TEST(slo__met_while_everything_stood_still__inconclusive)
{
	struct slo slo;
	char err[200];

	begin(100, 1000);
	hist_record_n(s->hists.response, 63 * NS_PER_MS, 100000);
	assert_int_equal(slo_parse("p99<1s", &slo, err, sizeof(err)), 0);
	s->reply_stall_ns = 113 * NS_PER_S;
	json_decref(verdict);
	verdict = json_array();
	verdict_add_slo(verdict, &slo, s);
	assert_string_equal(json_string_value(json_object_get(json_array_get(verdict, 0), "result")), "inconclusive");
}

TEST(slo__met_while_cpu_was_stolen__inconclusive_and_says_whose)
{
	struct slo slo;
	char err[200];

	begin(100, 1000);
	hist_record_n(s->hists.response, 63 * NS_PER_MS, 100000);
	assert_int_equal(slo_parse("p99<1s", &slo, err, sizeof(err)), 0);
	s->generator_stolen = true;
	json_decref(verdict);
	verdict = json_array();
	verdict_add_slo(verdict, &slo, s);
	assert_int_equal(json_array_size(verdict), 2);
	assert_measured(MEASUREMENT, "cpu_stolen: a hypervisor gave CPU time of the generator's machine to others");
	assert_string_equal(json_string_value(json_object_get(json_array_get(verdict, 1), "result")), "inconclusive");
}

static void add_results(int pass, int inconclusive, int failed)
{
	json_decref(verdict);
	verdict = json_array();
	for (int i = 0; i < pass; i++)
		json_array_append_new(verdict, json_pack("{s:s}", "result", "pass"));
	for (int i = 0; i < inconclusive; i++)
		json_array_append_new(verdict, json_pack("{s:s}", "result", "inconclusive"));
	for (int i = 0; i < failed; i++)
		json_array_append_new(verdict, json_pack("{s:s}", "result", "fail"));
}

TEST(overall__worst_of_all__whatever_the_order)
{
	add_results(0, 0, 0);
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
	add_results(3, 0, 0);
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	add_results(3, 1, 0);
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
	json_array_append_new(verdict, json_pack("{s:s}", "result", "pass"));
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
	add_results(3, 1, 1);
	assert_int_equal(verdict_overall(verdict), CRITERION_FAIL);
	json_array_append_new(verdict, json_pack("{s:s}", "result", "inconclusive"));
	assert_int_equal(verdict_overall(verdict), CRITERION_FAIL);
}

TEST(overall__not_judged__does_not_count)
{
	add_results(0, 0, 0);
	json_array_append_new(verdict, json_pack("{s:s}", "result", "not_judged"));
	assert_int_equal(verdict_overall(verdict), CRITERION_INCONCLUSIVE);
	json_array_append_new(verdict, json_pack("{s:s}", "result", "pass"));
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	json_array_append_new(verdict, json_pack("{s:s}", "result", "not_judged"));
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
}

TEST(overall__several_steps__appended_and_combined)
{
	begin(10, 1000);
	judge();
	s->target = 100;
	s->connected_held = 100;
	verdict_add_step(verdict, s, &terms);
	assert_int_equal(json_array_size(verdict), 6);
	assert_int_equal(verdict_overall(verdict), CRITERION_PASS);
	s->connected_held = 99;
	verdict_add_step(verdict, s, &terms);
	assert_int_equal(json_array_size(verdict), 9);
	assert_int_equal(verdict_overall(verdict), CRITERION_FAIL);
}

TEST_EACH(NULL, tear_down)
