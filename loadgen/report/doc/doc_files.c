/* Tables and charts of a document as files: CSV and SVG. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256

typedef void write_fn(FILE *out, const json_t *block);

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

static void write_table(FILE *out, const json_t *b)
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

/* A chart alone needs the colours that the page would give it. */
static void write_chart(FILE *out, const json_t *b)
{
	const char *svg = doc_str(b, "svg"), *attributes = svg + strlen("<svg"), *end = strchr(svg, '>');

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"%.*s>\n<title>", (int)(end - attributes),
		attributes);
	xml_write(out, doc_str(b, "title"), SIZE_MAX);
	fputs("</title>\n<desc>", out);
	xml_write(out, doc_str(b, "detail"), SIZE_MAX);
	fputs("</desc>\n<style>.chart{" STYLE_LIGHT "background:var(--page)}\n@media (prefers-color-scheme:dark){.chart{"
	      STYLE_DARK "}}\n" STYLE_CHART "</style>", out);
	fputs(end + 1, out);
}

static int write_file(const char *path, write_fn *write, const json_t *b)
{
	FILE *out = fopen(path, "we");
	int ret = 0;

	if (!out)
		return -errno;
	write(out, b);
	if (ferror(out) || ftell(out) == 0)
		ret = -EIO;
	if (fclose(out) && !ret)
		ret = -errno;
	return ret;
}

static int write_block(const char *dir, const char *name, const char *ending, write_fn *write, const json_t *b)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s.%s", dir, name, ending) < 0)
		return -ENOMEM;
	ret = write_file(path, write, b);
	free(path);
	return ret;
}

int doc_write_csv(const struct doc *d, const char *dir)
{
	int ret = path_make_dirs(dir);

	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		const json_t *b = doc_block(d, i);

		if (doc_kind(b) == DOC_TABLE && doc_n_columns(b))
			ret = write_block(dir, doc_str(b, "name"), "csv", write_table, b);
	}
	return ret;
}

int doc_write_charts(const struct doc *d, const char *dir)
{
	int ret = path_make_dirs(dir);

	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		const json_t *b = doc_block(d, i);

		if (doc_kind(b) == DOC_CHART && doc_has(b, "svg"))
			ret = write_block(dir, doc_str(b, "id"), "svg", write_chart, b);
	}
	return ret;
}
