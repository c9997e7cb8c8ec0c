/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/cases/: test cases, their JUnit file, and GitHub's step summary. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/report/cases/junit.h"
#include "loadgen/report/cases/step_summary.h"
#include "tests/unit/files/log_watch.h"
#include "tests/unit/files/scratch.h"

static char dir[SCRATCH_MAX];
static struct cases *c;
static char *text;

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir) || chdir(dir) || cases_new("clients-10", &c))
		return -1;
	setenv(STEP_SUMMARY_VARIABLE, "summary.md", 1);
	cases_suite(c, "clients-10", "2026-11-26T21:43:16.123Z");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	log_watch_end();
	unsetenv(STEP_SUMMARY_VARIABLE);
	cases_free(c);
	free(text);
	text = NULL;
	return chdir("/") || scratch_remove(dir);
}

TEST_EACH(set_up, tear_down)

/* Adds a case that is named after its result. */
static void add(enum case_result result)
{
	static const char *const names[CASE_RESULTS] = { "the end", "success rate", "stability", "data" };

	cases_add(c, &(struct test_case){ .group = "10 clients", .name = names[result], .result = result,
					  .measured = "90 %", .wanted = "100 %", .seconds = 0.25 });
}

static const char *read_text(const char *path)
{
	size_t bytes;

	free(text);
	assert_int_equal(path_read(path, 4u << 20, &text, &bytes), 0);
	assert_int_equal(strlen(text), bytes);
	return text;
}

static const char *junit(void)
{
	assert_int_equal(junit_write(c, "junit.xml"), 0);
	return read_text("junit.xml");
}

static size_t count_of(const char *in, const char *what)
{
	size_t n = 0;

	for (; (in = strstr(in, what)); in += strlen(what))
		n++;
	return n;
}

TEST(junit__a_case_of_each_result__counted_and_written)
{
	for (int i = 0; i < CASE_RESULTS; i++)
		add((enum case_result)i);
	junit();
	assert_says(text, "<testsuites name=\"clients-10\" tests=\"4\" failures=\"1\" errors=\"1\" time=\"1.000\">");
	assert_says(text, "<testsuite name=\"clients-10\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" "
			  "time=\"1.000\" timestamp=\"2026-11-26T21:43:16\">");
	assert_says(text, "<testcase classname=\"clients-10.10 clients\" name=\"the end\" time=\"0.250\">"
			  "<error message=\"90 %\">measured: 90 %\nwanted: 100 %</error></testcase>");
	assert_says(text, "name=\"success rate\" time=\"0.250\"><failure message=\"measured 90 %, wanted 100 %\">"
			  "measured: 90 %\nwanted: 100 %</failure></testcase>");
	assert_says(text, "name=\"stability\" time=\"0.250\"><skipped message=\"90 %\"/><system-out>");
	assert_says(text, "name=\"data\" time=\"0.250\"><system-out>measured: 90 %\nwanted: 100 %</system-out>");
}

TEST(junit__several_suites__each_has_its_own_counts)
{
	add(CASE_PASSED);
	cases_suite(c, "second", "2026-11-26T21:43:17Z");
	assert_true(cases_is_empty(c));
	add(CASE_FAILED);
	assert_false(cases_is_empty(c));
	junit();
	assert_says(text, "<testsuites name=\"clients-10\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.500\">");
	assert_says(text, "<testsuite name=\"clients-10\" tests=\"1\" failures=\"0\" ");
	assert_says(text, "<testsuite name=\"second\" tests=\"1\" failures=\"1\" ");
	assert_says(text, "classname=\"second.10 clients\"");
}

TEST(junit__reason_and_detail__in_the_message_and_the_text)
{
	cases_add(c, &(struct test_case){ .group = "g", .name = "a", .result = CASE_SKIPPED, .measured = "5 us",
					  .reason = "the line rate is not known" });
	cases_add(c, &(struct test_case){ .group = "g", .name = "b", .result = CASE_FAILED, .measured = "no device",
					  .detail = "why: w\nmend: m" });
	junit();
	assert_says(text, "<skipped message=\"the line rate is not known\"/><system-out>measured: 5 us</system-out>");
	assert_says(text, "<failure message=\"no device\">measured: no device\nwhy: w\nmend: m</failure>");
}

TEST(junit__one_name_twice_in_a_group__numbered)
{
	add(CASE_FAILED);
	add(CASE_FAILED);
	cases_add(c, &(struct test_case){ .group = "20 clients", .name = "success rate", .result = CASE_PASSED,
					  .measured = "100 %" });
	junit();
	assert_int_equal(count_of(text, "name=\"success rate\""), 2);
	assert_int_equal(count_of(text, "name=\"success rate (2)\""), 1);
}

/* True for a character that XML 1.0 allows in a document (https://www.w3.org/TR/xml/#charsets). */
static bool is_allowed(uint32_t code)
{
	return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code <= 0xd7ff) ||
	       (code >= 0xe000 && code <= 0xfffd) || (code >= 0x10000 && code <= 0x10ffff);
}

static void expect_valid_text(const char *in)
{
	for (size_t n; *in; in += n) {
		uint32_t code;

		n = utf8_next(in, &code);
		assert_true(n > 1 || (unsigned char)*in < 0x80);
		assert_true(is_allowed(code));
	}
}

