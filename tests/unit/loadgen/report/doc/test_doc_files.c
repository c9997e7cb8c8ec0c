/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/doc/doc_files.c. */
#include "tests/unit/helpers/doc_rig.h"

#include "tests/unit/files/scratch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[SCRATCH_MAX];

static int set_up(void **state)
{
	(void)state;
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	static const char *const left[] = { "report.html", "report.md", "tables", "charts" };
	char path[SCRATCH_MAX + 32];
	int ret = 0;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(left); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, left[i]);
		ret |= remove(path);
	}
	return ret | rmdir(dir);
}

static void write_files(const struct doc *d)
{
	char err[200];

	if (doc_write_files(d, dir, err, sizeof(err)))
		fail_msg("%s", err);
}

/* Compares dir/tables/name and removes it; tear_down notices additional files. */
static void expect_file(const char *name, const char *expected)
{
	char path[200], text[2000];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/tables/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_string_equal(text, expected);
	assert_int_equal(unlink(path), 0);
}

TEST_WITH(csv__tables__one_file_each, set_up, tear_down)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t;

	t = doc_table(d, "../steps", "Steps");
	doc_column(t, "Name", NULL, false);
	doc_column(t, "Time", "ns", true);
	doc_row(t, DOC_BAD);
	doc_cell(t, "a, \"b\"");
	doc_number(t, 1234567.891, 0);
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "plain");
	doc_number(t, NAN, 2);
	doc_row(t, DOC_PLAIN);
	doc_table(d, "nothing", NULL);
	t = doc_table(d, "steps", NULL);
	doc_column(t, "A", NULL, true);
	write_files(d);
	expect_file("---steps.csv", "Name,Time (ns)\r\n\"a, \"\"b\"\"\",1234567.89\r\nplain,\r\n,\r\n");
	expect_file("steps.csv", "A\r\n");
	doc_free(d);
}

TEST_WITH(csv__formulas__are_texts, set_up, tear_down)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", NULL);

	doc_column(t, "A", NULL, false);
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "=1+cmd()");
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "-1+cmd()");
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "-1.5 %%");
	doc_row(t, DOC_PLAIN);
	doc_number(t, -2, 0);
	write_files(d);
	expect_file("t.csv", "A\r\n\"'=1+cmd()\"\r\n\"'-1+cmd()\"\r\n-1.5 %\r\n-2\r\n");
	doc_free(d);
}

TEST(files__no_folder_to_be_made__errno)
{
	struct doc *d = doc_rig_new();
	char err[200];

	doc_rig_fill(d);
	assert_int_equal(doc_write_files(d, "/dev/null/run", err, sizeof(err)), -ENOTDIR);
	assert_non_null(strstr(err, "/dev/null/run/tables"));
	doc_free(d);
}

TEST_WITH(charts__those_that_were_drawn__a_picture_each, set_up, tear_down)
{
	static const char svg[] = "<svg class=\"chart\" viewBox=\"0 0 10 10\"><path d=\"M0 0\"/></svg>";
	struct doc *d = doc_rig_new();
	char path[200], text[20000];
	size_t n;
	FILE *f;

	doc_chart(d, "drawn", "A <title>", svg, "what it shows");
	doc_chart(d, "not-drawn", "Another", NULL, "nothing");
	write_files(d);
	snprintf(path, sizeof(path), "%s/charts/drawn.svg", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_ptr_equal(strstr(text, "<svg xmlns="), text);
	assert_non_null(strstr(text, "<title>A &lt;title&gt;</title>"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_int_equal(unlink(path), 0);
	doc_free(d);
}
