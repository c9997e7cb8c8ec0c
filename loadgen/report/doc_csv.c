/* A document's tables as CSV. See doc.h. */
#include "loadgen/report/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/paths.h"

#define TITLE_MAX 256

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

static int write_file(const char *dir, const json_t *b)
{
	char *path;
	FILE *out;
	int ret = 0;

	if (asprintf(&path, "%s/%s.csv", dir, doc_str(b, "name")) < 0)
		return -ENOMEM;
	out = fopen(path, "we");
	if (!out) {
		ret = -errno;
		goto err_path;
	}
	write_table(out, b);
	if (ferror(out))
		ret = -EIO;
	if (fclose(out) && !ret)
		ret = -errno;
err_path:
	free(path);
	return ret;
}

int doc_write_csv(const struct doc *d, const char *dir)
{
	int ret = path_make_dirs(dir);

	for (size_t i = 0; i < doc_n_blocks(d) && !ret; i++)
		if (doc_kind(doc_block(d, i)) == DOC_TABLE && doc_n_columns(doc_block(d, i)))
			ret = write_file(dir, doc_block(d, i));
	return ret;
}
