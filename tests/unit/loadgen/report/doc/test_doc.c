/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/doc/doc.c and doc_read.c: what a document accepts and returns. */
#include "tests/unit/helpers/doc_rig.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/report/doc/doc_internal.h"

static unsigned long allocations, fail_at;	/* of jansson; the allocation that fails, 0: none */

static void *counting_malloc(size_t n)
{
	return ++allocations == fail_at ? NULL : malloc(n);
}

static const char *shown(double v, int decimals, char buf[DOC_NUMBER_MAX])
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", NULL);
	const char *text;

	doc_column(t, "v", NULL, true);
	doc_row(t, DOC_PLAIN);
	doc_number(t, v, decimals);
	text = doc_cell_shown(doc_row_at(doc_block(d, 0), 0), 0, buf);
	if (text != buf)
		strcpy(buf, text);
	doc_free(d);
	return buf;
}

TEST(number__any__thousands_and_decimals)
{
	char buf[DOC_NUMBER_MAX];

	assert_string_equal(shown(0, 0, buf), "0");
	assert_string_equal(shown(999, 0, buf), "999");
	assert_string_equal(shown(1000, 0, buf), "1,000");
	assert_string_equal(shown(-1234567.891, 2, buf), "-1,234,567.89");
	assert_string_equal(shown(-123, 0, buf), "-123");
	assert_string_equal(shown(-0.001, 1, buf), "0.0");
	assert_string_equal(shown(999.96, 1, buf), "1,000.0");
	assert_string_equal(shown(1, 1000, buf), "1.000000000");
	assert_string_equal(shown(1, -5, buf), "1");
}

TEST(number__unknown_or_huge__a_dash_or_an_exponent)
{
	char buf[DOC_NUMBER_MAX];

	assert_string_equal(shown(NAN, 0, buf), "\xe2\x80\x93");
	assert_string_equal(shown(INFINITY, 2, buf), "\xe2\x80\x93");
	assert_string_equal(shown(-1e308, 9, buf), "-1.000e+308");
	assert_string_equal(shown(9e17, 9, buf), "900,000,000,000,000,000.000000000");
}

TEST(names__any__safe_and_unique)
{
	struct doc *d = doc_rig_new();

	doc_section(d, "Ca pa/../city", "a");
	doc_section(d, "x", "b");
	doc_section(d, "x", "c");
	doc_section(d, "x-2", "d");
	doc_section(d, NULL, "e");
	doc_section(d, "", "f");
	assert_string_equal(doc_str(doc_block(d, 0), "id"), "ca-pa----city");
	assert_string_equal(doc_str(doc_block(d, 1), "id"), "x");
	assert_string_equal(doc_str(doc_block(d, 2), "id"), "x-2");
	assert_string_equal(doc_str(doc_block(d, 3), "id"), "x-2-2");
	assert_string_equal(doc_str(doc_block(d, 4), "id"), "section");
	assert_string_equal(doc_str(doc_block(d, 5), "id"), "section-2");
	/* Statements have an anchor only if they are given one. */
	doc_text(d, "x", "a text");
	doc_answer(d, DOC_GOOD, NULL, "Question?", "Answer", "Detail");
	assert_string_equal(doc_str(doc_block(d, 6), "id"), "x-3");
	assert_false(doc_has(doc_block(d, 7), "id"));
	/* Names of files are not anchors. */
	doc_table(d, "x", NULL);
	assert_string_equal(doc_str(doc_block(d, 8), "name"), "x");
	assert_false(doc_failed(d));
	doc_free(d);
}

TEST(table__out_of_order__cells_without_a_row_and_columns_after_it)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", NULL);
	char buf[DOC_NUMBER_MAX];
	const json_t *b = doc_block(d, 0);

	doc_cell(t, "first");
	doc_column(t, "a", NULL, false);
	doc_row(t, DOC_BAD);
	doc_text(d, NULL, "between");
	doc_column(t, "b", "ns", true);
	doc_number(t, 1, 0);
	doc_number(t, 2, 0);
	doc_number(t, 3, 0);
	assert_int_equal(doc_n_columns(b), 2);
	assert_int_equal(doc_n_rows(b), 2);
	assert_string_equal(doc_cell_shown(doc_row_at(b, 0), 0, buf), "first");
	assert_string_equal(doc_cell_shown(doc_row_at(b, 0), 1, buf), "");
	assert_string_equal(doc_cell_shown(doc_row_at(b, 1), 1, buf), "2");
	assert_int_equal(doc_tone(doc_row_at(b, 1)), DOC_BAD);
	assert_false(doc_failed(d));
	doc_free(d);
}

TEST(free__null__ignored)
{
	doc_free(NULL);
}

TEST(text__not_utf8__made_so)
{
	struct doc *d = doc_rig_new();

	doc_text(d, NULL, "a\xff\033%s", "b\n");
	assert_string_equal(doc_str(doc_block(d, 0), "text"), "a\xef\xbf\xbd\xef\xbf\xbd" "b ");
	assert_false(doc_failed(d));
	doc_free(d);
}

/* Each allocation fails once; what was made before is still written and freed. */
TEST(memory__runs_out_anywhere__is_said)
{
	struct doc *d;
	unsigned long i;
	bool failed;

	json_set_alloc_funcs(counting_malloc, free);
	for (i = 1, failed = true; failed; i++) {
		int ret;

		allocations = 0;
		fail_at = i;
		ret = doc_new("Title", "lead", &d);
		if (ret) {
			assert_int_equal(ret, -ENOMEM);
			continue;
		}
		doc_rig_fill(d);
		failed = doc_failed(d);
		assert_int_equal(failed, allocations >= fail_at);
		fail_at = 0;
		for (int form = DOC_FORM_HTML; form <= DOC_FORM_MARKDOWN; form++)
			free(doc_rig_written(d, (enum doc_form)form));
		doc_free(d);
	}
	assert_true(i > 100);
	json_set_alloc_funcs(malloc, free);
}
