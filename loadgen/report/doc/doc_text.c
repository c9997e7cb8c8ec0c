/* SPDX-License-Identifier: BSD-2-Clause */
/* A document as plain text, for a terminal. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

#define WIDTH_MAX 80		/* longer cells are not aligned */
#define ROWS_MAX 40		/* tables/ has all */

static void repeat(FILE *out, char c, size_t n)
{
	while (n-- > 0)
		putc(c, out);
}

/* A sign of one column, and a space. */
static void sign(FILE *out, enum doc_tone tone)
{
	static const char *const signs[] = { "", "\xe2\x9c\x93 ", "! ", "\xe2\x9c\x97 " };

	fputs(signs[tone], out);
}

/* --- tables: each word of a title has a line, so that a column is no wider than its figures need --- */

/* The word of that number, and its length in bytes: 0 after the last. */
static const char *title_word(const char *title, size_t number, size_t *bytes)
{
	for (*bytes = strcspn(title, " "); number > 0 && *title; number--, *bytes = strcspn(title, " "))
		title += *bytes + (title[*bytes] == ' ');
	return title;
}

/* How many words there are, and the length of the longest. */
static size_t title_words(const char *title, size_t *longest)
{
	size_t n = 0, bytes;

	for (*longest = 0; title_word(title, n, &bytes), bytes > 0; n++)
		*longest = bytes > *longest ? bytes : *longest;
	return n;
}

static size_t column_width(const json_t *b, size_t column)
{
	size_t width, unit = utf8_count(doc_str(doc_column_at(b, column), "unit"));
	char buf[DOC_NUMBER_MAX];

	title_words(doc_str(doc_column_at(b, column), "title"), &width);
	width = unit > width ? unit : width;
	for (size_t r = 0; r < doc_n_rows(b) && r < ROWS_MAX; r++) {
		size_t n = utf8_count(doc_cell_shown(doc_row_at(b, r), column, buf));

		width = n > width ? n : width;
	}
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

/* `bytes` of a text, aligned in its column. Spaces are owed until a text follows, so that no line ends with them. */
static void cell(FILE *out, const json_t *b, const size_t *widths, size_t column, const char *text, size_t bytes, size_t *owed)
{
	bool number = doc_column_is_number(b, column);
	size_t n = 0, gap;

	for (size_t i = 0; i < bytes; i++)
		n += (text[i] & 0xc0) != 0x80;
	gap = n < widths[column] ? widths[column] - n : 0;
	*owed += (column ? 2 : 0) + (number ? gap : 0);
	if (bytes) {
		repeat(out, ' ', *owed);
		fwrite(text, 1, bytes, out);
		*owed = 0;
	}
	*owed += number ? 0 : gap;
}

/* Titles end at the same line; units are below them. */
static void table_head(FILE *out, const json_t *b, const size_t *widths, bool toned)
{
	size_t lines = 0, n, bytes;
	bool units = false;

	for (size_t i = 0; i < doc_n_columns(b); i++) {
		n = title_words(doc_str(doc_column_at(b, i), "title"), &bytes);
		lines = n > lines ? n : lines;
		units |= doc_has(doc_column_at(b, i), "unit");
	}
	for (size_t line = 0; line < lines + units; line++) {
		size_t owed = toned ? 2 : 0;

		for (size_t i = 0; i < doc_n_columns(b); i++) {
			const char *title = doc_str(doc_column_at(b, i), "title"), *text = doc_str(doc_column_at(b, i), "unit");
			size_t above = lines - title_words(title, &bytes);

			if (line < lines)
				text = title_word(title, line < above ? SIZE_MAX : line - above, &bytes);
			cell(out, b, widths, i, text, line < lines ? bytes : strlen(text), &owed);
		}
		fputs("\n", out);
	}
}

static void table_rows(FILE *out, const json_t *b, const size_t *widths, bool toned)
{
	size_t n = doc_n_rows(b);
	char buf[DOC_NUMBER_MAX];

	for (size_t r = 0; r < n && r < ROWS_MAX; r++) {
		const json_t *row = doc_row_at(b, r);
		size_t owed = toned && doc_tone(row) == DOC_PLAIN ? 2 : 0;

		sign(out, doc_tone(row));
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			const char *text = doc_cell_shown(row, i, buf);

			cell(out, b, widths, i, text, strlen(text), &owed);
		}
		fputs("\n", out);
	}
	if (n == 0)
		fputs("nothing\n", out);
	else if (n > ROWS_MAX)
		fprintf(out, "and %zu rows more, in tables/%s.csv\n", n - ROWS_MAX, doc_str(b, "name"));
}

