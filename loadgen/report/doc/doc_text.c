/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a document as text: GitHub's Markdown, or plain for a terminal. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/utf8.h"
#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256
#define WIDTH_MAX 80		/* of a plain column: longer cells are not aligned */
#define ROWS_MAX 64		/* of a plain table: enough for all steps of one size; tables/ has the rest */

struct form {
	FILE *out;
	bool plain;		/* no Markdown */
};

/* True at the third letter of "www.", which GitHub turns into a link whatever follows the dot. */
static bool is_www(const char *text, const char *at)
{
	return at - text >= 2 && at[1] == '.' && strncasecmp(at - 2, "www", 3) == 0;
}

/* The replacement of a character that is markup in HTML, or that would make a link on GitHub (to a person, an issue, an
 * address); NULL: none is needed. A comment after the character prevents the link, because GitHub looks for addresses
 * in runs of text, after it has replaced escapes and entities (https://github.github.com/gfm/#autolinks-extension-). */
static const char *replacement(const char *text, const char *at)
{
	switch (*at) {
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '&': return "&amp;";
	case '@': return "@<!-- -->";
	case ':': return at[1] == '/' && at[2] == '/' ? ":<!-- -->" : NULL;
	case 'w': return is_www(text, at) ? "w<!-- -->" : NULL;
	case 'W': return is_www(text, at) ? "W<!-- -->" : NULL;
	case '#': return isdigit((unsigned char)at[1]) ? "#<!-- -->" : NULL;
	}
	return NULL;
}

/* True if the character can be markup. An underscore within a word cannot. */
static bool is_markup(const char *text, const char *at)
{
	if (*at == '_' && at > text && isalnum((unsigned char)at[-1]) && isalnum((unsigned char)at[1]))
		return false;
	return strchr("\\`*_{}[]#|~$", *at);
}

static void escape(FILE *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		const char *instead = replacement(text, at);

		fputs(instead ? instead : is_markup(text, at) ? "\\" : "", out);
		if (!instead)
			putc(*at, out);
	}
}

/* Writes a text at the start of a line, where "1." or "-" would begin a list. */
static void line(const struct form *f, const char *text)
{
	FILE *out = f->out;
	size_t digits;

	if (f->plain) {
		fprintf(out, "%s\n", text);
		return;
	}
	text += strspn(text, " ");
	digits = strspn(text, "0123456789");
	if (digits > 0 && (text[digits] == '.' || text[digits] == ')')) {
		fprintf(out, "%.*s\\%c", (int)digits, text, text[digits]);
		text += digits + 1;
	} else if (*text && strchr("-+=", *text)) {
		fprintf(out, "\\%c", *text++);
	}
	escape(out, text);
	fputs("\n", out);
}

static void unescaped(FILE *out, const char *text)
{
	fputs(text, out);
}

/* Writes one of two forms, whose %s is the text (escaped in Markdown). Writes nothing if the text is empty. */
static void text_put(const struct form *f, const char *markdown, const char *plain, const char *text)
{
	const char *form = f->plain ? plain : markdown, *at = strstr(form, "%s");

	if (!*text || !at)
		return;
	fwrite(form, 1, (size_t)(at - form), f->out);
	(f->plain ? unescaped : escape)(f->out, text);
	fputs(at + 2, f->out);
}

static void repeat(FILE *out, char c, size_t n)
{
	while (n-- > 0)
		putc(c, out);
}

static void sign(const struct form *f, enum doc_tone tone)
{
	static const char *const signs[][2] = {
		[DOC_PLAIN] = { "", "" }, [DOC_GOOD] = { "\xe2\x9c\x85 ", "\xe2\x9c\x93 " },
		[DOC_WARN] = { "\xe2\x9a\xa0\xef\xb8\x8f ", "! " }, [DOC_BAD] = { "\xe2\x9d\x8c ", "\xe2\x9c\x97 " },
	};

	fputs(signs[tone][f->plain], f->out);
}

static void section(const struct form *f, const char *title)
{
	text_put(f, "## %s\n", "%s\n", title);
	repeat(f->out, '=', f->plain ? utf8_count(title) : 0);
	fputs(f->plain ? "\n" : "", f->out);
}

