/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/expect_file.c and expect.c: which expectations a suite may have, and what is made of
 * them. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/suites/expect.h"
#include "loadgen/suites/suite_file.h"

#define RATE "\"metric\": \"throughput_bytes_per_s\", \"source\": \"s\""
#define TIME "\"metric\": \"response_p50_ns\", \"source\": \"s\""

static struct suite *suite;
static char err[1024];

/* Reads a suite with a first entry, a comparison and an entry of these options, the last two with expectations. */
static int parse(const char *of_comparison, const char *options, const char *of_last)
{
	char *args[] = { "performance_test", NULL }, text[4096];

	snprintf(text, sizeof(text),
		 "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", \"entries\": ["
		 "{\"name\": \"first\", \"title\": \"F\", \"options\": {}}, "
		 "{\"name\": \"both\", \"title\": \"B\", \"options\": {\"compare\": \"inline=off,auto\"}%s%s}, "
		 "{\"name\": \"last\", \"title\": \"L\", \"options\": {%s}, \"expect\": %s}]}",
		 of_comparison ? ", \"expect\": " : "", of_comparison ? of_comparison : "", options, of_last);
	suite_free(suite);
	suite = calloc(1, sizeof(*suite));
	assert_non_null(suite);
	err[0] = '\0';
	return suite_add(suite, text, strlen(text), 1, args, err, sizeof(err));
}

static int tear_down(void **state)
{
	(void)state;
	suite_free(suite);
	suite = NULL;
	return 0;
}

TEST_WITH(file__all_kinds__accepted, NULL, tear_down)
{
	assert_int_equal(
		parse("[{" TIME ", \"alternative\": \"auto\", \"of\": \"first alternative\", \"max_percent\": 90, "
		      "\"hardware\": true}]",
		      "",
		      "[{" TIME ", \"at\": {\"clients\": 1, \"message_bytes\": 64}, \"min\": 0, \"max\": 5e3}, {" RATE
		      ", \"of\": \"line rate\", \"min_percent\": 90.5}, {" RATE ", \"of\": \"first\", "
		      "\"max_percent\": 100}]"),
		0);
	assert_null(suite->entries[0].expect);
	assert_int_equal(json_array_size(suite->entries[2].expect), 3);
}

static void refused(const char *of_comparison, const char *of_last, const char *why)
{
	char line[200];

	snprintf(line, sizeof(line), "--suite: entry s-%s: expect%s", of_comparison ? "both" : "last", why);
	assert_int_equal(parse(of_comparison, "", of_last ? of_last : "[]"), -EINVAL);
	if (strncmp(err, line, strlen(line)) != 0 || strchr(err, '\n'))
		fail_msg("'%s' does not begin with '%s'", err, line);
}

