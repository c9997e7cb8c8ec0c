/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of a document, for the files that write it (doc_html.c, doc_text.c, doc_files.c). Every text in it is
 * valid UTF-8 without control characters. */
#ifndef RAMPART_LOADGEN_REPORT_DOC_INTERNAL_H
#define RAMPART_LOADGEN_REPORT_DOC_INTERNAL_H

#include "loadgen/report/doc/doc.h"

#include <stddef.h>

/* A block is a JSON object with "kind", "tone", "id" if it has one, and the members named here, which are texts unless
 * noted. */
enum doc_kind {
	DOC_SECTION,		/* id, title, number (integer) */
	DOC_HEADING,		/* title */
	DOC_TEXT,		/* text */
	DOC_NOTE,		/* text */
	DOC_ITEM,		/* text */
	DOC_BADGE,		/* text, detail */
	DOC_ANSWER,		/* title, text, detail */
	DOC_CODE,		/* text, with newlines and tabs */
	DOC_PICTURE,		/* the same; not in HTML, which has charts */
	DOC_FILE,		/* path, text; or to (a section's id), text */
	DOC_TABLE,		/* name, title, toned (bool), columns: [{title, unit, number (bool)}],
				 * rows: [{tone, cells: [text, or [number or null, decimals], or {text, to: a section's
				 * id}]}] */
	DOC_CHART,		/* id, title, svg, detail */
	DOC_END,		/* there is no block */
};

const json_t *doc_root(const struct doc *d);	/* title, lead */
size_t doc_n_blocks(const struct doc *d);
const json_t *doc_block(const struct doc *d, size_t i);	/* NULL after the last */
enum doc_kind doc_kind(const json_t *block);		/* DOC_END for NULL */
enum doc_tone doc_tone(const json_t *block_or_row);
/* The text of a key, "" if the block has none. doc_has: it has one that is not empty. */
const char *doc_str(const json_t *block, const char *key);
bool doc_has(const json_t *block, const char *key);

size_t doc_n_columns(const json_t *table);
const json_t *doc_column_at(const json_t *table, size_t column);
bool doc_column_is_number(const json_t *table, size_t column);
/* The column's title, with its unit in brackets if it has one, cut to `size`. */
void doc_column_title(const json_t *table, size_t column, char *out, size_t size);
size_t doc_n_rows(const json_t *table);
const json_t *doc_row_at(const json_t *table, size_t row);
/* A cell as it is shown; "" if the row is too short. A number is written to `buf`. */
const char *doc_cell_shown(const json_t *row, size_t column, char buf[DOC_NUMBER_MAX]);
/* The id of the section that a cell links to; "" if it has no link. */
const char *doc_cell_to(const json_t *row, size_t column);
/* A cell for CSV: numbers with 9 digits. */
const char *doc_cell_exact(const json_t *row, size_t column, char buf[DOC_NUMBER_MAX]);

/* True if this table has the numbers of the chart right before it. */
bool doc_table_is_of_chart(const struct doc *d, size_t i);

#endif
