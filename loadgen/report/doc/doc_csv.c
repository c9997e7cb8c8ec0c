/* A table as CSV. See doc.h and doc_internal.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <string.h>

#define TITLE_MAX 256

/* Would a spreadsheet take the text for a formula? */
static bool is_formula(const char *text)
{
	return *text && (strchr("=+@", *text) || (*text == '-' && text[1 + strspn(text + 1, "0123456789.,% ")]));
}

/* Quoted where RFC 4180 demands it. A formula gets an apostrophe before it, which makes it a text. */
static void field(FILE *out, const char *text, bool number, bool first)
{
	if (!first)
		putc(',', out);
	if (!number && is_formula(text)) {
		fputs("\"'", out);
	} else if (!strpbrk(text, ",\"\r\n") && *text != ' ') {
		fputs(text, out);
		return;
	} else {
		putc('"', out);
	}
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

void doc_csv_table(FILE *out, const json_t *b)
{
	char title[TITLE_MAX], buf[DOC_NUMBER_MAX];

	for (size_t i = 0; i < doc_n_columns(b); i++) {
		doc_column_title(b, i, title, sizeof(title));
		field(out, title, false, i == 0);
	}
	fputs("\r\n", out);
	for (size_t r = 0; r < doc_n_rows(b); r++) {
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			const char *text = doc_cell_exact(doc_row_at(b, r), i, buf);

			field(out, text, text == buf, i == 0);
		}
		fputs("\r\n", out);
	}
}
