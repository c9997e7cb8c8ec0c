/* A document as a page. See doc.h. All text is escaped; only charts are written as they are, since chart.c escaped their
 * labels. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <string.h>

#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define LONG_TEXT 40		/* bytes of a cell */
#define WIDE_COLUMNS 9		/* with more of them, a printed table has smaller letters */

struct page {
	const struct doc *d;
	FILE *out;
	size_t at;		/* the block that is being written */
	bool in_section;
};

static void escaped(struct page *p, const char *text)
{
	xml_write(p->out, text, SIZE_MAX);
}

/* `before`, the escaped text, `after`; nothing where there is no text. */
static void wrapped(struct page *p, const char *before, const char *text, const char *after)
{
	if (!*text)
		return;
	fputs(before, p->out);
	escaped(p, text);
	fputs(after, p->out);
}

/* A path as a link to a file below the page's folder: it never becomes a scheme or a query. */
static void as_path(struct page *p, const char *path)
{
	/* Two slashes would begin a host's name. */
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

static const char *tone_class(enum doc_tone tone)
{
	static const char *const classes[] = { "plain", "good", "warn", "bad" };

	return classes[tone];
}

/* Screen readers read the word instead of the sign. */
static void sign(struct page *p, enum doc_tone tone, const char *after)
{
	if (tone != DOC_PLAIN)
		fprintf(p->out, "<span class=\"sign\" role=\"img\" aria-label=\"%s\">%s</span>%s",
			doc_tone_word(tone), doc_tone_sign(tone), after);
}

/* --- blocks; each one ends its line --- */

/* The start tag of a block, with its anchor. */
static void begin(struct page *p, const json_t *b, const char *tag, const char *class)
{
	fprintf(p->out, "<%s", tag);
	if (doc_has(b, "id"))
		fprintf(p->out, " id=\"%s\"", doc_str(b, "id"));
	if (class)
		fprintf(p->out, " class=\"%s\"", class);
	putc('>', p->out);
}

static void paragraph(struct page *p, const json_t *b, const char *tag)
{
	begin(p, b, tag, NULL);
	escaped(p, doc_str(b, "text"));
	fprintf(p->out, "</%s>\n", tag);
}

static void answer(struct page *p, const json_t *b)
{
	static const char *const answer_classes[] = { "answer plain", "answer good", "answer warn", "answer bad" };
	enum doc_tone tone = doc_tone(b);

	begin(p, b, "div", answer_classes[tone]);
	wrapped(p, "<p class=\"question\">", doc_str(b, "title"), "</p>");
	fputs("<p class=\"value\">", p->out);
	sign(p, tone, "&#160;");
	wrapped(p, "", doc_str(b, "text"), "");
	fputs("</p>", p->out);
	wrapped(p, "<p class=\"detail\">", doc_str(b, "detail"), "</p>");
	fputs("</div>\n", p->out);
}

static void badge(struct page *p, const json_t *b)
{
	enum doc_tone tone = doc_tone(b);

	begin(p, b, "li", tone_class(tone));
	fputs("<strong>", p->out);
	sign(p, tone, "&#160;");
	wrapped(p, "", doc_str(b, "text"), "");
	fputs("</strong>", p->out);
	wrapped(p, " <span>", doc_str(b, "detail"), "</span>");
	fputs("</li>\n", p->out);
}

static void note(struct page *p, const json_t *b)
{
	static const char *const note_classes[] = { "note plain", "note good", "note warn", "note bad" };
	enum doc_tone tone = doc_tone(b);

	begin(p, b, "p", note_classes[tone]);
	if (tone != DOC_PLAIN)
		fprintf(p->out, "<strong><span aria-hidden=\"true\">%s</span> %s:</strong> ", doc_tone_sign(tone),
			doc_tone_word(tone));
	escaped(p, doc_str(b, "text"));
	fputs("</p>\n", p->out);
}

static void file(struct page *p, const json_t *b)
{
	fputs("<li><a href=\"", p->out);
	as_path(p, doc_str(b, "path"));
	wrapped(p, "\"><code>", doc_str(b, "path"), "</code></a>");
	wrapped(p, " <span>", doc_str(b, "text"), "</span>");
	fputs("</li>\n", p->out);
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
	fprintf(p->out, "<section id=\"%s\" aria-labelledby=\"%s.h\">\n<h2 id=\"%s.h\"><span class=\"no\">%d</span> ",
		doc_str(b, "id"), doc_str(b, "id"), doc_str(b, "id"),
		(int)json_integer_value(json_object_get(b, "number")));
	escaped(p, doc_str(b, "title"));
	fputs("</h2>\n", p->out);
	p->in_section = true;
}

static void chart(struct page *p, const json_t *b)
{
	const char *id = doc_str(b, "id"), *svg = doc_str(b, "svg"), *tag_end = strchr(svg, '>');

	fprintf(p->out, "<figure id=\"%s\">\n", id);
	wrapped(p, "<figcaption>", doc_str(b, "title"), "</figcaption>\n");
	if (strncmp(svg, "<svg", 4) != 0 || !tag_end) {
		fputs("<p class=\"note warn\"><strong><span aria-hidden=\"true\">!</span> This chart has nothing "
		      "to show.</strong> ", p->out);
		wrapped(p, "", doc_str(b, "detail"), "");
		fputs("</p>\n</figure>\n", p->out);
		return;
	}
	fprintf(p->out, "<svg role=\"img\" aria-labelledby=\"%s.t %s.d\"%.*s>", id, id, (int)(tag_end - svg - 4),
		svg + 4);
	fprintf(p->out, "<title id=\"%s.t\">", id);
	escaped(p, doc_str(b, "title"));
	fprintf(p->out, "</title><desc id=\"%s.d\">", id);
	escaped(p, doc_str(b, "detail"));
	fprintf(p->out, "</desc>%s</figure>\n", tag_end + 1);
}

/* --- tables --- */

static void table_head(struct page *p, const json_t *b)
{
	fputs("<thead><tr>", p->out);
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		const json_t *column = doc_column_at(b, i);

		fprintf(p->out, "<th scope=\"col\"%s>", doc_column_is_number(b, i) ? " class=\"n\"" : "");
		escaped(p, doc_str(column, "title"));
		wrapped(p, " <span class=\"unit\">", doc_str(column, "unit"), "</span>");
		fputs("</th>", p->out);
	}
	fputs("</tr></thead>\n<tbody>\n", p->out);
}

