/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on a suite. See suite_report.h. suite.json may be damaged or hostile. */
#include "loadgen/report/suite_report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/report/suites/suite.h"

/* A step takes 1 KB, a candidate 6 KB at each size, so a comparison of 63 candidates (COMPARE_ALTERNATIVES_MAX) at 64
 * sizes takes 31 MB. */
static const struct json_limit limit = { 48u << 20, 320u << 20 };

#define SUITE "suite.json"
#define SCHEMA_VERSION 2
/* The file of a comparison in older versions, in which comparisons were not entries of suites. */
#define OLD_COMPARISON "compare.json"
/* SUITE_ENTRIES_MAX, the most that a suite may have. */
#define ENTRIES_MAX 64u

static bool path_of(const char *dir, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int fd = path_of(dir, name, path) ? path_open_file(path) : -ENAMETOOLONG;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool suite_report_is_for(const char *dir)
{
	return !has_file(dir, "run.json") && (has_file(dir, SUITE) || has_file(dir, OLD_COMPARISON));
}

static int read_suite(const char *dir, json_t **out, char *err, size_t err_size)
{
	char path[PATH_MAX], why[256] = "";
	int ret = -ENAMETOOLONG;

	if (path_of(dir, SUITE, path))
		ret = json_read_file(path, JSON_REJECT_DUPLICATES, &limit, out, why, sizeof(why));

	if (!ret && json_number_at(*out, "schema_version") == SCHEMA_VERSION)
		return 0;
	if (!ret)
		snprintf(err, err_size, "%s/%s: its schema_version is not %d", dir, SUITE, SCHEMA_VERSION);
	else if (ret == -ENOENT && has_file(dir, OLD_COMPARISON))
		snprintf(err, err_size,
			 "%s/%s: an older version of performance_test wrote it, and this one reads only %s; "
			 "compare again", dir, OLD_COMPARISON, SUITE);
	else
		snprintf(err, err_size, "%s/%s: %s", dir, SUITE, *why ? why : strerror(-ret));
	json_decref(*out);
	*out = NULL;
	return ret ? ret : -EINVAL;
}

static int make_document(struct page *p, const json_t *suite)
{
	const json_t *entry;
	json_t *entries = json_object_get(suite, "entries");
	size_t n = json_array_size(entries), i;
	int ret = doc_new(page_text(p, "Suite report: %s", page_text_at(suite, "id", "unknown")),
			  page_text(p, "%s. Started %s, ended %s, %s.", page_text_at(suite, "title", "A suite"),
				    page_text_at(suite, "started_at", "at an unknown time"),
				    page_text_at(suite, "ended_at", "at an unknown time"),
				    page_text_at(suite, "status", "of unknown status")), &p->doc);

	if (ret)
		return ret;
	while (json_array_size(entries) > ENTRIES_MAX)
		json_array_remove(entries, json_array_size(entries) - 1);
	section_suite_summary(p, suite);
	if (n > ENTRIES_MAX)
		doc_note(p->doc, DOC_WARN, "entries-left-out",
			 "suite.json has %zu entries, and a suite has at most %u: the others are left out.",
			 n, ENTRIES_MAX);
	json_array_foreach(entries, i, entry) {
		section_suite_entry(p, entry, json_array_get(entries, i + 1));
	}
	if (page_has_left_rows_out(p))
		doc_note(p->doc, DOC_WARN, "rows-left-out",
			 "There are more figures than a report has rows for: the last "
			 "tables are cut off.");
	return page_failed(p) || json_memory_was_short() ? -ENOMEM : 0;
}

int suite_report_make(const struct report_options *o, char *err, size_t err_size)
{
	struct page p = { .n_baselines = 0 };
	json_t *suite = NULL;
	int ret = read_suite(o->dir, &suite, err, err_size);

	if (!ret) {
		ret = make_document(&p, suite);
		if (ret)
			snprintf(err, err_size, "out of memory");
	}
	if (!ret)
		ret = doc_write_files(p.doc, o->output ? o->output : o->dir, err, err_size);
	if (!ret && o->out && report_print(p.doc, o->format, o->out)) {
		ret = -EIO;
		snprintf(err, err_size, "cannot write the report to stdout");
	}
	json_decref(suite);
	doc_free(p.doc);
	page_free(&p);
	return ret;
}

/* Prints a suite in short, or with `details` its whole report. */
static int print_document(const json_t *suite, bool details)
{
	struct page p = { .n_baselines = 0 };
	int ret = details ? make_document(&p, suite) : doc_new(NULL, NULL, &p.doc);

	if (!ret && !details)
		section_suite_brief(&p, suite);
	if (!ret)
		ret = page_failed(&p) ? -ENOMEM : report_print(p.doc, REPORT_TEXT, stdout);
	printf("\n");
	doc_free(p.doc);
	page_free(&p);
	return ret;
}

int suite_report_write(const char *dir, char *err, size_t err_size)
{
	const struct report_options o = { .dir = dir };

	return suite_report_make(&o, err, err_size);
}

int suite_report_end(const json_t *suite, const char *dir, bool show, bool details, bool report)
{
	char err[512];
	int ret;

	if (show && print_document(suite, details) == -ENOMEM)
		log_error("the results are not shown: this machine is out of memory");
	if (show)
		utf8_print_line(stdout, "Results: %s", dir);
	ret = report ? suite_report_write(dir, err, sizeof(err)) : 0;
	if (ret)
		log_error("no report: %s", err);
	else if (report && show)
		utf8_print_line(stdout, "Report:  %s/report.html", dir);
	return ret;
}