static int table(FILE *out, const json_t *b)
{
	size_t n = doc_n_columns(b), *widths = calloc(n + 1, sizeof(*widths));
	bool toned = json_is_true(json_object_get(b, "toned"));

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		widths[i] = column_width(b, i);
	if (doc_has(b, "title"))
		fprintf(out, "%s\n", doc_str(b, "title"));
	table_head(out, b, widths, toned);
	table_rows(out, b, widths, toned);
	free(widths);
	return 0;
}

/* --- the document --- */

/* A text with its sign, and what follows it. */
static void said(FILE *out, const json_t *b, const char *before, const char *between)
{
	fputs(before, out);
	sign(out, doc_tone(b));
	fprintf(out, "%s%s%s\n", doc_str(b, "text"), doc_has(b, "detail") ? between : "", doc_str(b, "detail"));
}

static void section(FILE *out, const json_t *b)
{
	const char *title = doc_str(b, "title");

	fprintf(out, "%s\n", title);
	repeat(out, '=', utf8_count(title));
	fputs("\n", out);
}

static void code(FILE *out, const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(out, "    %.*s\n", (int)n, text);
	}
}

static int one(FILE *out, const json_t *b)
{
	switch (doc_kind(b)) {
	case DOC_SECTION: section(out, b); break;
	case DOC_HEADING: fprintf(out, "%s\n", doc_str(b, "title")); break;
	case DOC_TEXT: said(out, b, "", ""); break;
	case DOC_NOTE: said(out, b, "", ""); break;
	case DOC_ITEM: said(out, b, "  ", ""); break;
	case DOC_BADGE: said(out, b, "  ", ": "); break;
	case DOC_ANSWER:
		fprintf(out, "%s ", doc_str(b, "title"));
		said(out, b, "", "\n  ");
		break;
	case DOC_CODE: code(out, doc_str(b, "text")); break;
	case DOC_FILE: fprintf(out, "  %s: %s\n", doc_str(b, "path"), doc_str(b, "text")); break;
	case DOC_TABLE: return table(out, b);
	case DOC_CHART:
	case DOC_END: break;
	}
	return 0;
}

/* Charts, and links within the document, are the page's alone. */
static bool is_shown(const json_t *b)
{
	return doc_kind(b) != DOC_CHART && !(doc_kind(b) == DOC_FILE && doc_has(b, "to")) &&
	       !(doc_kind(b) == DOC_TABLE && doc_n_columns(b) == 0);
}

static bool is_gap_before(enum doc_kind kind, enum doc_kind before)
{
	bool grouped = kind == DOC_ITEM || kind == DOC_BADGE || kind == DOC_FILE;

	return before != DOC_END && before != DOC_HEADING && before != DOC_SECTION && !(grouped && kind == before);
}

int doc_write_text(const struct doc *d, FILE *out)
{
	enum doc_kind before = DOC_END;
	int ret = 0;

	if (doc_has(doc_root(d), "title"))
		fprintf(out, "%s\n\n", doc_str(doc_root(d), "title"));
	if (doc_has(doc_root(d), "lead"))
		fprintf(out, "%s\n\n", doc_str(doc_root(d), "lead"));
	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		const json_t *b = doc_block(d, i);

		if (!is_shown(b))
			continue;
		fputs(is_gap_before(doc_kind(b), before) ? "\n" : "", out);
		before = doc_kind(b);
		ret = one(out, b);
	}
	if (ret)
		return ret;
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
