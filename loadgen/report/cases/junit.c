/* SPDX-License-Identifier: BSD-2-Clause */
/* See junit.h. The elements and attributes are those that GitLab, Jenkins, Azure and the readers for GitHub have in
 * common; there is no standard. */
#include "loadgen/report/cases/junit.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "loadgen/report/chart/xml.h"

/* Writes `before`, and the text at a key. Writes nothing if there is no such text. */
static void put_text(FILE *out, const char *before, const json_t *o, const char *key)
{
	const char *text = json_text_at(o, key);

	if (!text)
		return;
	fputs(before, out);
	xml_write(out, text, SIZE_MAX);
}

static double seconds_of(const json_t *suite)
{
	const json_t *one;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(suite, "cases"), i, one) {
		sum += json_number_at(one, "seconds");
	}
	return sum;
}

static void put_figures(FILE *out, const json_t *one)
{
	put_text(out, "measured: ", one, "measured");
	put_text(out, "\nwanted: ", one, "wanted");
	put_text(out, "\n", one, "detail");
}

static void put_message(FILE *out, const json_t *one)
{
	bool compares = cases_result(one) == CASE_FAILED && json_text_at(one, "wanted");

	fputs(" message=\"", out);
	if (json_text_at(one, "reason"))
		put_text(out, "", one, "reason");
	else
		put_text(out, compares ? "measured " : "", one, "measured");
	if (compares)
		put_text(out, ", wanted ", one, "wanted");
	fputs("\"", out);
}

static void put_case(FILE *out, const json_t *suite, const json_t *one)
{
	static const char *const elements[] = { [CASE_ERROR] = "error", [CASE_FAILED] = "failure" };
	enum case_result result = cases_result(one);

	put_text(out, "    <testcase classname=\"", suite, "name");
	put_text(out, ".", one, "group");
	put_text(out, "\" name=\"", one, "name");
	fprintf(out, "\" time=\"%.3f\">", json_number_at(one, "seconds"));
	if (result == CASE_ERROR || result == CASE_FAILED) {
		fprintf(out, "<%s", elements[result]);
		put_message(out, one);
		fputs(">", out);
		put_figures(out, one);
		fprintf(out, "</%s>", elements[result]);
	} else {
		if (result == CASE_SKIPPED) {
			fputs("<skipped", out);
			put_message(out, one);
			fputs("/>", out);
		}
		fputs("<system-out>", out);
		put_figures(out, one);
		fputs("</system-out>", out);
	}
	fputs("</testcase>\n", out);
}

static void put_suite(FILE *out, const json_t *suite)
{
	const char *started_at = json_text_at(suite, "started_at");
	char at[20];
	const json_t *one;
	size_t i;

	put_text(out, "  <testsuite name=\"", suite, "name");
	fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"",
		json_array_size(json_object_get(suite, "cases")), cases_count(suite, CASE_FAILED),
		cases_count(suite, CASE_ERROR), cases_count(suite, CASE_SKIPPED), seconds_of(suite));
	/* Strict readers take neither a fraction nor a time zone. */
	snprintf(at, sizeof(at), "%s", started_at ? started_at : "");
	fputs(" timestamp=\"", out);
	xml_write(out, at, SIZE_MAX);
	fputs("\">\n", out);
	json_array_foreach(json_object_get(suite, "cases"), i, one) {
		put_case(out, suite, one);
	}
	fputs("  </testsuite>\n", out);
}

static int write_file(FILE *out, const void *root)
{
	const json_t *suites = json_object_get(root, "suites"), *suite;
	size_t i, tests = 0, failures = 0, errors = 0;
	double seconds = 0;

	json_array_foreach(suites, i, suite) {
		tests += json_array_size(json_object_get(suite, "cases"));
		failures += cases_count(suite, CASE_FAILED);
		errors += cases_count(suite, CASE_ERROR);
		seconds += seconds_of(suite);
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	put_text(out, "<testsuites name=\"", root, "title");
	fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n", tests, failures, errors,
		seconds);
	json_array_foreach(suites, i, suite) {
		put_suite(out, suite);
	}
	fputs("</testsuites>\n", out);
	return ferror(out) ? -EIO : 0;
}

int junit_write(const struct cases *c, const char *path)
{
	const json_t *root = cases_json(c);
	int ret = 0;

	if (path)
		ret = root ? path_write(path, write_file, root) : -ENOMEM;
	if (ret)
		log_error("cannot write --junit %s: %s", path, path_error(ret));
	return ret;
}
