/* SPDX-License-Identifier: BSD-2-Clause */
/* A document in GitHub's Markdown. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256

/* Is this the third letter of "www.", which begins a link on GitHub whatever follows the dot? */
static bool is_www(const char *text, const char *at)
{
	return at - text >= 2 && at[1] == '.' && strncasecmp(at - 2, "www", 3) == 0;
}

/* The replacement of a character that is markup in HTML, or that would make a link on GitHub (to a person, an issue, an
 * address): a comment behind it prevents that, as GitHub looks for addresses in runs of text, after escapes and entities were
 * replaced (https://github.github.com/gfm/#autolinks-extension-). NULL: none is needed. */
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

/* Can the character be markup? An underscore within a word is none. */
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
	escape(out, text);
	fputs("\n", out);
}

/* Writes `form`; each %s is a text, escaped. */
static void __attribute__((format(printf, 2, 3))) put(FILE *out, const char *form, ...)
{
	va_list ap;

	va_start(ap, form);
	doc_put(out, escape, form, ap);
	va_end(ap);
}

/* The same with one text; nothing if that is empty. */
static void __attribute__((format(printf, 2, 0))) put_any(FILE *out, const char *form, const char *text)
{
	if (*text)
		put(out, form, text);
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
	put_any(out, "**%s**", doc_str(b, "text"));
	put_any(out, " %s", doc_str(b, "detail"));
	fputs("\n", out);
}

static void answer(FILE *out, const json_t *b)
{
	put(out, "| %s | ", doc_str(b, "title"));
	sign(out, doc_tone(b));
	put_any(out, "**%s**", doc_str(b, "text"));
	put(out, " | %s |\n", doc_str(b, "detail"));
}

/* The fence has more backticks than any run of them in the text. */
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

/* Links within the document are the page's alone. */
static void file(FILE *out, const json_t *b)
{
	if (doc_has(b, "to"))
		return;
	put(out, "- %s", doc_str(b, "path"));
	put_any(out, ": %s", doc_str(b, "text"));
	fputs("\n", out);
}

static void table(FILE *out, const json_t *b, bool of_chart)
{
	char title[TITLE_MAX], buf[DOC_NUMBER_MAX];

	if (doc_n_columns(b) == 0)
		return;
	if (of_chart) {
		fputs(doc_has(b, "title") ? "<details><summary>Numbers: " : "<details><summary>Numbers", out);
		xml_write(out, doc_str(b, "title"), SIZE_MAX);
		fputs("</summary>\n\n", out);
	} else {
		put_any(out, "**%s**\n\n", doc_str(b, "title"));
	}
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		doc_column_title(b, i, title, sizeof(title));
		put(out, "| %s ", title);
	}
	fputs("|\n", out);
	for (size_t i = 0; i < doc_n_columns(b); i++)
		fputs(doc_column_is_number(b, i) ? "| --: " : "| --- ", out);
	fputs("|\n", out);
	for (size_t r = 0; r < doc_n_rows(b); r++) {
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			fputs("| ", out);
			if (i == 0)
				sign(out, doc_tone(doc_row_at(b, r)));
			put(out, "%s ", doc_cell_shown(doc_row_at(b, r), i, buf));
		}
		fputs("|\n", out);
	}
	fputs(doc_n_rows(b) ? "" : "| nothing |\n", out);
	fputs(of_chart ? "\n</details>\n" : "", out);
}

/* --- the document --- */

static void one(FILE *out, const struct doc *d, size_t i)
{
	const json_t *b = doc_block(d, i);

	switch (doc_kind(b)) {
	case DOC_SECTION: put_any(out, "## %s\n", doc_str(b, "title")); break;
	case DOC_HEADING: put_any(out, "### %s\n", doc_str(b, "title")); break;
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
		put_any(out, "**%s**\n", doc_str(b, "title"));
		put_any(out, "\n%s\n", doc_str(b, "detail"));
		break;
	case DOC_END: break;
	}
}

/* Are neighbouring blocks of this kind written without an empty line between them? */
static bool is_grouped(enum doc_kind kind)
{
	return kind == DOC_ITEM || kind == DOC_BADGE || kind == DOC_ANSWER || kind == DOC_FILE;
}

int doc_write_markdown(const struct doc *d, FILE *out)
{
	put_any(out, "# %s\n", doc_str(doc_root(d), "title"));
	put_any(out, "\n%s\n", doc_str(doc_root(d), "lead"));
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
