/* The files of a document. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256

struct files {
	const struct doc *d;
	const json_t *block;		/* that the file is of; NULL: it is of the whole document */
	const char *dir;
	char *err;
	size_t err_size;
};

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

static int write_table(FILE *out, const void *files)
{
	const json_t *b = ((const struct files *)files)->block;
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
	return 0;
}

/* A chart alone needs the colours that the page would give it. */
static int write_chart(FILE *out, const void *files)
{
	const json_t *b = ((const struct files *)files)->block;
	const char *svg = doc_str(b, "svg"), *attributes = svg + strlen("<svg"), *end = strchr(svg, '>');

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"%.*s>\n<title>", (int)(end - attributes),
		attributes);
	xml_write(out, doc_str(b, "title"), SIZE_MAX);
	fputs("</title>\n<desc>", out);
	xml_write(out, doc_str(b, "detail"), SIZE_MAX);
	fputs("</desc>\n<style>.chart{" STYLE_LIGHT "background:var(--page)}\n@media (prefers-color-scheme:dark){.chart{"
	      STYLE_DARK "}}\n" STYLE_CHART "</style>", out);
	fputs(end + 1, out);
	return 0;
}

static int write_html(FILE *out, const void *files)
{
	return doc_write_html(((const struct files *)files)->d, out);
}

static int write_markdown(FILE *out, const void *files)
{
	return doc_write_markdown(((const struct files *)files)->d, out);
}

static int write_file(const struct files *f, path_write_fn *write, const char *folder, const char *name,
		      const char *ending)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s%s/%s%s", f->dir, folder, name, ending) < 0)
		return -ENOMEM;
	ret = path_write(path, write, f);
	if (ret)
		snprintf(f->err, f->err_size, "cannot write %s: %s; name another folder with --output", path,
			 strerror(-ret));
	free(path);
	return ret;
}

static int make_folder(const struct files *f, const char *folder)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s%s", f->dir, folder) < 0)
		return -ENOMEM;
	ret = path_make_dirs(path);
	if (ret)
		snprintf(f->err, f->err_size, "cannot make %s: %s", path, strerror(-ret));
	free(path);
	return ret;
}

int doc_write_files(const struct doc *d, const char *dir, char *err, size_t err_size)
{
	struct files f = { .d = d, .dir = dir, .err = err, .err_size = err_size };
	int ret = make_folder(&f, "/tables");

	if (!ret)
		ret = make_folder(&f, "/charts");
	if (!ret)
		ret = write_file(&f, write_html, "", "report.html", "");
	if (!ret)
		ret = write_file(&f, write_markdown, "", "report.md", "");
	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		const json_t *b = f.block = doc_block(d, i);

		if (doc_kind(b) == DOC_TABLE && doc_n_columns(b))
			ret = write_file(&f, write_table, "/tables", doc_str(b, "name"), ".csv");
		else if (doc_kind(b) == DOC_CHART && doc_has(b, "svg"))
			ret = write_file(&f, write_chart, "/charts", doc_str(b, "id"), ".svg");
	}
	return ret;
}
