/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures against the number of clients. See trend.h. */
#include "loadgen/report/sections/trend.h"

#include <math.h>
#include <string.h>

/* Largest ratio of most to fewest clients at which points on a linear axis can be told apart. */
#define LINEAR_SPAN 16

static struct trend empty_trend(struct page *p, const struct points *points)
{
	struct trend v = { .x = page_numbers(p, points->n + 1), .y = page_numbers(p, points->n + 1),
		.low = page_numbers(p, points->n + 1), .high = page_numbers(p, points->n + 1) };

	return v;
}

static void add_trend_point(struct trend *v, double clients, struct estimate e, double scale)
{
	if (!v->x || !v->y || !v->low || !v->high)
		return;
	v->x[v->n] = clients;
	v->y[v->n] = e.value * scale;
	v->low[v->n] = e.low * scale;
	v->high[v->n] = e.high * scale;
	if (isfinite(v->y[v->n])) {
		if (v->known++ == 0)
			v->first = v->n;
		v->last = v->n;
	}
	v->n++;
}

struct trend trend_figure(struct page *p, const struct points *points, double bytes, const char *path, double scale)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add_trend_point(&v, points->v[i].clients, strcmp(path, TREND_THROUGHPUT) == 0 ?
			    point_throughput(&points->v[i]) : page_estimate(&points->v[i], path), scale);
	return v;
}

struct trend trend_response_us(struct page *p, const struct points *points, struct source *source, double bytes,
			       double percentile)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add_trend_point(&v, points->v[i].clients,
			    point_percentile(&points->v[i], source_histogram, source, "response", percentile), 1e-3);
	return v;
}

static bool has_ranges(const struct trend *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (isfinite(v->low[i]))
			return true;
	return false;
}

void trend_draw(struct chart *c, const struct trend *v, const char *label, bool dim)
{
	struct chart_series s = { .label = label, .mark = CHART_LINE, .x = v->x, .y = v->y, .n = v->n, .dim = dim };

	if (!dim && has_ranges(v)) {
		s.low = v->low;
		s.high = v->high;
	}
	if (v->known)
		page_series(c, s);
}

size_t trend_top(const struct trend *v)
{
	size_t top = v->first;

	for (size_t i = 0; i < v->n; i++)
		if (v->y[i] > v->y[top])
			top = i;
	return top;
}

bool trend_wants_log(const struct points *points)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < points->n; i++) {
		least = fmin(least, points->v[i].clients);
		most = fmax(most, points->v[i].clients);
	}
	return most >= LINEAR_SPAN * least;
}

size_t figures_read(struct page *p, const struct figures *f, double bytes, struct trend out[FIGURES_MAX])
{
	size_t known = 0;

	for (size_t i = 0; f->v[i].title; i++) {
		out[i] = trend_figure(p, p->points, bytes, f->v[i].path, f->v[i].scale);
		known += out[i].known;
	}
	if (!page_failed(p))
		return known;
	memset(out, 0, FIGURES_MAX * sizeof(*out));
	return 0;
}

void figures_show(struct page *p, const struct figures *f, const struct trend v[FIGURES_MAX])
{
	struct chart c = { .x_label = "clients", .y_label = f->y_label, .y_log = f->logarithmic,
			   .x_log = f->logarithmic || trend_wants_log(p->points) };

	for (size_t i = 0; i < f->drawn; i++)
		trend_draw(&c, &v[i], page_text(p, "%.*s", (int)strcspn(f->v[i].title, "#"), f->v[i].title), false);
	page_chart(p, page_text(p, "%s-chart", f->id), f->title, &c, f->description);
	page_points(p, f->id, NULL, f->v);
}

void bars_choose(const struct points *points, struct bars *out)
{
	size_t n = points->n < BARS_MAX ? points->n : BARS_MAX;

	out->n = n;
	for (size_t i = 0; i < n; i++)
		out->v[i] = &points->v[n > 1 ? i * (points->n - 1) / (n - 1) : 0];
}

static const char *label_of(struct page *p, const struct point *at)
{
	if (p->points->n_sizes > 1)
		return page_text(p, "%s x %s", page_count(p, at->clients), page_bytes(p, at->bytes));
	return page_count(p, at->clients);
}

void bars_name(struct page *p, const struct bars *bars, struct chart *c)
{
	for (size_t i = 0; i < bars->n; i++)
		c->categories[i] = label_of(p, bars->v[i]);
	c->n_categories = bars->n;
}

bool bars_add(struct page *p, const struct bars *bars, struct chart *c, const char *label, const double *y)
{
	double *x = page_numbers(p, bars->n + 1);
	bool any = false;

	for (size_t i = 0; x && y && i < bars->n; i++) {
		x[i] = (double)i;
		any |= isfinite(y[i]);
	}
	page_series(c, (struct chart_series){ .label = label, .mark = CHART_STACK, .x = x, .y = y, .n = bars->n });
	return any;
}