static void note(const struct form *f, const json_t *b)
{
	static const char *const alerts[] = { "NOTE", "TIP", "WARNING", "CAUTION" };

	if (f->plain)
		sign(f, doc_tone(b));
	else
		fprintf(f->out, "> [!%s]\n> ", alerts[doc_tone(b)]);
	line(f, doc_str(b, "text"));
}

static void badge(const struct form *f, const json_t *b)
{
	fputs(f->plain ? "  " : "- ", f->out);
	sign(f, doc_tone(b));
	text_put(f, "**%s**", "%s", doc_str(b, "text"));
	text_put(f, " %s", ": %s", doc_str(b, "detail"));
	fputs("\n", f->out);
}

static void answer(const struct form *f, const json_t *b)
{
	text_put(f, "| %s | ", "%s ", doc_str(b, "title"));
	sign(f, doc_tone(b));
	text_put(f, "**%s**", "%s", doc_str(b, "text"));
	text_put(f, " | %s", "\n  %s", doc_str(b, "detail"));
	fputs(f->plain ? "\n" : doc_has(b, "detail") ? " |\n" : " | |\n", f->out);
}

/* The fence has more backticks than any run of them in the text. */
static void code(const struct form *f, const char *text)
{
	FILE *out = f->out;
	size_t fence = 3;

	for (size_t n; f->plain && *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(out, "    %.*s\n", (int)n, text);
	}
	if (f->plain)
		return;
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

static void markdown_table(const struct form *f, const json_t *b, bool of_chart)
{
	FILE *out = f->out;
	char title[TITLE_MAX], buf[DOC_NUMBER_MAX];

	if (of_chart) {
		fputs(doc_has(b, "title") ? "<details><summary>Numbers: " : "<details><summary>Numbers", out);
		xml_write(out, doc_str(b, "title"), SIZE_MAX);
		fputs("</summary>\n\n", out);
	} else {
		text_put(f, "**%s**\n\n", "", doc_str(b, "title"));
	}
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		doc_column_title(b, i, title, sizeof(title));
		fputs("| ", out);
		escape(out, title);
		fputs(" ", out);
	}
	fputs("|\n", out);
	for (size_t i = 0; i < doc_n_columns(b); i++)
		fputs(doc_column_is_number(b, i) ? "| --: " : "| --- ", out);
	fputs("|\n", out);
	for (size_t r = 0; r < doc_n_rows(b); r++) {
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			fputs("| ", out);
			if (i == 0)
				sign(f, doc_tone(doc_row_at(b, r)));
			escape(out, doc_cell_shown(doc_row_at(b, r), i, buf));
			fputs(" ", out);
		}
		fputs("|\n", out);
	}
	fputs(doc_n_rows(b) ? "" : "| nothing |\n", out);
	fputs(of_chart ? "\n</details>\n" : "", out);
}

/* Plain tables: each word of a title has a line, so that a column is no wider than its figures need. */

/* The word of a title with that number, from 0, and its length in bytes; 0 after the last word. */
static const char *title_word(const char *title, size_t number, size_t *bytes)
{
	for (*bytes = strcspn(title, " "); number > 0 && *title; number--, *bytes = strcspn(title, " "))
		title += *bytes + (title[*bytes] == ' ');
	return title;
}

/* Counts the words of a title; *longest is set to the length of the longest. */
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

/* Writes `bytes` of a text, aligned in its column. Spaces are only counted in `owed` until a text follows, so that no
 * line ends with spaces. */
static void text_cell(FILE *out, const json_t *b, const size_t *widths, size_t column, const char *text, size_t bytes,
		      size_t *owed)
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

/* Titles are aligned at their last lines; units are below them. */
static void plain_head(FILE *out, const json_t *b, const size_t *widths, bool toned)
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
			const char *title = doc_str(doc_column_at(b, i), "title"),
				*text = doc_str(doc_column_at(b, i), "unit");
			size_t above = lines - title_words(title, &bytes);

			if (line < lines)
				text = title_word(title, line < above ? SIZE_MAX : line - above, &bytes);
			text_cell(out, b, widths, i, text, line < lines ? bytes : strlen(text), &owed);
		}
		fputs("\n", out);
	}
}

