/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables, charts and words for the sections of a report. See page.h. */
#include "loadgen/report/sections/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"

#define ROWS_MAX 16384u

struct page_memory {
	SLIST_ENTRY(page_memory) entry;
	double bytes[];			/* aligned for numbers */
};

void *page_room(struct page *p, size_t n, size_t size)
{
	struct page_memory *m = calloc(1, sizeof(*m) + n * size);

	if (!m) {
		p->failed = true;
		return NULL;
	}
	SLIST_INSERT_HEAD(&p->memory, m, entry);
	return m->bytes;
}

double *page_numbers(struct page *p, size_t n)
{
	double *v = page_room(p, n, sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i] = NAN;
	return v;
}

const char *page_vtext(struct page *p, const char *fmt, va_list ap)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = n < 0 ? NULL : page_room(p, (size_t)n + 1, 1);
	if (!text)
		return "";
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	return text;
}

const char *page_text(struct page *p, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = page_vtext(p, fmt, ap);
	va_end(ap);
	return text;
}

bool page_takes_row(struct page *p)
{
	return p->rows++ < ROWS_MAX;
}

bool page_has_left_rows_out(const struct page *p)
{
	return p->rows > ROWS_MAX;
}

void page_chart(struct page *p, const char *id, const char *title, const struct chart *c, const char *description)
{
	char *svg;

	if (chart_draw(c, &svg))
		p->failed = true;
	doc_chart(p->doc, id, title, svg, description);
	free(svg);
}

bool page_failed(const struct page *p)
{
	return p->failed || doc_failed(p->doc);
}

void page_free(struct page *p)
{
	struct page_memory *m;

	while ((m = SLIST_FIRST(&p->memory))) {
		SLIST_REMOVE_HEAD(&p->memory, entry);
		free(m);
	}
}

void page_series(struct chart *c, struct chart_series s)
{
	if (c->n_series < CHART_SERIES_MAX && s.x && s.y && s.n)
		c->series[c->n_series++] = s;
}

void page_line(struct chart *c, const char *label, const double *x, const double *y, size_t n)
{
	page_series(c, (struct chart_series){ .label = label, .mark = CHART_LINE_PLAIN, .x = x, .y = y, .n = n });
}

void page_rule(struct chart *c, double at, bool vertical, bool bad, const char *label)
{
	if (isfinite(at) && c->n_rules < CHART_RULES_MAX)
		c->rules[c->n_rules++] =
			(struct chart_rule) { .at = at, .vertical = vertical, .bad = bad, .label = label };
}

static void add_column(struct page *p, struct doc_table *t, const char *column)
{
	const char *unit = strchr(column, '#');

	if (strcmp(column, PAGE_POINT) == 0) {
		doc_column(t, "clients", NULL, true);
		if (p->points->n_sizes > 1)
			doc_column(t, "message size", "bytes", true);
	} else if (unit) {
		doc_column(t, page_text(p, "%.*s", (int)(unit - column), column), unit[1] ? unit + 1 : NULL, true);
	} else {
		doc_column(t, column, NULL, false);
	}
}

struct doc_table *page_table(struct page *p, const char *name, const char *caption, const char *columns)
{
	struct doc_table *t = doc_table(p->doc, name, caption);

	for (size_t n; *columns; columns += n + (columns[n] == ';')) {
		n = strcspn(columns, ";");
		add_column(p, t, page_text(p, "%.*s", (int)n, columns));
	}
	return t;
}

void page_row(struct page *p, struct doc_table *t, enum doc_tone tone, double clients, double bytes)
{
	doc_row(t, tone);
	doc_number(t, clients, 0);
	if (p->points->n_sizes > 1)
		doc_number(t, bytes, 0);
}

static void add_cells(struct doc_table *t, const char *cells, va_list ap)
{
	for (; *cells; cells++)
		if (*cells == 's') {
			const char *text = va_arg(ap, const char *);

			doc_cell(t, "%s", text ? text : "");
		} else {
			doc_number(t, va_arg(ap, double), *cells - '0');
		}
}

void page_add(struct doc_table *t, enum doc_tone tone, const char *cells, ...)
{
	va_list ap;

	doc_row(t, tone);
	va_start(ap, cells);
	add_cells(t, cells, ap);
	va_end(ap);
}

void page_cells(struct doc_table *t, const char *cells, ...)
{
	va_list ap;

	va_start(ap, cells);
	add_cells(t, cells, ap);
	va_end(ap);
}

