/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a document as an HTML page. See doc.h. All text is escaped here, except in charts, whose labels chart.c has
 * escaped. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define LONG_TEXT 40		/* bytes of a cell */
#define WIDE_COLUMNS 9		/* with more of them, a printed table has smaller letters */

struct page {
	const struct doc *d;
	FILE *out;
	size_t at;		/* index of the block being written */
	bool in_section;
};

static const struct { const char *class, *sign, *word; } tones[] = {
	[DOC_PLAIN] = { "plain", "", "" },
	[DOC_GOOD] = { "good", "\xe2\x9c\x93", "Good" },
	[DOC_WARN] = { "warn", "!", "Caution" },
	[DOC_BAD] = { "bad", "\xe2\x9c\x97", "Problem" },
};

/* Like fprintf, but with each text escaped; %s is the only conversion allowed. */
static void __attribute__((format(printf, 2, 3))) html_put(struct page *p, const char *form, ...)
{
	va_list ap;

	va_start(ap, form);
	for (const char *end; (end = strstr(form, "%s")); form = end + 2) {
		fwrite(form, 1, (size_t)(end - form), p->out);
		xml_write(p->out, va_arg(ap, const char *), SIZE_MAX);
	}
	fputs(form, p->out);
	va_end(ap);
}

/* The same with one text; writes nothing if it is empty. */
static void __attribute__((format(printf, 2, 0))) put_any(struct page *p, const char *form, const char *text)
{
	if (*text)
		html_put(p, form, text);
}

/* Writes a path as a link to a file, encoded so that no part of it can act as a scheme or a query. */
static void as_path(struct page *p, const char *path)
{
	/* A path that begins with two slashes would be a host's name. */
	if (path[0] != '/' || path[1] == '/')
		fputs("./", p->out);
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("-_.~/", c))
			putc(c, p->out);
		else
			fprintf(p->out, "%%%02X", c);
	}
}

/* Screen readers read the word instead of the sign. */
static void sign(struct page *p, enum doc_tone tone, const char *after)
{
	if (tone != DOC_PLAIN)
		fprintf(p->out, "<span class=\"sign\" role=\"img\" aria-label=\"%s\">%s</span>%s", tones[tone].word,
			tones[tone].sign, after);
}

/* Writes the start tag of a block, with its anchor. `class` is followed by the tone's class; NULL: no classes. */
static void html_begin(struct page *p, const json_t *b, const char *tag, const char *class)
{
	fprintf(p->out, "<%s", tag);
	put_any(p, " id=\"%s\"", doc_str(b, "id"));
	if (class)
		fprintf(p->out, " class=\"%s%s\"", class, tones[doc_tone(b)].class);
	putc('>', p->out);
}

static void paragraph(struct page *p, const json_t *b, const char *tag)
{
	html_begin(p, b, tag, NULL);
	html_put(p, "%s</", doc_str(b, "text"));
	html_put(p, "%s>\n", tag);
}

static void answer(struct page *p, const json_t *b)
{
	html_begin(p, b, "div", "answer ");
	put_any(p, "<p class=\"question\">%s</p>", doc_str(b, "title"));
	html_put(p, "<p class=\"value\">");
	sign(p, doc_tone(b), "&#160;");
	html_put(p, "%s</p>", doc_str(b, "text"));
	put_any(p, "<p class=\"detail\">%s</p>", doc_str(b, "detail"));
	html_put(p, "</div>\n");
}

static void badge(struct page *p, const json_t *b)
{
	html_begin(p, b, "li", "");
	html_put(p, "<strong>");
	sign(p, doc_tone(b), "&#160;");
	html_put(p, "%s</strong>", doc_str(b, "text"));
	put_any(p, " <span>%s</span>", doc_str(b, "detail"));
	html_put(p, "</li>\n");
}

static void note(struct page *p, const json_t *b)
{
	enum doc_tone tone = doc_tone(b);

	html_begin(p, b, "p", "note ");
	if (tone != DOC_PLAIN)
		html_put(p, "<strong><span aria-hidden=\"true\">%s</span> %s:</strong> ", tones[tone].sign,
			 tones[tone].word);
	html_put(p, "%s</p>\n", doc_str(b, "text"));
}

