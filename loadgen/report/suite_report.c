/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on a suite or comparison. See suite_report.h. suite.json and compare.json may be damaged or hostile. */
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
#include "loadgen/report/suites/comparison.h"
#include "loadgen/report/suites/suite.h"

/* A step has 0.8 KB, a candidate 3.4 KB at each size: a comparison of 63 candidates (COMPARE_ALTERNATIVES_MAX) at 64 sizes fits. */
static const struct json_limit limit = { 16u << 20, 192u << 20 };

/* As many as suites may have (SUITE_ENTRIES_MAX). */
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
	return !has_file(dir, "run.json") && (has_file(dir, "suite.json") || has_file(dir, "compare.json"));
}

static int read_file(const char *dir, const char *name, int version, json_t **out, char *err, size_t err_size)
{
	char path[PATH_MAX], why[256] = "";
	int ret = path_of(dir, name, path) ? json_read_file(path, JSON_REJECT_DUPLICATES, &limit, out, why, sizeof(why)) : -ENAMETOOLONG;

	if (!ret && json_number_at(*out, "schema_version") == version)
		return 0;
	if (ret)
		snprintf(err, err_size, "%s/%s: %s", dir, name, *why ? why : strerror(-ret));
	else
		snprintf(err, err_size, "%s/%s: its schema_version is not %d", dir, name, version);
	json_decref(*out);
	*out = NULL;
	return ret ? ret : -EINVAL;
}

static void say_rows(struct page *p)
{
	if (page_has_left_rows_out(p))
		doc_note(p->doc, DOC_WARN, "rows-left-out", "There are more figures than a report has rows for: the last tables are cut off.");
}

/* Of a comparison. */
static int make_comparison(struct page *p, const json_t *comparison)
{
	int ret = doc_new(page_text(p, "Comparison: %s", page_text_at(comparison, "id", "unknown")),
			       page_text(p, "The same run with different settings, in turns: %s.",
					 page_text_at(comparison, "compared", "unknown")), &p->doc);

	if (ret)
		return ret;
	section_comparison(p, comparison, "compare.json");
	say_rows(p);
	return page_failed(p) || json_memory_was_short() ? -ENOMEM : 0;
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
		doc_note(p->doc, DOC_WARN, "entries-left-out", "suite.json has %zu entries, and a suite has at most %u: the others are left out.",
			 n, ENTRIES_MAX);
	json_array_foreach(entries, i, entry) {
		section_suite_entry(p, entry, json_array_get(entries, i + 1));
	}
	say_rows(p);
	return page_failed(p) || json_memory_was_short() ? -ENOMEM : 0;
}

int suite_report_make(const struct report_options *o, char *err, size_t err_size)
{
	struct page p = { .n_baselines = 0 };
	bool is_suite = has_file(o->dir, "suite.json");
	json_t *read = NULL;
	int ret = is_suite ? read_file(o->dir, "suite.json", 1, &read, err, err_size) :
			     read_file(o->dir, "compare.json", 3, &read, err, err_size);

	if (!ret) {
		ret = (is_suite ? make_document : make_comparison)(&p, read);
		if (ret)
			snprintf(err, err_size, "out of memory");
	}
	if (!ret)
		ret = doc_write_files(p.doc, o->output ? o->output : o->dir, err, err_size);
	if (!ret && o->out && report_print(p.doc, o->format, o->out)) {
		ret = -EIO;
		snprintf(err, err_size, "cannot write the report to stdout");
	}
	json_decref(read);
	doc_free(p.doc);
	page_free(&p);
	return ret;
}

/* In short, or with `details` as the report does. */
static int print_document(const json_t *o, bool details)
{
	struct page p = { .n_baselines = 0 };
	bool is_suite = json_object_get(o, "entries");
	int ret = details ? (is_suite ? make_document : make_comparison)(&p, o) : doc_new(NULL, NULL, &p.doc);

	if (!ret && !details)
		(is_suite ? section_suite_summary : comparison_brief)(&p, o);
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

int suite_report_end(const json_t *o, const char *dir, bool show, bool details, bool report)
{
	char err[512];
	int ret;

	if (show && print_document(o, details) == -ENOMEM)
		log_error("the results are not shown: this machine is out of memory");
	if (show)
		utf8_print_line(stdout, "Results: %s", dir);
	ret = report ? suite_report_write(dir, err, sizeof(err)) : 0;
	if (ret)
		log_error("no report: %s", err);
	else if (report)
		utf8_print_line(stdout, "Report:  %s/report.html", dir);
	return ret;
}