TEST_WITH(file__wrong__refused_with_one_line, NULL, tear_down)
{
	static const struct {
		const char *expect, *why;
	} wrong[] = {
		{ "[]", ": must be an array of 1 to 32" },
		{ "7", ": must be an array" },
		{ "[7]", " 1: metric is missing" },
		{ "[{\"metric\": \"beauty\", \"source\": \"s\", \"min\": 1}]", " 1: metric is missing or unknown" },
		{ "[{" TIME ", \"min\": 1, \"x\\u001b\": 1}]", " 1: 'x\\x1b' is not a member" },
		{ "[{\"metric\": \"response_p50_ns\", \"min\": 1}]", " 1: needs a source" },
		{ "[{" TIME ", \"min\": 1}, {" TIME "}]", " 2: needs min, max or both" },
		{ "[{" TIME ", \"min\": 2, \"max\": 1}]", " 1: needs min" },
		{ "[{" TIME ", \"max\": -1}]", " 1: needs min" },
		{ "[{" TIME ", \"max\": \"1\"}]", " 1: needs min" },
		{ "[{" TIME ", \"max\": 1e300}]", " 1: needs min" },
		{ "[{" TIME ", \"max_percent\": 1}]", " 1: limits are min and max" },
		{ "[{" TIME ", \"of\": \"first\", \"max\": 1}]", " 1: limits are min_percent and max_percent" },
		{ "[{" TIME ", \"of\": 1, \"max_percent\": 1}]", " 1: of and alternative are texts" },
		{ "[{" TIME ", \"max\": 1, \"hardware\": 1}]", " 1: of and alternative are texts" },
		{ "[{" TIME ", \"max\": 1, \"at\": 7}]", " 1: of and alternative are texts" },
		{ "[{" TIME ", \"max\": 1, \"at\": {}}]", " 1: at is empty" },
		{ "[{" TIME ", \"max\": 1, \"at\": {\"clients\": 0}}]", " 1: at: 'clients' is not allowed" },
		{ "[{" TIME ", \"max\": 1, \"at\": {\"size\": 1}}]", " 1: at: 'size' is not allowed" },
		{ "[{" TIME ", \"of\": \"last\", \"max_percent\": 1}]",
		  " 1: of: 'last' is not allowed; allowed: the name of "
		  "an earlier entry of the suite, 'line rate' or 'first alternative'" },
		{ "[{" TIME ", \"of\": \"both\", \"max_percent\": 1}]", " 1: of: both is a comparison" },
		{ "[{" TIME ", \"of\": \"line rate\", \"max_percent\": 1}]",
		  " 1: of: 'line rate' is only for figures in bytes a second" },
		{ "[{" TIME ", \"of\": \"first alternative\", \"max_percent\": 1}]",
		  " 1: of: 'first alternative' is only for the other" },
		{ "[{" TIME ", \"alternative\": \"auto\", \"max\": 1}]", " 1: alternative is not allowed" },
	};

	for (size_t i = 0; i < N_ELEMENTS(wrong); i++)
		refused(NULL, wrong[i].expect, wrong[i].why);
	refused("[{" TIME ", \"max\": 1}]", NULL, " 1: alternative is missing or not one of off, auto");
	refused("[{" TIME ", \"alternative\": \"on\", \"max\": 1}]", NULL, " 1: alternative is missing or not one of");
	refused("[{" RATE ", \"alternative\": \"auto\", \"of\": \"line rate\", \"min_percent\": 1}]", NULL,
		" 1: of: 'line rate' is only");
	refused("[{" TIME ", \"alternative\": \"off\", \"of\": \"first alternative\", \"max_percent\": 1}]", NULL,
		" 1: of: 'first alternative' is only");
	assert_int_equal(parse(NULL, "\"rate\": \"1-9\"", "[{" TIME ", \"max\": 1}]"), -EINVAL);
	assert_non_null(strstr(err, "not allowed with a sweep of rates or a search"));
}

/* "met", "missed 90" (measured), "unknown", for each row; `expect` as in a file, judged of an entry with two sizes, the
 * first of which was repeated, and of a comparison. */
static const char *judged(const char *expect, double line_bytes_per_s, const char *excuse, enum run_exit status)
{
	static const char entry_text[] =
		"{\"suite\": \"s\", \"steps\": ["
		"{\"clients\": 1, \"message_bytes\": 64, \"response_p50_ns\": 80, \"throughput_bytes_per_s\": 900}, "
		"{\"clients\": 1, \"message_bytes\": 128, \"response_p50_ns\": 300, \"throughput_bytes_per_s\": null}, "
		"{\"clients\": 1, \"message_bytes\": 64, \"response_p50_ns\": 100}], \"comparison\": {\"points\": ["
		"{\"clients\": 1, \"message_bytes\": 64, \"figures\": [{\"name\": \"off\", \"response_p50_ns\": 50}, "
		"{\"name\": \"auto\", \"response_p50_ns\": 40}]}]}}";
	static const char entries_text[] =
		"[{\"suite\": \"t\", \"name\": \"a\", \"steps\": []}, {\"suite\": \"s\", \"name\": "
		"\"a\", \"steps\": [{\"clients\": 1, \"message_bytes\": 64, \"response_p50_ns\": 200}]}]";
	static char text[400];
	json_auto_t *e = json_loads(expect, 0, NULL), *entry = json_loads(entry_text, 0, NULL);
	json_auto_t *entries = json_loads(entries_text, 0, NULL), *rows = NULL;
	const json_t *row;
	size_t i, used = 0;

	assert_true(e && entry && entries);
	rows = expect_judge(e, entry, entries, line_bytes_per_s, excuse);
	text[0] = '\0';
	json_array_foreach(rows, i, row) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %g of %g%s%s", i ? ", " : "",
					 json_text_at(row, "verdict"), json_number_at(row, "measured"),
					 json_number_at(row, "reference"), json_text_at(row, "reason") ? ": " : "",
					 json_text_at(row, "reason") ?: "");
	}
	assert_int_equal(expect_status(rows), status);
	return text;
}

