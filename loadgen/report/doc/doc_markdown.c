/* A document in GitHub's Markdown. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define TITLE_MAX 256

/* Nothing in a text is markup, names nobody and refers to no issue: a comment within keeps GitHub from making links. */
static void escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		bool refers = *text == '@' || (*text == '#' && isdigit((unsigned char)text[1])) ||
			      (*text == ':' && text[1] == '/' && text[2] == '/');

		if (*text == '<' || *text == '>' || *text == '&')
			fprintf(out, "&#%d;", *text);
		else if (refers)
			fprintf(out, "%c<!-- -->", *text);
		else if (strchr("\\`*_{}[]#|~$", *text))
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
	}
}

/* The same at the start of a line, where "1." or "-" begins a list. */
static void line(FILE *out, const char *text)
{
	size_t digits;

	text += strspn(text, " ");
	digits = strspn(text, "0123456789");
	if (digits > 0 && (text[digits] == '.' || text[digits] == ')')) {
		fprintf(out, "%.*s\\%c", (int)digits, text, text[digits]);
		text += digits + 1;
	} else if (*text && strchr("-+=", *text)) {
		fprintf(out, "\\%c", *text++);
	}
	escaped(out, text);
	fputs("\n", out);
}

static void wrapped(FILE *out, const char *before, const char *text, const char *after)
{
	if (!*text)
		return;
	fputs(before, out);
	escaped(out, text);
	fputs(after, out);
}

static void sign(FILE *out, enum doc_tone tone)
{
	static const char *const signs[] = { "", "\xe2\x9c\x85 ", "\xe2\x9a\xa0\xef\xb8\x8f ", "\xe2\x9d\x8c " };

	fputs(signs[tone], out);
}

/* --- blocks --- */

static void note(FILE *out, const json_t *b)
{
	static const char *const alerts[] = { "NOTE", "TIP", "WARNING", "CAUTION" };

	fprintf(out, "> [!%s]\n> ", alerts[doc_tone(b)]);
	line(out, doc_str(b, "text"));
}

static void badge(FILE *out, const json_t *b)
{
	fputs("- ", out);
	sign(out, doc_tone(b));
	wrapped(out, "**", doc_str(b, "text"), "**");
	wrapped(out, " ", doc_str(b, "detail"), "");
	fputs("\n", out);
}

static void answer(FILE *out, const json_t *b)
{
	fputs("| ", out);
	escaped(out, doc_str(b, "title"));
	fputs(" | ", out);
	sign(out, doc_tone(b));
	wrapped(out, "**", doc_str(b, "text"), "**");
	fputs(" | ", out);
	escaped(out, doc_str(b, "detail"));
	fputs(" |\n", out);
}

/* Fenced by more backticks than stand in a row anywhere in it. */
static void code(FILE *out, const char *text)
{
	size_t fence = 3;

	for (const char *p = text; *p; p++) {
		size_t run = strspn(p, "`");

		if (run >= fence)
			fence = run + 1;
	}
	for (int end = 0; end < 2; end++) {
		for (size_t i = 0; i < fence; i++)
			putc('`', out);
		fputs("\n", out);
		if (!end)
			fprintf(out, "%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	}
}

static void file(FILE *out, const json_t *b)
{
	fputs("- ", out);
	escaped(out, doc_str(b, "path"));
	wrapped(out, ": ", doc_str(b, "text"), "");
	fputs("\n", out);
}

static void table_rows(FILE *out, const json_t *b)
{
	char buf[DOC_NUMBER_MAX];

	for (size_t r = 0; r < doc_n_rows(b); r++) {
		const json_t *row = doc_row_at(b, r);

		for (size_t i = 0; i < doc_n_columns(b); i++) {
			fputs("| ", out);
			if (i == 0)
				sign(out, doc_tone(row));
			escaped(out, doc_cell_shown(row, i, buf));
			fputs(" ", out);
		}
		fputs("|\n", out);
	}
}

static void table(FILE *out, const json_t *b, bool of_chart)
{
	char title[TITLE_MAX];

	if (doc_n_columns(b) == 0)
		return;
	wrapped(out, of_chart ? "<details><summary>Numbers: " : "**", doc_str(b, "title"),
		of_chart ? "</summary>\n\n" : "**\n\n");
	if (of_chart && !doc_has(b, "title"))
		fputs("<details><summary>Numbers</summary>\n\n", out);
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		doc_column_title(b, i, title, sizeof(title));
		wrapped(out, "| ", *title ? title : " ", " ");
	}
	fputs("|\n", out);
	for (size_t i = 0; i < doc_n_columns(b); i++)
		fputs(doc_column_is_number(b, i) ? "| ---: " : "| --- ", out);
	fputs("|\n", out);
	table_rows(out, b);
	if (doc_n_rows(b) == 0)
		fputs("| nothing |\n", out);
	if (of_chart)
		fputs("\n</details>\n", out);
}

/* --- the whole --- */

static void one(FILE *out, const struct doc *d, size_t i)
{
	const json_t *b = doc_block(d, i);

	switch (doc_kind(b)) {
	case DOC_SECTION: wrapped(out, "## ", doc_str(b, "title"), "\n"); break;
	case DOC_HEADING: wrapped(out, "### ", doc_str(b, "title"), "\n"); break;
	case DOC_TEXT: line(out, doc_str(b, "text")); break;
	case DOC_NOTE: note(out, b); break;
	case DOC_ITEM:
		fputs("- ", out);
		line(out, doc_str(b, "text"));
		break;
	case DOC_BADGE: badge(out, b); break;
	case DOC_ANSWER: answer(out, b); break;
	case DOC_CODE: code(out, doc_str(b, "text")); break;
	case DOC_FILE: file(out, b); break;
	case DOC_TABLE: table(out, b, doc_table_is_of_chart(d, i)); break;
	case DOC_CHART:
		wrapped(out, "**", doc_str(b, "title"), "**\n");
		wrapped(out, "\n", doc_str(b, "detail"), "\n");
		break;
	case DOC_END: break;
	}
}

/* Do neighbours of this kind stand without an empty line between them? */
static bool is_grouped(enum doc_kind kind)
{
	return kind == DOC_ITEM || kind == DOC_BADGE || kind == DOC_ANSWER || kind == DOC_FILE;
}

int doc_write_markdown(const struct doc *d, FILE *out)
{
	wrapped(out, "# ", doc_title(d), "\n");
	wrapped(out, "\n", doc_lead(d) ? doc_lead(d) : "", "\n");
	for (size_t i = 0; i < doc_n_blocks(d); i++) {
		enum doc_kind kind = doc_kind(doc_block(d, i)), before = i ? doc_kind(doc_block(d, i - 1)) : DOC_END;

		if (kind != before || !is_grouped(kind))
			fputs("\n", out);
		if (kind == DOC_ANSWER && before != kind)
			fputs("| Question | Answer | What it rests on |\n| --- | --- | --- |\n", out);
		one(out, d, i);
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