static void file(struct page *p, const json_t *b)
{
	if (doc_has(b, "to")) {
		html_put(p, "<li><a href=\"#%s\">%s</a></li>\n", doc_str(b, "to"), doc_str(b, "text"));
		return;
	}
	html_put(p, "<li><a href=\"");
	as_path(p, doc_str(b, "path"));
	html_put(p, "\"><code>%s</code></a>", doc_str(b, "path"));
	put_any(p, " <span>%s</span>", doc_str(b, "text"));
	html_put(p, "</li>\n");
}

static void section_end(struct page *p)
{
	if (p->in_section)
		fputs("</section>\n", p->out);
	p->in_section = false;
}

static void section(struct page *p, const json_t *b)
{
	section_end(p);
	html_put(p, "<section id=\"%s\" aria-labelledby=\"%s.h\">\n<h2 id=\"%s.h\"><span class=\"no\">",
		 doc_str(b, "id"),
	    doc_str(b, "id"), doc_str(b, "id"));
	fprintf(p->out, "%d", (int)json_integer_value(json_object_get(b, "number")));
	html_put(p, "</span> %s</h2>\n", doc_str(b, "title"));
	p->in_section = true;
}

static void chart(struct page *p, const json_t *b)
{
	const char *id = doc_str(b, "id"), *title = doc_str(b, "title"), *detail = doc_str(b, "detail");
	const char *svg = doc_str(b, "svg"), *tag_end = strchr(svg, '>');

	html_put(p, "<figure id=\"%s\">\n", id);
	put_any(p, "<figcaption>%s</figcaption>\n", title);
	if (strncmp(svg, "<svg", 4) != 0 || !tag_end) {
		html_put(p, "<p class=\"note warn\"><strong><span aria-hidden=\"true\">!</span> This chart has nothing "
		    "to show.</strong> %s</p>\n</figure>\n", detail);
		return;
	}
	html_put(p, "<svg role=\"img\" aria-labelledby=\"%s.t %s.d\"", id, id);
	fprintf(p->out, "%.*s>", (int)(tag_end - svg - 4), svg + 4);
	html_put(p, "<title id=\"%s.t\">%s</title><desc id=\"%s.d\">%s</desc>", id, title, id, detail);
	fprintf(p->out, "%s</figure>\n", tag_end + 1);
}

static void table_head(struct page *p, const json_t *b)
{
	fputs("<thead><tr>", p->out);
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		const json_t *column = doc_column_at(b, i);

		fprintf(p->out, "<th scope=\"col\"%s>", doc_column_is_number(b, i) ? " class=\"n\"" : "");
		html_put(p, "%s", doc_str(column, "title"));
		put_any(p, " <span class=\"unit\">%s</span>", doc_str(column, "unit"));
		html_put(p, "</th>");
	}
	fputs("</tr></thead>\n<tbody>\n", p->out);
}

/* Cells with long texts have a minimum width; on a phone they would otherwise be one word wide. */
static const char *cell_class(const json_t *b, size_t column, const char *text)
{
	if (doc_column_is_number(b, column))
		return " class=\"n\"";
	return strlen(text) > LONG_TEXT ? " class=\"l\"" : "";
}

static void table_row(struct page *p, const json_t *b, const json_t *row)
{
	enum doc_tone tone = doc_tone(row);
	char buf[DOC_NUMBER_MAX];

	html_put(p, "<tr class=\"%s\">", tones[tone].class);
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		const char *text = doc_cell_shown(row, i, buf);

		fprintf(p->out, "<%s%s>", i == 0 ? "th scope=\"row\"" : "td", cell_class(b, i, text));
		if (i == 0)
			sign(p, tone, "");
		put_any(p, "<a href=\"#%s\">", doc_cell_to(row, i));
		html_put(p, "%s", text);
		fputs(*doc_cell_to(row, i) ? "</a>" : "", p->out);
		fputs(i == 0 ? "</th>" : "</td>", p->out);
	}
	fputs("</tr>\n", p->out);
}

static void table(struct page *p, const json_t *b)
{
	bool of_chart = doc_table_is_of_chart(p->d, p->at);
	const char *title = doc_str(b, "title");

	if (doc_n_columns(b) == 0)
		return;
	if (of_chart)
		fputs("<details><summary>Numbers</summary>\n", p->out);
	/* A scrolled element must be reachable by keyboard, and a reachable element needs a name. */
	html_put(p, "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"%s\">\n<table class=\"%s%s\">\n",
	    *title ? title : "Table", doc_n_columns(b) > WIDE_COLUMNS ? "wide" : "narrow",
	    json_is_true(json_object_get(b, "toned")) ? " toned" : "");
	put_any(p, "<caption>%s</caption>\n", title);
	table_head(p, b);
	for (size_t i = 0; i < doc_n_rows(b); i++)
		table_row(p, b, doc_row_at(b, i));
	if (doc_n_rows(b) == 0)
		fprintf(p->out, "<tr><td colspan=\"%zu\" class=\"none\">nothing</td></tr>\n", doc_n_columns(b));
	fputs("</tbody>\n</table>\n</div>\n", p->out);
	if (of_chart)
		fputs("</details>\n", p->out);
}

