/* What of a document goes into files of its own: tables as CSV, charts as SVG. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "loadgen/report/chart/style.h"
#include "loadgen/report/chart/xml.h"

typedef void write_fn(FILE *out, const json_t *block);

/* With the colours that it has from the page there. */
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
			ret = write_block(dir, doc_str(b, "name"), "csv", doc_csv_table, b);
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