double page_figure(const json_t *o, const char *path)
{
	const char *over = strchr(path, '/');
	double sum = 0;
	char part[96];

	for (size_t n; *path; path += n + 1) {
		n = strcspn(path, "+/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		sum += json_number_at(o, part);
		if (path[n] != '+')
			break;
	}
	return over ? sum / json_number_at(o, over + 1) : sum;
}

static double figure_of_step(const json_t *step, const void *path)
{
	return page_figure(step, path);
}

struct estimate page_estimate(const struct point *at, const char *path)
{
	return point_range_of(at, figure_of_step, path);
}

static bool is_known(const json_t *o, const struct page_column *c)
{
	const json_t *v = c->scale == 0 ? json_at(o, c->path) : NULL;

	return c->scale == 0 ? v && !json_is_null(v) : isfinite(page_figure(o, c->path));
}

static void add_figure(struct page *p, struct doc_table *t, const struct page_column *c, const struct point *row)
{
	const json_t *last = row->steps[row->n - 1];

	if (c->scale == 0)
		doc_cell(t, "%s", is_known(last, c) ? page_json(p, json_at(last, c->path)) : "–");
	else
		doc_number(t, page_estimate(row, c->path).value * c->scale, c->decimals);
}

void page_columns(struct page *p, struct doc_table *t, const struct page_column *columns)
{
	for (; columns->title; columns++)
		add_column(p, t, columns->title);
}

static void add_figures(struct page *p, struct doc_table *t, const struct page_column *columns, const struct point *row)
{
	for (; columns->title; columns++)
		add_figure(p, t, columns, row);
}

void page_cells_of(struct page *p, struct doc_table *t, const struct page_column *columns, const json_t *o)
{
	add_figures(p, t, columns, &(struct point){ .steps = &o, .n = 1 });
}

void page_cells_at(struct page *p, struct doc_table *t, const struct page_column *columns, const struct point *at,
		   const char *path)
{
	struct point row = { .steps = page_room(p, at->n, sizeof(*row.steps)), .n = at->n };

	for (size_t i = 0; row.steps && i < at->n; i++)
		row.steps[i] = json_at(at->steps[i], path);
	if (row.steps)
		add_figures(p, t, columns, &row);
}

static bool is_column_known(const struct page_column *c, const struct point *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rows[i].n; k++)
			if (is_known(rows[i].steps[k], c))
				return true;
	return false;
}

/* Adds a table of the columns with figures, and with `of_points` those of PAGE_POINT. False: no column has any. */
static bool table_of(struct page *p, const char *name, const char *caption, const struct page_column *columns,
		     const struct point *rows, size_t n, size_t max, bool of_points)
{
	struct page_column known[PAGE_COLUMNS_MAX] = { 0 };
	struct doc_table *t;
	size_t n_known = 0;

	for (; columns->title && n_known + 1 < PAGE_COLUMNS_MAX; columns++)
		if (is_column_known(columns, rows, n))
			known[n_known++] = *columns;
	if (n_known == 0)
		return false;
	t = page_table(p, name, caption, of_points ? PAGE_POINT : "");
	page_columns(p, t, known);
	for (size_t i = 0; i < n && i < max && (of_points || page_takes_row(p)); i++) {
		if (of_points)
			page_row(p, t, DOC_PLAIN, rows[i].clients, rows[i].bytes);
		else
			doc_row(t, DOC_PLAIN);
		add_figures(p, t, known, &rows[i]);
	}
	return true;
}

bool page_points(struct page *p, const char *name, const char *caption, const struct page_column *columns)
{
	return table_of(p, name, caption, columns, p->points->v, p->points->n, SIZE_MAX, true);
}

bool page_objects(struct page *p, const char *name, const char *caption, const struct page_column *columns,
		  const json_t *objects, size_t max)
{
	size_t n = json_array_size(objects);
	const json_t **all = page_room(p, n + 1, sizeof(*all));
	struct point *rows = page_room(p, n + 1, sizeof(*rows));

	for (size_t i = 0; all && rows && i < n; i++) {
		all[i] = json_array_get(objects, i);
		rows[i] = (struct point){ .steps = &all[i], .n = 1 };
	}
	return all && rows && table_of(p, name, caption, columns, rows, n, max, false);
}

