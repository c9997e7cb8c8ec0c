/* What of a document goes into files of its own: tables as CSV, charts as SVG. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/paths.h"
#include "loadgen/report/chart/chart.h"

typedef void write_fn(FILE *out, const json_t *block);

static void write_chart(FILE *out, const json_t *b)
{
	char *text = chart_standalone(doc_str(b, "svg"), doc_str(b, "title"), doc_str(b, "detail"));

	/* Nothing is written then, which write_file notices. */
	if (text)
		fputs(text, out);
	free(text);
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