#define M "\"metric\": \"response_p50_ns\""

TEST(judge__absolute__each_place_the_median_of_its_repetitions)
{
	assert_string_equal(judged("[{" M ", \"max\": 90}]", NAN, NULL, EXIT_CRITERION),
			    "met 90 of nan, missed 300 of nan");
	assert_string_equal(
		judged("[{" M ", \"min\": 91, \"at\": {\"message_bytes\": 64}}]", NAN, NULL, EXIT_CRITERION),
		"missed 90 of nan");
	assert_string_equal(judged("[{" M ", \"min\": 90, \"max\": 300}]", NAN, NULL, EXIT_OK),
			    "met 90 of nan, met 300 of nan");
}

TEST(judge__of_an_entry_of_the_suite__at_the_same_place)
{
	assert_string_equal(judged("[{" M ", \"of\": \"a\", \"max_percent\": 45}]", NAN, NULL, EXIT_INCONCLUSIVE),
			    "met 90 of 200, unknown 300 of nan: the other figure is not known");
	assert_string_equal(judged("[{" M ", \"of\": \"a\", \"max_percent\": 44, \"at\": {\"message_bytes\": 64}}]",
				   NAN, NULL, EXIT_CRITERION),
			    "missed 90 of 200");
	assert_string_equal(judged("[{" M
				   ", \"of\": \"not-run\", \"max_percent\": 44, \"at\": {\"message_bytes\": 64}}]",
				   NAN, NULL, EXIT_INCONCLUSIVE),
			    "unknown 90 of nan: the other figure is not known");
}

TEST(judge__of_the_line_rate__unknown_without_one)
{
	static const char expect[] =
		"[{\"metric\": \"throughput_bytes_per_s\", \"of\": \"line rate\", \"min_percent\": 90, "
		"\"at\": {\"message_bytes\": 64}, \"hardware\": true}]";

	assert_string_equal(judged(expect, 1000, NULL, EXIT_OK), "met 900 of 1000");
	assert_string_equal(judged(expect, 1001, NULL, EXIT_CRITERION), "missed 900 of 1001");
	assert_string_equal(judged(expect, NAN, NULL, EXIT_INCONCLUSIVE),
			    "unknown 900 of nan: the line rate is not known");
	assert_string_equal(judged(expect, 1001, "software RDMA", EXIT_OK), "not_judged 900 of 1001: software RDMA");
}

TEST(judge__of_the_first_alternative__and_what_was_not_measured)
{
	assert_string_equal(judged("[{" M
				   ", \"alternative\": \"auto\", \"of\": \"first alternative\", \"max_percent\": 80}]",
				   NAN, "software RDMA", EXIT_OK),
			    "met 40 of 50");
	assert_string_equal(judged("[{" M ", \"alternative\": \"x\", \"max\": 80}, {" M
				   ", \"max\": 1, \"at\": {\"clients\": "
				   "2}}]",
				   NAN, NULL, EXIT_INCONCLUSIVE),
			    "unknown nan of nan: the figure is not known, unknown nan of nan: the figure is not known");
	assert_string_equal(
		judged("[{\"metric\": \"throughput_bytes_per_s\", \"min\": 1, \"at\": {\"message_bytes\": 128}}]", NAN,
		       NULL, EXIT_INCONCLUSIVE),
		"unknown nan of nan: the figure is not known");
}

TEST_GROUP(NULL, NULL)
