/* Unit tests of loadgen/report/doc/doc_files.c. */
#include "tests/unit/helpers/doc_rig.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rampart-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* Reads dir/tables/name and removes it. */
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

static void csv__tables__one_file_each(void **state)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t;
	char tables[100];

	(void)state;
	snprintf(tables, sizeof(tables), "%s/tables", dir);
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
	assert_int_equal(doc_write_csv(d, tables), 0);
	expect_file("---steps.csv", "Name,Time (ns)\r\n\"a, \"\"b\"\"\",1234567.89\r\nplain,\r\n,\r\n");
	expect_file("steps.csv", "A\r\n");
	/* It was empty but for these. */
	assert_int_equal(rmdir(tables), 0);
	doc_free(d);
}

static void csv__formulas__are_texts(void **state)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", NULL);
	char tables[100];

	(void)state;
	snprintf(tables, sizeof(tables), "%s/tables", dir);
	doc_column(t, "A", NULL, false);
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "=1+cmd()");
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "-1+cmd()");
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "-1.5 %%");
	doc_row(t, DOC_PLAIN);
	doc_number(t, -2, 0);
	assert_int_equal(doc_write_csv(d, tables), 0);
	expect_file("t.csv", "A\r\n\"'=1+cmd()\"\r\n\"'-1+cmd()\"\r\n-1.5 %\r\n-2\r\n");
	assert_int_equal(rmdir(tables), 0);
	doc_free(d);
}

static void csv__no_folder_to_be_made__errno(void **state)
{
	struct doc *d = doc_rig_new();

	(void)state;
	doc_rig_fill(d);
	assert_int_equal(doc_write_csv(d, "/dev/null/tables"), -ENOTDIR);
	doc_free(d);
}

static void charts__those_that_were_drawn__a_picture_each(void **state)
{
	static const char svg[] = "<svg class=\"chart\" viewBox=\"0 0 10 10\"><path d=\"M0 0\"/></svg>";
	struct doc *d = doc_rig_new();
	char charts[100], path[200], text[20000];
	size_t n;
	FILE *f;

	(void)state;
	snprintf(charts, sizeof(charts), "%s/charts", dir);
	doc_chart(d, "drawn", "A <title>", svg, "what it shows");
	doc_chart(d, "not-drawn", "Another", NULL, "nothing");
	assert_int_equal(doc_write_charts(d, charts), 0);
	snprintf(path, sizeof(path), "%s/drawn.svg", charts);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_ptr_equal(strstr(text, "<svg xmlns="), text);
	assert_non_null(strstr(text, "<title>A &lt;title&gt;</title>"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_int_equal(unlink(path), 0);
	/* It was empty but for that. */
	assert_int_equal(rmdir(charts), 0);
	doc_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(csv__tables__one_file_each, set_up, tear_down),
		cmocka_unit_test_setup_teardown(csv__formulas__are_texts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(charts__those_that_were_drawn__a_picture_each, set_up, tear_down),
		cmocka_unit_test(csv__no_folder_to_be_made__errno),
	};

	return cmocka_run_group_tests_name("report_doc_files", tests, NULL, NULL);
}
