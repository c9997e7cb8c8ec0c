/* SPDX-License-Identifier: BSD-2-Clause */
/* See step_summary.h. */
#include "loadgen/report/cases/step_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "loadgen/report/doc/doc.h"

/* GitHub takes 1 MiB from all runs of a step. An escaped character takes at most 9 bytes, so the table of one run (64
 * rows of 5 texts of 200 bytes) always takes less. */
#define ROWS_MAX 64u
#define TEXT(o, key) json_text_at(o, key) ? json_text_at(o, key) : ""

static const struct {
	enum doc_tone tone;
	const char *word;
} results[CASE_RESULTS] = {
	[CASE_ERROR] = { DOC_BAD, "error" },
	[CASE_FAILED] = { DOC_BAD, "failed" },
	[CASE_SKIPPED] = { DOC_WARN, "not judged" },
	[CASE_PASSED] = { DOC_GOOD, "passed" },
};

static void add_row(struct doc_table *t, const json_t *suite, const json_t *one)
{
	enum case_result result = cases_result(one);

	doc_row(t, results[result].tone);
	doc_cell(t, "%.200s", TEXT(suite, "name"));
	doc_cell(t, "%.200s", TEXT(one, "group"));
	doc_cell(t, "%.200s", TEXT(one, "name"));
	doc_cell(t, "%.200s", TEXT(one, "measured"));
	doc_cell(t, "%.200s", TEXT(one, "wanted"));
	doc_cell(t, "%s", results[result].word);
}

/* Adds the cases with one result to the table while there is room. */
static void add_rows(struct doc_table *t, const json_t *suites, enum case_result result, size_t *room)
{
	const json_t *suite, *one;
	size_t i, k;

	json_array_foreach(suites, i, suite) {
		json_array_foreach(json_object_get(suite, "cases"), k, one) {
			if (cases_result(one) != result || *room == 0)
				continue;
			add_row(t, suite, one);
			*room -= 1;
		}
	}
}

static void add_table(struct doc *d, const json_t *suites)
{
	static const char *const columns[] = { "suite", "about", "criterion", "measured", "wanted", "result" };
	struct doc_table *t = doc_table(d, "cases", NULL);
	size_t room = ROWS_MAX;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		doc_column(t, columns[i], NULL, false);
	/* Cases that did not pass come first, because the table may not have room for all. */
	for (int i = 0; i < CASE_RESULTS; i++)
		add_rows(t, suites, (enum case_result)i, &room);
}

/* The report, or the results if there is none. */
static void add_place(struct doc *d, const char *folder)
{
	char path[PATH_MAX];

	if (!folder)
		return;
	if (snprintf(path, sizeof(path), "%s/report.html", folder) < (int)sizeof(path) && access(path, F_OK) == 0)
		doc_text(d, NULL, "Report: %s", path);
	else
		doc_text(d, NULL, "Results: %s", folder);
}

static void add_summary(struct doc *d, const json_t *suites, const char *folder)
{
	size_t of[CASE_RESULTS] = { 0 }, n = 0, i;
	const json_t *suite;

	json_array_foreach(suites, i, suite) {
		n += json_array_size(json_object_get(suite, "cases"));
		for (int k = 0; k < CASE_RESULTS; k++)
			of[k] += cases_count(suite, (enum case_result)k);
	}
	doc_text(d, NULL, "%zu passed, %zu failed, %zu errors, %zu not judged.", of[CASE_PASSED],
		 of[CASE_FAILED], of[CASE_ERROR], of[CASE_SKIPPED]);
	add_table(d, suites);
	if (n > ROWS_MAX)
		doc_text(d, NULL, "%zu further ones are left out here.", n - ROWS_MAX);
	add_place(d, folder);
}

static char *summary_text(const json_t *root, const char *folder, size_t *bytes)
{
	char *text = NULL;
	FILE *out = NULL;
	struct doc *d = NULL;
	int ret = root ? doc_new(json_text_at(root, "title"), NULL, &d) : -ENOMEM;

	if (!ret) {
		add_summary(d, json_object_get(root, "suites"), folder);
		out = doc_failed(d) ? NULL : open_memstream(&text, bytes);
	}
	ret = out ? doc_write_markdown(d, out) : -ENOMEM;
	if ((out && fclose(out)) || ret) {
		free(text);
		text = NULL;
	}
	doc_free(d);
	return text;
}

/* Opens the file without blocking, because a FIFO without a reader would hang the program. */
static int append(const char *path, const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666), ret;

	if (fd < 0)
		return -errno;
	ret = path_put(fd, text, bytes);
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

void step_summary_append(const struct cases *c, const char *folder)
{
	const char *path = getenv(STEP_SUMMARY_VARIABLE);
	size_t bytes;
	char *text;
	int ret;

	if (!path || !*path)
		return;
	text = summary_text(cases_json(c), folder, &bytes);
	ret = text ? append(path, text, bytes) : -ENOMEM;
	if (ret)
		log_warn("no summary in " STEP_SUMMARY_VARIABLE " %s: %s", path, path_error(ret));
	free(text);
}
