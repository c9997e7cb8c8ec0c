/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/run_cases.c: which test cases a run and an entry of a suite have. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/run_cases.h"

static struct cases *c;

static int set_up(void **state)
{
	(void)state;
	if (cases_new("run", &c))
		return -1;
	cases_suite(c, "run", "2026-11-26T21:43:16Z");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cases_free(c);
	return 0;
}

TEST_EACH(set_up, tear_down)

/* The n-th case. */
static const json_t *at(size_t n)
{
	const json_t *root = cases_json(c);

	assert_non_null(root);
	return json_array_get(json_at(json_array_get(json_object_get(root, "suites"), 0), "cases"), n);
}

static void expect(size_t n, enum case_result result, const char *group, const char *name)
{
	assert_non_null(at(n));
	assert_int_equal(cases_result(at(n)), result);
	assert_string_equal(json_text_at(at(n), "group"), group);
	assert_string_equal(json_text_at(at(n), "name"), name);
}

static json_t *criterion(const char *name, const char *measured, const char *result)
{
	return json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:s}", "clients", 10, "message_bytes", 64, "repetition", 1,
			 "criterion", name, "required", "p99<1ms", "measured", measured, "result", result);
}

/* A run with these criteria, which may be NULL, that ended for this reason. */
static json_t *run_of(const char *reason, bool incomplete, json_t *verdict)
{
	return json_pack("{s:{s:s, s:s, s:b}, s:o, s:[{s:i, s:i, s:i, s:f, s:f}]}", "run", "stop_reason", reason,
			 "stop_detail", "in words", "files_incomplete", incomplete, "verdict",
			 verdict ? verdict : json_array(), "steps", "target_clients", 10, "message_bytes", 64,
			 "repetition", 1, "started_s", 1.5, "ended_s", 4.0);
}

static void add_run(const char *of, json_t *run)
{
	run_cases_add(c, of, run);
	json_decref(run);
}

TEST(run__a_criterion_of_each_result__a_case_of_each)
{
	add_run(NULL, run_of("max_reached", false, json_pack("[o, o, o, o]", criterion("data", "0 corrupt", "pass"),
			     criterion("SLO", "2 ms", "fail"), criterion("step", "not reached", "inconclusive"),
			     criterion("connection time p50", "not judged (emulated CPU: 5 ms)", "not_judged"))));
	expect(0, CASE_PASSED, "10 clients, 64 bytes", "data");
	expect(1, CASE_FAILED, "10 clients, 64 bytes", "SLO p99<1ms");
	assert_string_equal(json_text_at(at(1), "measured"), "2 ms");
	assert_string_equal(json_text_at(at(1), "wanted"), "p99<1ms");
	expect(2, CASE_SKIPPED, "10 clients, 64 bytes", "step");
	assert_string_equal(json_text_at(at(2), "reason"), "inconclusive: not reached");
	expect(3, CASE_SKIPPED, "10 clients, 64 bytes", "connection time p50");
	assert_null(json_text_at(at(3), "reason"));
	assert_null(at(4));
}

TEST(run__time_of_a_step__in_its_first_criterion)
{
	add_run(NULL, run_of("max_reached", false, json_pack("[o, o]", criterion("data", "0 corrupt", "pass"),
							     criterion("psns", "all distinct", "pass"))));
	assert_true(json_number_at(at(0), "seconds") == 2.5);
	assert_true(json_number_at(at(1), "seconds") == 0);
}

TEST(run__search__its_result_has_the_time)
{
	json_t *found = criterion("capacity", "at least 10", "pass");

	json_object_del(found, "message_bytes");
	add_run(NULL, run_of("max_reached", false, json_pack("[o]", json_incref(found))));
	assert_true(json_number_at(at(0), "seconds") == 2.5);
	/* Nothing is left for it if each step has a criterion. */
	add_run("again", run_of("max_reached", false, json_pack("[o, o]", criterion("data", "0 corrupt", "pass"),
								found)));
	assert_true(json_number_at(at(1), "seconds") == 2.5);
	assert_true(json_number_at(at(2), "seconds") == 0);
}

TEST(run__ended_early__an_error_beside_the_verdict)
{
	static const char *const reasons[] = { "aborted", "host_lost", "generator_failed", "server_lost" };

	for (size_t i = 0; i < N_ELEMENTS(reasons); i++) {
		add_run(reasons[i], run_of(reasons[i], false, json_pack("[o]", criterion("data", "", "pass"))));
		assert_int_equal(cases_result(at(2 * i)), CASE_PASSED);
		assert_int_equal(cases_result(at(2 * i + 1)), CASE_ERROR);
		assert_string_equal(json_text_at(at(2 * i + 1), "name"), "end");
		assert_says(json_text_at(at(2 * i + 1), "measured"), reasons[i]);
		assert_says(json_text_at(at(2 * i + 1), "measured"), ": in words");
	}
}

