/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that the sections of a report share: the document, the runs, their analyses, and memory for the figures of
 * charts. Owning thread: main. Callers need not check for lack of memory: page_failed reports it at the end. */
#ifndef RAMPART_LOADGEN_REPORT_PAGE_H
#define RAMPART_LOADGEN_REPORT_PAGE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <jansson.h>

#include "loadgen/analysis/stats.h"
#include "loadgen/report/chart/chart.h"
#include "loadgen/report/doc/doc.h"
#include "loadgen/analysis/points.h"
#include "loadgen/report/input/source.h"

#define PAGE_BASELINES_MAX 4

/* A run that this one is compared with. */
struct page_baseline {
	const char *label;
	struct source *source;
	struct points *points;
	json_t *differences;		/* baseline_differences() */
	json_t *comparison;		/* baseline_compare() */
};

struct page {
	struct doc *doc;
	struct source *source;
	const json_t *run;		/* run.json of the source */
	struct points *points;
	json_t *knee;			/* analysis.capacity.knee, or for an older run, found in its steps */
	json_t *limits, *plan, *plan_for_twice;		/* limits_analysis(), growth_analysis(); NULL: there is none */
	double headroom, growth;	/* shares */
	const char *files_prefix;	/* from the report to the run's files: "" or "../run/" */
	double min_effect;
	struct page_baseline baselines[PAGE_BASELINES_MAX];
	size_t n_baselines;
	size_t rows;			/* calls of page_takes_row */
	SLIST_HEAD(page_memories, page_memory) memory;
	bool failed;
};