const char *page_count(struct page *p, double v)
{
	char digits[32], text[DOC_NUMBER_MAX];

	if (!isfinite(v))
		return "unknown";
	if (fabs(v) >= 1e15)
		return page_text(p, "%.3g", v);
	if (fabs(v) < 10 && v != round(v))
		return page_text(p, "%.2g", v);
	snprintf(digits, sizeof(digits), "%.0f", v);
	return page_text(p, "%s", doc_with_thousands(digits, text));
}

struct unit {
	double size;
	const char *name;
};

/* Writes a number with about three digits, in the largest unit of which it has at least one. */
static const char *in_units(struct page *p, double v, const struct unit *units, size_t n)
{
	size_t i = 0;
	double x;

	if (!isfinite(v))
		return "unknown";
	while (i < n - 1 && fabs(v) < units[i].size)
		i++;
	x = v / units[i].size;
	if (fabs(x) >= 1000)
		return page_text(p, "%s %s", page_count(p, x), units[i].name);
	return page_text(p, "%.*f %s", fabs(x) >= 100 || x == round(x) ? 0 : fabs(x) >= 10 ? 1 : 2, x, units[i].name);
}

const char *page_ns(struct page *p, double ns)
{
	static const struct unit units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };

	return in_units(p, ns, units, sizeof(units) / sizeof(units[0]));
}

const char *page_bytes(struct page *p, double bytes)
{
	static const struct unit units[] = { { 0x1p40, "TiB" }, { 0x1p30, "GiB" }, { 0x1p20, "MiB" }, { 0x1p10, "KiB" },
		{ 1, "bytes" } };

	return in_units(p, bytes, units, sizeof(units) / sizeof(units[0]));
}

const char *page_percent(struct page *p, double ratio)
{
	double v = 100 * ratio;

	if (!isfinite(v))
		return "unknown";
	return page_text(p, "%.*f %%", fabs(v) >= 10 || v == round(v) ? 0 : fabs(v) >= 0.1 ? 1 : 3, v);
}

const char *page_in_unit(struct page *p, double v, const char *unit)
{
	if (unit && strcmp(unit, "ns") == 0)
		return page_ns(p, v);
	if (unit && strcmp(unit, "ratio") == 0)
		return page_percent(p, v);
	if (unit && strcmp(unit, "bytes") == 0)
		return page_bytes(p, v);
	if (unit && strcmp(unit, "per_s") == 0 && isfinite(v))
		return page_text(p, "%s a second", page_count(p, v));
	return page_count(p, v);
}

const char *page_text_at(const json_t *o, const char *path, const char *otherwise)
{
	const char *text = json_text_at(o, path);

	return text ? text : otherwise;
}

const char *page_words(const struct page_words *v, size_t n, const char *name, const char *otherwise)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(v[i].name, name) == 0)
			return v[i].words;
	return name ? name : otherwise;
}

const char *page_json(struct page *p, const json_t *v)
{
	char *text;
	const char *kept;

	if (json_is_string(v))
		return page_text(p, "%s", json_string_value(v));
	if (json_is_boolean(v))
		return json_is_true(v) ? "yes" : "no";
	if (json_is_null(v))
		return "none";
	text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
	kept = text ? page_text(p, "%s", text) : "unknown";
	free(text);
	return kept;
}

const char *page_quoted(struct page *p, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
	size_t n = strlen(word);
	char *quoted, *to;

	if (n && strspn(word, plain) == n)
		return page_text(p, "%s", word);
	quoted = to = page_room(p, 4 * n + 3, 1);
	if (!quoted)
		return "";
	*to++ = '\'';
	for (; *word; word++)
		if (*word == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *word;
	*to = '\'';
	return quoted;
}

const char *page_clients(struct page *p, double n)
{
	return page_text(p, "%s client%s", page_count(p, n), n == 1 ? "" : "s");
}

const char *page_sentence(struct page *p, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n == 0)
		return "";
	return page_text(p, "%s%s", text, strchr(".!?", text[n - 1]) ? "" : ".");
}

const char *page_with_size(struct page *p, double bytes)
{
	return p->points->n_sizes > 1 ? page_text(p, " with messages of %s", page_bytes(p, bytes)) : "";
}

double page_smallest_size(struct page *p)
{
	if (p->points->n_sizes > 1)
		doc_text(p->doc, NULL,
			 "The chart shows messages of %s, the smallest of %zu sizes; the tables have all sizes.",
			 page_bytes(p, p->points->sizes[0]), p->points->n_sizes);
	return p->points->n_sizes ? p->points->sizes[0] : NAN;
}