TEST(run__ramp_stopped_at_a_limit__no_error)
{
	add_run(NULL, run_of("error_rate", false, json_pack("[o]", criterion("success rate", "90 %", "fail"))));
	expect(0, CASE_FAILED, "10 clients, 64 bytes", "success rate");
	assert_null(at(1));
}

TEST(run__search_that_lost_its_server__no_error)
{
	static const char *const searches[] = { "find_capacity", "find_rate" };

	for (size_t i = 0; i < N_ELEMENTS(searches); i++) {
		json_t *run = run_of("server_lost", false, json_pack("[{s:i, s:i, s:s, s:s, s:s, s:s}]", "clients", 0,
				     "repetition", 1, "criterion", "capacity", "required", "to be found", "measured",
				     "none", "result", "fail"));

		json_object_set_new(run, "config", json_pack("{s:b}", searches[i], true));
		add_run(searches[i], run);
		assert_int_equal(cases_result(at(i)), CASE_FAILED);
	}
	assert_string_equal(json_text_at(at(0), "group"), "find_capacity, run");
	assert_null(at(2));
}

TEST(run__nothing_was_judged__an_error)
{
	add_run(NULL, run_of("step_timeout", false, NULL));
	expect(0, CASE_ERROR, "run", "end");
	assert_string_equal(json_text_at(at(0), "measured"), "step_timeout: in words");
}

TEST(run__file_was_lost__an_error)
{
	add_run(NULL, run_of("max_reached", true, json_pack("[o]", criterion("data", "0 corrupt", "pass"))));
	expect(1, CASE_ERROR, "run", "files");
}

TEST(run__none__an_error)
{
	run_cases_add(c, "auto, round 2", NULL);
	expect(0, CASE_ERROR, "auto, round 2, run", "end");
	assert_string_equal(json_text_at(at(0), "measured"), "the run could not start; stderr says why");
}

TEST(run__damaged__not_a_pass)
{
	add_run(NULL, run_of("max_reached", false, json_pack("[{}, n, s]", "text")));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cases_result(at(i)), CASE_SKIPPED);
}

static void add_entry(const char *status, const char *note, json_t *expectations)
{
	json_t *entry = json_pack("{s:s, s:s?, s:o}", "status", status, "note", note, "expectations",
				  expectations ? expectations : json_array());

	run_cases_add_entry(c, entry);
	json_decref(entry);
}

static json_t *expectation(const char *verdict, const char *reason)
{
	return json_pack("{s:{s:s, s:i, s:s}, s:i, s:i, s:f, s:n, s:s, s:s?}", "expected", "metric", "response_p50_ns",
			 "max", 5000, "alternative", "auto", "clients", 10, "message_bytes", 64, "measured", 4500.,
			 "reference", "verdict", verdict, "reason", reason);
}

TEST(entry__an_expectation_of_each_verdict__a_case_of_each)
{
	add_run(NULL, run_of("max_reached", false, json_pack("[o]", criterion("data", "0 corrupt", "pass"))));
	add_entry("ran", NULL, json_pack("[o, o, o, o]", expectation("met", NULL), expectation("missed", NULL),
		  expectation("unknown", "the figure is not known"), expectation("not_judged", "software RDMA")));
	expect(1, CASE_PASSED, "auto, 10 clients, 64 bytes", "expected response_p50_ns");
	assert_string_equal(json_text_at(at(1), "measured"), "4.50 us");
	assert_string_equal(json_text_at(at(1), "wanted"), "at most 5 us");
	expect(2, CASE_FAILED, "auto, 10 clients, 64 bytes", "expected response_p50_ns (2)");
	expect(3, CASE_SKIPPED, "auto, 10 clients, 64 bytes", "expected response_p50_ns (3)");
	assert_string_equal(json_text_at(at(3), "reason"), "unknown: the figure is not known");
	assert_int_equal(cases_result(at(4)), CASE_SKIPPED);
	assert_string_equal(json_text_at(at(4), "reason"), "not judged: software RDMA");
	assert_null(at(5));
}

TEST(entry__skipped__says_why)
{
	add_entry("skipped", "Skipped: it needs more devices.", NULL);
	expect(0, CASE_SKIPPED, "run", "end");
	assert_string_equal(json_text_at(at(0), "measured"), "Skipped: it needs more devices.");
}

TEST(entry__could_not_run__an_error_beside_its_expectations)
{
	add_entry("failed", NULL, json_pack("[o]", expectation("unknown", "the figure is not known")));
	expect(0, CASE_ERROR, "run", "end");
	assert_int_equal(cases_result(at(1)), CASE_SKIPPED);
}