static void one(struct page *p, const json_t *b)
{
	switch (doc_kind(b)) {
	case DOC_SECTION: section(p, b); break;
	case DOC_HEADING: put_any(p, "<h3>%s</h3>\n", doc_str(b, "title")); break;
	case DOC_TEXT: paragraph(p, b, "p"); break;
	case DOC_NOTE: note(p, b); break;
	case DOC_ITEM: paragraph(p, b, "li"); break;
	case DOC_BADGE: badge(p, b); break;
	case DOC_ANSWER: answer(p, b); break;
	case DOC_CODE: put_any(p, "<pre tabindex=\"0\"><code>%s</code></pre>\n", doc_str(b, "text")); break;
	case DOC_FILE: file(p, b); break;
	case DOC_TABLE: table(p, b); break;
	case DOC_CHART: chart(p, b); break;
	case DOC_PICTURE: case DOC_END: break;
	}
}

/* The tag that begins or ends a group of neighbouring blocks of a kind; "" if the kind has no groups. */
static const char *group(enum doc_kind kind, bool begin)
{
	switch (kind) {
	case DOC_ITEM: return begin ? "<ul>\n" : "</ul>\n";
	case DOC_FILE: return begin ? "<ul class=\"files\">\n" : "</ul>\n";
	case DOC_BADGE: return begin ? "<ul class=\"badges\">\n" : "</ul>\n";
	case DOC_ANSWER: return begin ? "<div class=\"answers\">\n" : "</div>\n";
	case DOC_SECTION: case DOC_HEADING: case DOC_TEXT: case DOC_NOTE: case DOC_CODE: case DOC_PICTURE:
	case DOC_TABLE: case DOC_CHART: case DOC_END: break;
	}
	return "";
}

/* Writes the blocks from `at` on, up to the first section if `to_section`, else all of them. */
static void blocks(struct page *p, bool to_section)
{
	for (; p->at < doc_n_blocks(p->d); p->at++) {
		const json_t *b = doc_block(p->d, p->at);
		enum doc_kind kind = doc_kind(b);

		if (to_section && kind == DOC_SECTION)
			return;
		if (p->at == 0 || doc_kind(doc_block(p->d, p->at - 1)) != kind)
			fputs(group(kind, true), p->out);
		one(p, b);
		if (doc_kind(doc_block(p->d, p->at + 1)) != kind)
			fputs(group(kind, false), p->out);
	}
	section_end(p);
}

static void contents(struct page *p)
{
	bool any = false;

	for (size_t i = 0; i < doc_n_blocks(p->d); i++) {
		const json_t *b = doc_block(p->d, i);

		if (doc_kind(b) != DOC_SECTION)
			continue;
		if (!any)
			fputs("<nav aria-label=\"Contents\"><ol>\n", p->out);
		any = true;
		html_put(p, "<li><a href=\"#%s\">%s</a></li>\n", doc_str(b, "id"), doc_str(b, "title"));
	}
	if (any)
		fputs("</ol></nav>\n", p->out);
}

static void head(struct page *p)
{
	html_put(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" "
	    "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
	    "<title>%s</title>\n<style>\n", doc_str(doc_root(p->d), "title"));
	style_write(p->out);
	fputs("</style>\n</head>\n<body>\n", p->out);
}

int doc_write_html(const struct doc *d, FILE *out)
{
	struct page p = { .d = d, .out = out };

	head(&p);
	fputs("<header>\n", out);
	put_any(&p, "<h1>%s</h1>\n", doc_str(doc_root(d), "title"));
	put_any(&p, "<p>%s</p>\n", doc_str(doc_root(d), "lead"));
	fputs("</header>\n<main>\n<div class=\"intro\">\n", out);
	blocks(&p, true);
	fputs("</div>\n", out);
	contents(&p);
	fputs("<div class=\"sections\">\n", out);
	blocks(&p, false);
	fputs("</div>\n</main>\n</body>\n</html>\n", out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