/* A column of long texts has a least width: on a phone it would become a column of single words. */
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

	fprintf(p->out, "<tr class=\"%s\">", tone_class(tone));
	for (size_t i = 0; i < doc_n_columns(b); i++) {
		const char *text = doc_cell_shown(row, i, buf);

		fprintf(p->out, "<%s%s>", i == 0 ? "th scope=\"row\"" : "td", cell_class(b, i, text));
		if (i == 0)
			sign(p, tone, "");
		escaped(p, text);
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
	/* A scrolled element must be reachable by keyboard, and an element that is needs a name. */
	fputs("<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"", p->out);
	escaped(p, *title ? title : "Table");
	fprintf(p->out, "\">\n<table class=\"%s%s\">\n", doc_n_columns(b) > WIDE_COLUMNS ? "wide" : "narrow",
		json_is_true(json_object_get(b, "toned")) ? " toned" : "");
	wrapped(p, "<caption>", title, "</caption>\n");
	table_head(p, b);
	for (size_t i = 0; i < doc_n_rows(b); i++)
		table_row(p, b, doc_row_at(b, i));
	if (doc_n_rows(b) == 0)
		fprintf(p->out, "<tr><td colspan=\"%zu\" class=\"none\">nothing</td></tr>\n", doc_n_columns(b));
	fputs("</tbody>\n</table>\n</div>\n", p->out);
	if (of_chart)
		fputs("</details>\n", p->out);
}

/* --- the page --- */

static void one(struct page *p, const json_t *b)
{
	switch (doc_kind(b)) {
	case DOC_SECTION: section(p, b); break;
	case DOC_HEADING: wrapped(p, "<h3>", doc_str(b, "title"), "</h3>\n"); break;
	case DOC_TEXT: paragraph(p, b, "p"); break;
	case DOC_NOTE: note(p, b); break;
	case DOC_ITEM: paragraph(p, b, "li"); break;
	case DOC_BADGE: badge(p, b); break;
	case DOC_ANSWER: answer(p, b); break;
	case DOC_CODE: wrapped(p, "<pre tabindex=\"0\"><code>", doc_str(b, "text"), "</code></pre>\n"); break;
	case DOC_FILE: file(p, b); break;
	case DOC_TABLE: table(p, b); break;
	case DOC_CHART: chart(p, b); break;
	case DOC_END: break;
	}
}

/* The tag before or after neighbouring blocks of a kind; "" for a kind that has none. */
static const char *group(enum doc_kind kind, bool begin)
{
	switch (kind) {
	case DOC_ITEM: return begin ? "<ul>\n" : "</ul>\n";
	case DOC_FILE: return begin ? "<ul class=\"files\">\n" : "</ul>\n";
	case DOC_BADGE: return begin ? "<ul class=\"badges\">\n" : "</ul>\n";
	case DOC_ANSWER: return begin ? "<div class=\"answers\">\n" : "</div>\n";
	case DOC_SECTION: case DOC_HEADING: case DOC_TEXT: case DOC_NOTE: case DOC_CODE: case DOC_TABLE: case DOC_CHART:
	case DOC_END: break;
	}
	return "";
}

/* Writes the blocks from `at` to the first section, or to the end. */
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
		fprintf(p->out, "<li><a href=\"#%s\">", doc_str(b, "id"));
		escaped(p, doc_str(b, "title"));
		fputs("</a></li>\n", p->out);
	}
	if (any)
		fputs("</ol></nav>\n", p->out);
}

static void head(struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" "
	      "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
	      "<title>", p->out);
	escaped(p, doc_title(p->d));
	fputs("</title>\n<style>\n", p->out);
	style_write(p->out);
	fputs("</style>\n</head>\n<body>\n", p->out);
}

int doc_write_html(const struct doc *d, FILE *out)
{
	struct page p = { .d = d, .out = out };

	head(&p);
	fputs("<header>\n", out);
	wrapped(&p, "<h1>", doc_title(d), "</h1>\n");
	wrapped(&p, "<p>", doc_lead(d) ? doc_lead(d) : "", "</p>\n");
	fputs("</header>\n<main>\n<div class=\"intro\">\n", out);
	blocks(&p, true);
	fputs("</div>\n", out);
	contents(&p);
	fputs("<div class=\"sections\">\n", out);
	blocks(&p, false);
	fputs("</div>\n</main>\n</body>\n</html>\n", out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
