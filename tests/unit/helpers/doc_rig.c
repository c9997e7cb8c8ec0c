/* SPDX-License-Identifier: BSD-2-Clause */
/* Renders a document in one of its forms. See doc_rig.h. */
#include "tests/unit/helpers/doc_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct doc *doc_rig_new(void)
{
	struct doc *d;

	assert_int_equal(doc_new("Title", NULL, &d), 0);
	return d;
}

static void fill_table(struct doc *d, const char *name)
{
	struct doc_table *t = doc_table(d, name, "Caption");

	doc_column(t, "Step", NULL, false);
	doc_column(t, "Time", "ns", true);
	for (int tone = DOC_PLAIN; tone <= DOC_BAD; tone++) {
		doc_row(t, (enum doc_tone)tone);
		doc_cell(t, "step %d", tone);
		doc_number(t, tone ? 1234.5 * tone : NAN, 1);
	}
}

void doc_rig_fill(struct doc *d)
{
	doc_answer(d, DOC_GOOD, NULL, "Question?", "Answer", "Detail");
	doc_section(d, "first", "First");
	doc_heading(d, "Heading");
	doc_text(d, "said", "text %d", 1);
	for (int tone = DOC_PLAIN; tone <= DOC_BAD; tone++) {
		doc_note(d, (enum doc_tone)tone, NULL, "note %d", tone);
		doc_badge(d, (enum doc_tone)tone, NULL, "badge", tone ? "meaning" : NULL);
	}
	doc_item(d, NULL, "item %d", 1);
	doc_item(d, NULL, "item %d", 2);
	doc_code(d, "code\n\tmore");
	doc_picture(d, "picture");
	doc_file(d, "run.json", "everything");
	fill_table(d, "plain");
	doc_chart(d, "chart", "Chart", "<svg class=\"chart\"><path/></svg>", "It rises.");
	fill_table(d, "chart");
	doc_chart(d, "none", "No chart", NULL, "It falls.");
}

char *doc_rig_written(const struct doc *d, enum doc_form form)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int ret = -1;

	assert_non_null(out);
	switch (form) {
	case DOC_FORM_HTML: ret = doc_write_html(d, out); break;
	case DOC_FORM_MARKDOWN: ret = doc_write_markdown(d, out); break;
	case DOC_FORM_TEXT: ret = doc_write_text(d, out); break;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

void doc_rig_expect(const struct doc *d, enum doc_form form, ...)
{
	char *text = doc_rig_written(d, form);
	const char *at = text, *expected;
	va_list ap;

	va_start(ap, form);
	while ((expected = va_arg(ap, const char *))) {
		const char *found = strstr(at, expected);

		if (!found)
			fail_msg("no '%s' in: %s", expected, at);
		at = found + strlen(expected);
	}
	va_end(ap);
	free(text);
}

void doc_rig_expect_not(const struct doc *d, enum doc_form form, const char *unexpected)
{
	char *text = doc_rig_written(d, form);

	if (strstr(text, unexpected))
		fail_msg("'%s' in: %s", unexpected, text);
	free(text);
}
