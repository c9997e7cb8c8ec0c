/* The files of a document. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/base/paths.h"
#include "loadgen/report/doc/style.h"
#include "loadgen/report/chart/xml.h"

#define TITLE_MAX 256

struct files {
	const struct doc *d;
	const char *dir;
	char *err;
	size_t err_size;
};

/* Writes the document, or the block. 0 or -errno; the caller looks at ferror, too. */
typedef int write_fn(FILE *out, const struct doc *d, const json_t *block);

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

static int write_table(FILE *out, const struct doc *d, const json_t *b)
{
	char title[TITLE_MAX], buf[DOC_NUMBER_MAX];

	(void)d;
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
static int write_chart(FILE *out, const struct doc *d, const json_t *b)
{
	const char *svg = doc_str(b, "svg"), *attributes = svg + strlen("<svg"), *end = strchr(svg, '>');

	(void)d;
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

static int write_html(FILE *out, const struct doc *d, const json_t *b)
{
	(void)b;
	return doc_write_html(d, out);
}

static int write_markdown(FILE *out, const struct doc *d, const json_t *b)
{
	(void)b;
	return doc_write_markdown(d, out);
}

/* A file has another name until it is complete, so that a report is never half of one. */
static int write_complete(const struct files *f, const json_t *b, write_fn *write, const char *path)
{
	char temporary[PATH_MAX];
	FILE *out;
	int ret;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	out = fopen(temporary, "we");
	if (!out)
		return -errno;
	ret = write(out, f->d, b);
	if (ferror(out) && !ret)
		ret = -EIO;
	if (fclose(out) && !ret)
		ret = -errno;
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
	return ret;
}

static int write_file(const struct files *f, const json_t *b, write_fn *write, const char *folder, const char *name,
		      const char *ending)
{
	char path[PATH_MAX];
	int ret = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s%s/%s%s", f->dir, folder, name, ending) < (int)sizeof(path))
		ret = write_complete(f, b, write, path);
	if (ret)
		snprintf(f->err, f->err_size, "cannot write %s%s/%s%s: %s; name another folder with --output", f->dir,
			 folder, name, ending, strerror(-ret));
	return ret;
}

static int make_folder(const struct files *f, const char *folder)
{
	char path[PATH_MAX];
	int ret = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s%s", f->dir, folder) < (int)sizeof(path))
		ret = path_make_dirs(path);
	if (ret)
		snprintf(f->err, f->err_size, "cannot make %s%s: %s", f->dir, folder, strerror(-ret));
	return ret;
}

int doc_write_files(const struct doc *d, const char *dir, char *err, size_t err_size)
{
	const struct files f = { .d = d, .dir = dir, .err = err, .err_size = err_size };
	int ret = make_folder(&f, "/tables");

	if (!ret)
		ret = make_folder(&f, "/charts");
	if (!ret)
		ret = write_file(&f, NULL, write_html, "", "report.html", "");
	if (!ret)
		ret = write_file(&f, NULL, write_markdown, "", "report.md", "");
	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++) {
		const json_t *b = doc_block(d, i);

		if (doc_kind(b) == DOC_TABLE && doc_n_columns(b))
			ret = write_file(&f, b, write_table, "/tables", doc_str(b, "name"), ".csv");
		else if (doc_kind(b) == DOC_CHART && doc_has(b, "svg"))
			ret = write_file(&f, b, write_chart, "/charts", doc_str(b, "id"), ".svg");
	}
	return ret;
}