static void plain_rows(const struct form *f, const json_t *b, const size_t *widths, bool toned)
{
	FILE *out = f->out;
	size_t n = doc_n_rows(b);
	char buf[DOC_NUMBER_MAX];

	for (size_t r = 0; r < n && r < ROWS_MAX; r++) {
		const json_t *row = doc_row_at(b, r);
		size_t owed = toned && doc_tone(row) == DOC_PLAIN ? 2 : 0;

		sign(f, doc_tone(row));
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			const char *text = doc_cell_shown(row, i, buf);

			text_cell(out, b, widths, i, text, strlen(text), &owed);
		}
		fputs("\n", out);
	}
	if (n == 0)
		fputs("nothing\n", out);
	else if (n > ROWS_MAX)
		fprintf(out, "and %zu rows more, in tables/%s.csv\n", n - ROWS_MAX, doc_str(b, "name"));
}

static int plain_table(const struct form *f, const json_t *b)
{
	size_t n = doc_n_columns(b), *widths = calloc(n + 1, sizeof(*widths));
	bool toned = json_is_true(json_object_get(b, "toned"));

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		widths[i] = column_width(b, i);
	text_put(f, "", "%s\n", doc_str(b, "title"));
	plain_head(f->out, b, widths, toned);
	plain_rows(f, b, widths, toned);
	free(widths);
	return 0;
}

static int one(const struct form *f, const struct doc *d, size_t i)
{
	const json_t *b = doc_block(d, i);
	const char *text = doc_str(b, "text"), *title = doc_str(b, "title");

	switch (doc_kind(b)) {
	case DOC_SECTION: section(f, title); break;
	case DOC_HEADING: text_put(f, "### %s\n", "%s\n", title); break;
	case DOC_TEXT: line(f, text); break;
	case DOC_NOTE: note(f, b); break;
	case DOC_ITEM:
		fputs(f->plain ? "  " : "- ", f->out);
		line(f, text);
		break;
	case DOC_BADGE: badge(f, b); break;
	case DOC_ANSWER: answer(f, b); break;
	case DOC_CODE: case DOC_PICTURE: code(f, text); break;
	case DOC_FILE:
		text_put(f, "- %s", "  %s", doc_str(b, "path"));
		text_put(f, ": %s", ": %s", text);
		fputs("\n", f->out);
		break;
	case DOC_TABLE:
		if (f->plain)
			return plain_table(f, b);
		markdown_table(f, b, doc_table_is_of_chart(d, i));
		break;
	case DOC_CHART:
		text_put(f, "**%s**\n", "", title);
		text_put(f, "\n%s\n", "", doc_str(b, "detail"));
		break;
	case DOC_END: break;
	}
	return 0;
}

/* Links within the document are only for the page, and plain text has a chart's table instead of the chart. */
static bool is_shown(const struct form *f, const json_t *b)
{
	return !(doc_kind(b) == DOC_CHART && f->plain) && !(doc_kind(b) == DOC_FILE && doc_has(b, "to")) &&
	       !(doc_kind(b) == DOC_TABLE && doc_n_columns(b) == 0);
}

/* There is no empty line between neighbours of some kinds, nor after a heading in plain text. */
static bool is_gap_before(const struct form *f, enum doc_kind kind, enum doc_kind before)
{
	bool grouped = kind == DOC_ITEM || kind == DOC_BADGE || kind == DOC_FILE || (kind == DOC_ANSWER && !f->plain);

	if (f->plain && (before == DOC_END || before == DOC_HEADING || before == DOC_SECTION))
		return false;
	return !(grouped && kind == before);
}

static int document(const struct form *f, const struct doc *d)
{
	enum doc_kind before = DOC_END;
	int ret = 0;

	text_put(f, "# %s\n", "%s\n\n", doc_str(doc_root(d), "title"));
	text_put(f, "\n%s\n", "%s\n\n", doc_str(doc_root(d), "lead"));
	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		enum doc_kind kind = doc_kind(doc_block(d, i));

		if (!is_shown(f, doc_block(d, i)))
			continue;
		fputs(is_gap_before(f, kind, before) ? "\n" : "", f->out);
		if (kind == DOC_ANSWER && before != kind && !f->plain)
			fputs("| Question | Answer | What it rests on |\n| --- | --- | --- |\n", f->out);
		before = kind;
		ret = one(f, d, i);
	}
	return ret ? ret : fflush(f->out) == 0 && !ferror(f->out) ? 0 : -EIO;
}

int doc_write_markdown(const struct doc *d, FILE *out)
{
	return document(&(struct form){ out, false }, d);
}

int doc_write_text(const struct doc *d, FILE *out)
{
	return document(&(struct form){ out, true }, d);
}