TEST(junit__every_byte_everywhere__replaced_or_escaped)
{
	char bytes[2 * 255 + 1];

	/* Each byte alone between letters, so that none continues another. */
	for (int i = 1; i < 256; i++) {
		bytes[2 * (i - 1)] = (char)i;
		bytes[2 * (i - 1) + 1] = 'x';
	}
	bytes[2 * 255] = '\0';
	cases_suite(c, "quoted", "<\"&'>");
	cases_suite(c, bytes, bytes);
	for (int i = 0; i < CASE_RESULTS; i++)
		cases_add(c, &(struct test_case){ .group = bytes, .name = bytes, .result = (enum case_result)i,
						  .measured = bytes, .wanted = bytes, .reason = bytes,
						  .detail = bytes });
	junit();
	expect_valid_text(text);
	/* Only the elements themselves have brackets and quotation marks. */
	assert_int_equal(count_of(text, "<"), count_of(text, ">"));
	assert_int_equal(count_of(text, "\"") % 2, 0);
	assert_int_equal(count_of(text, "&"), count_of(text, "&lt;") + count_of(text, "&gt;") +
			 count_of(text, "&amp;") + count_of(text, "&quot;") + count_of(text, "&#39;"));
	assert_true(count_of(text, "&lt;") >= 4 * 4);
	assert_says(text, "x\xef\xbf\xbdx");
}

TEST(junit__characters_that_xml_forbids__replaced)
{
	cases_add(c, &(struct test_case){ .group = "g", .name = "n", .result = CASE_FAILED,
					  .measured = "\xef\xbf\xbe \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xe2\x82",
					  .wanted = "\xe2\x82\xac \xf0\x9f\x98\x80" });
	junit();
	expect_valid_text(text);
	assert_says(text, ", wanted \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(junit__no_path__nothing)
{
	add(CASE_PASSED);
	assert_int_equal(junit_write(c, NULL), 0);
	assert_int_not_equal(access("junit.xml", F_OK), 0);
}

TEST(junit__folder_that_is_not_there__a_line_and_an_error)
{
	char said[512];

	log_watch_begin("performance_test");
	assert_int_equal(junit_write(c, "nowhere/junit.xml"), -ENOENT);
	assert_int_equal(log_watch_read(said, sizeof(said)), 1);
	assert_says(said, "cannot write --junit nowhere/junit.xml: No such file");
}

TEST(junit__memory_ran_out__an_error_and_no_file)
{
	add(CASE_PASSED);
	cases_fail(c);
	log_watch_begin("performance_test");
	assert_int_equal(junit_write(c, "junit.xml"), -ENOMEM);
	assert_int_not_equal(access("junit.xml", F_OK), 0);
}

TEST(summary__written_twice__appended)
{
	add(CASE_PASSED);
	scratch_put(".", "summary.md", "before\n");
	step_summary_append(c, "results/x");
	step_summary_append(c, NULL);
	read_text("summary.md");
	assert_int_equal(strncmp(text, "before\n# clients-10\n", 20), 0);
	assert_int_equal(count_of(text, "\n# clients-10\n"), 2);
	assert_int_equal(count_of(text, "1 passed, 0 failed, 0 errors, 0 not judged."), 2);
	assert_int_equal(count_of(text, "| 10 clients | data | 90 % | 100 % | passed |"), 2);
	assert_int_equal(count_of(text, "Results: results/x\n"), 1);
}

TEST(summary__report_there__named)
{
	scratch_put(".", "results/report.html", "");
	step_summary_append(c, "results");
	assert_says(read_text("summary.md"), "\nReport: results/report.html\n");
}

TEST(summary__those_that_did_not_pass__first)
{
	for (int i = CASE_RESULTS - 1; i >= 0; i--)
		add((enum case_result)i);
	step_summary_append(c, NULL);
	read_text("summary.md");
	assert_true(strstr(text, "the end") < strstr(text, "success rate"));
	assert_true(strstr(text, "success rate") < strstr(text, "stability"));
	assert_true(strstr(text, "stability") < strstr(text, "| data |"));
}

TEST(summary__more_and_longer_than_there_is_room_for__below_a_mebibyte)
{
	char at[300];

	memset(at, '@', sizeof(at)); /* has the longest escape */
	at[sizeof(at) - 1] = '\0';
	cases_suite(c, at, at);
	for (int i = 0; i < 1000; i++)
		cases_add(c, &(struct test_case){ .group = at, .name = at, .result = CASE_FAILED, .measured = at,
						  .wanted = at });
	step_summary_append(c, NULL);
	read_text("summary.md");
	assert_in_range(strlen(text), 100000, (1 << 20) - 1);
	assert_says(text, "1000 failed");
	assert_says(text, "936 further ones are left out here.");
}

TEST(summary__no_variable__nothing)
{
	unsetenv(STEP_SUMMARY_VARIABLE);
	step_summary_append(c, NULL);
	setenv(STEP_SUMMARY_VARIABLE, "", 1);
	step_summary_append(c, NULL);
	assert_int_not_equal(access("summary.md", F_OK), 0);
}

TEST(summary__file_that_cannot_be_written__a_warning)
{
	char said[512];

	add(CASE_PASSED);
	setenv(STEP_SUMMARY_VARIABLE, "nowhere/summary.md", 1);
	log_watch_begin("performance_test");
	step_summary_append(c, NULL);
	assert_int_equal(log_watch_read(said, sizeof(said)), 1);
	assert_says(said, "no summary in GITHUB_STEP_SUMMARY nowhere/summary.md: No such file");
}
