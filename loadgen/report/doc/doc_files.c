/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a document. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/paths.h"
#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256

struct files {
	const struct doc *d;
	const json_t *block;		/* the table or chart being written; NULL: the whole document is */
	const char *dir;
	int top, tables, charts;	/* descriptors of `dir` and of the folders in it; -1: not open */
	char *err;
	size_t err_size;
};

/* Would a spreadsheet take the text for a formula? */
static bool is_formula(const char *text)
{
	return *text && (strchr("=+@", *text) || (*text == '-' && text[1 + strspn(text + 1, "0123456789.,% ")]));
}

/* Writes a field, quoted where RFC 4180 demands it. An apostrophe before a formula turns it into a text. */
static void csv_field(FILE *out, const char *text, bool number, bool first)
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
		csv_field(out, title, false, i == 0);
	}
	fputs("\r\n", out);
	for (size_t r = 0; r < doc_n_rows(b); r++) {
		for (size_t i = 0; i < doc_n_columns(b); i++) {
			const char *text = doc_cell_exact(doc_row_at(b, r), i, buf);

			csv_field(out, text, text == buf, i == 0);
		}
		fputs("\r\n", out);
	}
	return 0;
}

/* A stand-alone chart must contain the colours that the page would give it. */
static int write_chart(FILE *out, const void *files)
{
	const json_t *b = ((const struct files *)files)->block;
	const char *svg = doc_str(b, "svg"), *attributes = svg + strlen("<svg"), *end = strchr(svg, '>');

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"%.*s>\n<title>", (int)(end - attributes),
		attributes);
	xml_write(out, doc_str(b, "title"), SIZE_MAX);
	fputs("</title>\n<desc>", out);
	xml_write(out, doc_str(b, "detail"), SIZE_MAX);
	fputs("</desc>\n<style>.chart{" STYLE_LIGHT "background:var(--page)}\n@media "
						    "(prefers-color-scheme:dark){.chart{"
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

/* Writes a file in the open folder `in`; `folder` is its path below `dir`, for messages. */
static int write_file(const struct files *f, path_write_fn *write, int in, const char *folder, const char *name,
		      const char *ending)
{
	char file[NAME_MAX + 1];
	int ret = snprintf(file, sizeof(file), "%s%s", name, ending) < (int)sizeof(file) ?
		  path_write_in(in, file, write, f) : -ENAMETOOLONG;

	if (ret)
		snprintf(f->err, f->err_size, "cannot write %s/%s%s: %s; name another folder with --output", f->dir,
			 folder, file, path_error(ret));
	return ret;
}

static int make_folder(const struct files *f, const char *name, int *out)
{
	*out = f->top < 0 ? f->top : path_make_folder(f->top, name);
	if (*out >= 0)
		return 0;
	snprintf(f->err, f->err_size, "cannot make %s/%s/: %s; name another folder with --output", f->dir, name,
		 path_error(*out));
	return *out;
}

static int open_folders(struct files *f)
{
	int ret = path_make_dirs(f->dir);

	f->top = ret ? ret : path_open_folder(f->dir);
	ret = make_folder(f, "tables", &f->tables);
	return ret ? ret : make_folder(f, "charts", &f->charts);
}

static void close_folders(const struct files *f)
{
	const int open[] = { f->top, f->tables, f->charts };

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (open[i] >= 0)
			close(open[i]);
}

static int write_blocks(struct files *f)
{
	int ret = 0;

	for (size_t i = 0; i < doc_n_blocks(f->d) && !ret; i++) {
		const json_t *b = f->block = doc_block(f->d, i);

		if (doc_kind(b) == DOC_TABLE && doc_n_columns(b))
			ret = write_file(f, write_table, f->tables, "tables/", doc_str(b, "name"), ".csv");
		else if (doc_kind(b) == DOC_CHART && doc_has(b, "svg"))
			ret = write_file(f, write_chart, f->charts, "charts/", doc_str(b, "id"), ".svg");
	}
	return ret;
}

int doc_write_files(const struct doc *d, const char *dir, char *err, size_t err_size)
{
	struct files f = { .d = d, .dir = dir, .top = -1, .tables = -1, .charts = -1, .err = err,
			   .err_size = err_size };
	int ret = open_folders(&f);

	if (!ret)
		ret = write_file(&f, write_html, f.top, "", "report.html", "");
	if (!ret)
		ret = write_file(&f, write_markdown, f.top, "", "report.md", "");
	if (!ret)
		ret = write_blocks(&f);
	close_folders(&f);
	return ret;
}
