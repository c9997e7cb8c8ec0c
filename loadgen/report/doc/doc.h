/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as a list of blocks, which is built once and written as a page, as Markdown, as text and as files. Building
 * does no I/O; owning thread: main. Each block is added at the end. Callers do not check each call for lack of memory,
 * but doc_failed once at the end. Texts are plain UTF-8 without markup: each output form escapes what it must. */
#ifndef RAMPART_LOADGEN_REPORT_DOC_H
#define RAMPART_LOADGEN_REPORT_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

struct doc;
struct doc_table;

enum doc_tone { DOC_PLAIN, DOC_GOOD, DOC_WARN, DOC_BAD };

/* `title` is the document's heading, `lead` the line below it. Returns 0 or -ENOMEM. */
int doc_new(const char *title, const char *lead, struct doc **out) __attribute__((warn_unused_result));
void doc_free(struct doc *d);	/* NULL-safe */
bool doc_failed(const struct doc *d);

/* Begins a section, numbered from 1; `id` is its anchor (letters, digits, '-'). */
void doc_section(struct doc *d, const char *id, const char *title);
void doc_heading(struct doc *d, const char *title);	/* a heading within a section */
/* The `id` of a block is its anchor (NULL: none). It stays the same when the wording changes, so links and tests use
 * it. If it is taken already, a number is added: "growth", "growth-2". */
void doc_text(struct doc *d, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void doc_note(struct doc *d, enum doc_tone tone, const char *id, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* An item of a list; neighbouring items are one list. */
void doc_item(struct doc *d, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A short statement with its meaning; neighbouring badges share a row. */
void doc_badge(struct doc *d, enum doc_tone tone, const char *id, const char *text, const char *meaning);
/* A question, its answer in a few large words, and the reasons. Neighbouring answers are side by side. */
void doc_answer(struct doc *d, enum doc_tone tone, const char *id, const char *question, const char *answer,
		const char *detail);
void doc_code(struct doc *d, const char *text);		/* as it is, such as a command; may have several lines */
/* A picture made of characters, for the forms without charts: HTML leaves it out. */
void doc_picture(struct doc *d, const char *text);
void doc_file(struct doc *d, const char *path, const char *what);	/* a link to a file beside the report */

/* A link to the section with that `id`, in the same list as links to files. */
void doc_link(struct doc *d, const char *id, const char *text);

/* Adds a table; its CSV file is called `name`. Fill it before you add another block. The caption may be NULL. */
struct doc_table *doc_table(struct doc *d, const char *name, const char *caption);
/* A column: its title, and its unit or NULL. Numbers are aligned to the right. All columns come before the first
 * row. */
void doc_column(struct doc_table *t, const char *title, const char *unit, bool number);
void doc_row(struct doc_table *t, enum doc_tone tone);
/* Adds a cell to the row. A number is shown with `decimals` and commas between thousands, NAN as a dash. In CSV it has
 * 9 digits, and NAN is an empty field. */
void doc_cell(struct doc_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doc_number(struct doc_table *t, double v, int decimals);
/* A cell whose text links to the section with that `id`. */
void doc_cell_link(struct doc_table *t, const char *id, const char *text);
/* Writes the number `plain` to `out`, with commas between thousands. Returns `out`. */
#define DOC_NUMBER_MAX 64
const char *doc_with_thousands(const char *plain, char out[DOC_NUMBER_MAX]);

/* A chart: the SVG from chart_draw (NULL: there is no point, and the report says so), and a description in words for
 * readers who cannot see it. The caller adds a table with its numbers right after it. */
void doc_chart(struct doc *d, const char *id, const char *title, const char *svg, const char *description);

/* Writes an HTML page in one file, with its style, without scripts, which loads nothing. Returns 0 or -EIO. */
int doc_write_html(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* Writes GitHub's Markdown, for a pull request; a chart becomes its description and its table. Returns 0 or -EIO. */
int doc_write_markdown(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* Writes plain text for a terminal, with aligned tables of at most 64 rows; a chart becomes its table. Returns 0, -EIO
 * or -ENOMEM. */
int doc_write_text(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* Writes <dir>/report.html and report.md, each table as <dir>/tables/<name>.csv (RFC 4180, UTF-8, units in the titles),
 * and each chart that has an SVG as a stand-alone <dir>/charts/<id>.svg. Makes the folders, and follows no symbolic
 * link in them (common/base/paths.h). Stops at the first file that cannot be written: returns -errno, and a line in
 * `err` names the file. */
int doc_write_files(const struct doc *d, const char *dir, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
