/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as a list of blocks, which is made once and written as a page, as Markdown, as text and as files. Building
 * does no I/O; owning thread: main. A block is added behind the last one. When memory runs out, doc_failed says so at
 * the end, so that no caller checks each call. Texts are plain UTF-8 in which nothing is special: each form escapes
 * what it must. */
#ifndef RAMPART_LOADGEN_REPORT_DOC_H
#define RAMPART_LOADGEN_REPORT_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

struct doc;
struct doc_table;

enum doc_tone { DOC_PLAIN, DOC_GOOD, DOC_WARN, DOC_BAD };

/* `title` is its heading, `lead` the line below. 0 or -ENOMEM. */
int doc_new(const char *title, const char *lead, struct doc **out) __attribute__((warn_unused_result));
void doc_free(struct doc *d);	/* NULL-safe */
bool doc_failed(const struct doc *d);

/* A section, numbered from 1 in their order; `id` is its anchor (letters, digits, '-'). */
void doc_section(struct doc *d, const char *id, const char *title);
void doc_heading(struct doc *d, const char *title);	/* a heading within a section */
/* The `id` of a block is the anchor of what it says (as of a section; NULL: none). It stays when the words change, so
 * links and tests go by it. One that is taken gets a number: "growth", "growth-2". */
void doc_text(struct doc *d, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void doc_note(struct doc *d, enum doc_tone tone, const char *id, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* An item of a list; neighbouring items are one list. */
void doc_item(struct doc *d, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A short statement with its meaning; neighbouring ones are in a row. */
void doc_badge(struct doc *d, enum doc_tone tone, const char *id, const char *text, const char *meaning);
/* A question of the reader, its answer in a few words, shown large, and its reasons. Neighbours are side by side. */
void doc_answer(struct doc *d, enum doc_tone tone, const char *id, const char *question, const char *answer,
		const char *detail);
void doc_code(struct doc *d, const char *text);		/* as it is, such as a command; may have several lines */
void doc_file(struct doc *d, const char *path, const char *what);	/* a link to a file beside the report */

/* Among files: a link to the section with that `id`. */
void doc_link(struct doc *d, const char *id, const char *text);

/* A table; `name` is that of its CSV file. Fill it before anything else is added. The caption may be NULL. */
struct doc_table *doc_table(struct doc *d, const char *name, const char *caption);
/* A column: its title, and its unit or NULL. Numbers are aligned to the right. All columns come before the first
 * row. */
void doc_column(struct doc_table *t, const char *title, const char *unit, bool number);
void doc_row(struct doc_table *t, enum doc_tone tone);
/* The next cell of the row. A number is shown with `decimals` and with commas between thousands, NAN as a dash; CSV
 * gets it with 9 digits, and NAN as nothing. */
void doc_cell(struct doc_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doc_number(struct doc_table *t, double v, int decimals);
/* A text that leads to the section with that `id`. */
void doc_cell_link(struct doc_table *t, const char *id, const char *text);
/* Writes the number `plain` to `out`, with commas between thousands. Returns `out`. */
#define DOC_NUMBER_MAX 64
const char *doc_with_thousands(const char *plain, char out[DOC_NUMBER_MAX]);

/* A chart: the SVG that chart_draw made (NULL: it has no point, and the report says so), and what it shows in words,
 * for readers who cannot see it. The caller adds a table with its numbers right behind it. */
void doc_chart(struct doc *d, const char *id, const char *title, const char *svg, const char *description);

/* An HTML page in one file: its style is in it, it has no script and loads nothing. 0 or -EIO. */
int doc_write_html(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* GitHub's Markdown, for a pull request. A chart is its words and its table. 0 or -EIO. */
int doc_write_markdown(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* Plain text for a terminal, with aligned tables of 40 rows at most. A chart is its table. 0, -EIO or -ENOMEM. */
int doc_write_text(const struct doc *d, FILE *out) __attribute__((warn_unused_result));
/* Writes <dir>/report.html and report.md, each table as <dir>/tables/<name>.csv (RFC 4180, UTF-8, units in the titles),
 * and each chart that has an SVG as <dir>/charts/<id>.svg, which needs no page. Makes the folders. What is made in them
 * follows no symbolic link (common/base/paths.h). Stops at the first file that cannot be written: -errno, and a line in
 * `err` that names it. */
int doc_write_files(const struct doc *d, const char *dir, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