/* Room for n elements of `size`, all bytes 0, kept until page_free. NULL when memory ran out. */
void *page_room(struct page *p, size_t n, size_t size);
/* As page_room, for n numbers, all of them NAN. */
double *page_numbers(struct page *p, size_t n);
/* A text kept until page_free; "" when memory ran out. */
const char *page_text(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *page_vtext(struct page *p, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Call before each row of a report on a suite or comparison. False if its tables already have 16,384 rows: without this
 * limit a suite.json of a few MB could make a report of gigabytes. */
bool page_takes_row(struct page *p);
/* True if page_takes_row refused a row. */
bool page_has_left_rows_out(const struct page *p);

/* Draws a chart at the end of the document. */
void page_chart(struct page *p, const char *id, const char *title, const struct chart *c, const char *description);
bool page_failed(const struct page *p);
/* Frees the memory of page_room, but none of the page's documents and runs. */
void page_free(struct page *p);

/* Adds a table, as doc_table does. `columns` is "column;column;...": each is "title" for texts, or "title#unit" or
 * "title#" for numbers. PAGE_POINT stands for the clients and, if the run had several sizes, the message size. */
#define PAGE_POINT "@"
struct doc_table *page_table(struct page *p, const char *name, const char *caption, const char *columns);
/* Begins a row with the cells of PAGE_POINT. */
void page_row(struct page *p, struct doc_table *t, enum doc_tone tone, double clients, double bytes);
/* Adds a cell for each character of `cells`: a digit is a number (double) with as many decimals, 's' a text (NULL:
 * empty). page_add begins a new row, page_cells continues the row. */
void page_add(struct doc_table *t, enum doc_tone tone, const char *cells, ...);
void page_cells(struct doc_table *t, const char *cells, ...);

/* A column whose figures are read from a path of steps, or of other objects of run.json. A column without a title ends
 * a list. */
struct page_column {
	const char *title;		/* as in page_table */
	const char *path;		/* as in page_figure; for texts, a plain path */
	double scale;			/* the figure is multiplied by it; 0: the column has texts */
	int decimals;
};
#define PAGE_COLUMNS_MAX 32
/* The figure at a path; "A+B" is a sum, "A/B" a ratio, "A+B/C" means (A+B)/C. NAN if a part is not known. */
double page_figure(const json_t *o, const char *path);
/* The median of such a figure over the runs of a point, with their range. */
struct estimate page_estimate(const struct point *at, const char *path);
/* Paths for page_figure: CPUs in use by a process ("resources.server" or "resources.generator" of a step), and by
 * everything on the generator's machine. */
#define PAGE_CPUS(process) process ".cpu_user_s+" process ".cpu_system_s/" process ".window_s"
#define PAGE_MACHINE_CPUS "resources.machine.busy_s/resources.machine.window_s"
/* Columns of the stages of a connection, at the paths <before><stage><after>. */
#define PAGE_STAGES(before, after) \
	{ "tcp_connect#ms", before "tcp_connect" after, 1e-6, 3 }, \
	{ "tls_handshake#ms", before "tls_handshake" after, 1e-6, 3 }, \
	{ "psn_exchange#ms", before "psn_exchange" after, 1e-6, 3 }, \
	{ "socket_connect#ms", before "socket_connect" after, 1e-6, 3 }, \
	{ "addr_resolve#ms", before "addr_resolve" after, 1e-6, 3 }, \
	{ "route_resolve#ms", before "route_resolve" after, 1e-6, 3 }, \
	{ "qp_setup#ms", before "qp_setup" after, 1e-6, 3 }, \
	{ "rdma_connect#ms", before "rdma_connect" after, 1e-6, 3 }, \
	{ "qp_exchange#ms", before "qp_exchange" after, 1e-6, 3 }, \
	{ "first_reply#ms", before "first_reply" after, 1e-6, 3 }
/* Adds the columns to a table, and an object's cells to its row. */
void page_columns(struct page *p, struct doc_table *t, const struct page_column *columns);
void page_cells_of(struct page *p, struct doc_table *t, const struct page_column *columns, const json_t *o);
/* The same with the medians of the objects at a path of a point's steps. */
void page_cells_at(struct page *p, struct doc_table *t, const struct page_column *columns, const struct point *at,
		   const char *path);
/* Adds a table with a row for each point (medians of its runs), or for each of the first `max` objects of an array.
 * Columns without any figure are left out. False, and no table, if all columns are. */
bool page_points(struct page *p, const char *name, const char *caption, const struct page_column *columns);
bool page_objects(struct page *p, const char *name, const char *caption, const struct page_column *columns,
		  const json_t *objects, size_t max);

/* Add a series, line or rule to a chart if it has room. A rule at NAN is not added. */
void page_series(struct chart *c, struct chart_series s);
/* A line without points. */
void page_line(struct chart *c, const char *label, const double *x, const double *y, size_t n);
void page_rule(struct chart *c, double at, bool vertical, bool bad, const char *label);

/* Figures in words, kept until page_free: "12,345", "1.25 ms", "1.5 GiB", "34 %"; "unknown" for NAN. */
const char *page_count(struct page *p, double v);
const char *page_ns(struct page *p, double ns);
const char *page_bytes(struct page *p, double bytes);
const char *page_percent(struct page *p, double ratio);
/* A figure in words by its unit in run.json: ns, ratio, bytes, per_s; with other units only the number. */
const char *page_in_unit(struct page *p, double v, const char *unit);
/* The text at a path of run.json; `otherwise` if there is none. */
const char *page_text_at(const json_t *o, const char *path, const char *otherwise);
/* The words for a name, out of n of them; `name` itself if it has none, `otherwise` for NULL. */
struct page_words {
	const char *name, *words;
};
const char *page_words(const struct page_words *v, size_t n, const char *name, const char *otherwise);
/* A value of run.json: a text without quotes, a number, "yes", "none" for null; "unknown" if it is missing. */
const char *page_json(struct page *p, const json_t *v);
/* A word for a POSIX shell, quoted if necessary. */
const char *page_quoted(struct page *p, const char *word);
/* "100 clients", "1 client" */
const char *page_clients(struct page *p, double n);
/* The text, with a full stop added if it does not end a sentence; "" for NULL. */
const char *page_sentence(struct page *p, const char *text);
/* " with messages of 64 bytes" if the run had several sizes, else "". */
const char *page_with_size(struct page *p, double bytes);

/* The smallest message size; NAN without steps. If the run had several, states that only the smallest is shown. */
double page_smallest_size(struct page *p);

#endif
