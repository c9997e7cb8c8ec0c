/* A figure against the number of clients. See trend.h. */
#include "loadgen/report/sections/trend.h"

#include <math.h>

/* Clients from one to this many times as many still stand apart on a linear axis. */
#define LINEAR_SPAN 16

static struct trend empty_trend(struct page *p, const struct points *points)
{
	struct trend v = { .x = page_numbers(p, points->n + 1), .y = page_numbers(p, points->n + 1),
		.low = page_numbers(p, points->n + 1), .high = page_numbers(p, points->n + 1) };

	return v;
}

static bool has_room(const struct trend *v)
{
	return v->x && v->y && v->low && v->high;
}

static void add(struct trend *v, double clients, struct estimate e, double scale)
{
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

struct trend trend_throughput(struct page *p, const struct points *points, double bytes)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; has_room(&v) && i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add(&v, points->v[i].clients, point_throughput(&points->v[i]), 1);
	return v;
}

struct trend trend_percentile_us(struct page *p, const struct points *points, struct source *source, double bytes,
				 const char *which, double percentile)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; has_room(&v) && i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add(&v, points->v[i].clients, point_percentile(&points->v[i], source, which, percentile), 1e-3);
	return v;
}

struct trend trend_figure(struct page *p, const struct points *points, double bytes, const char *path, double scale)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; has_room(&v) && i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add(&v, points->v[i].clients, point_range(&points->v[i], path), scale);
	return v;
}

struct trend trend_computed(struct page *p, const struct points *points, double bytes, point_figure_fn *figure,
			    const void *arg)
{
	struct trend v = empty_trend(p, points);

	for (size_t i = 0; has_room(&v) && i < points->n; i++)
		if (points->v[i].bytes == bytes)
			add(&v, points->v[i].clients, point_range_of(&points->v[i], figure, arg), 1);
	return v;
}

static bool has_ranges(const struct trend *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (isfinite(v->low[i]))
			return true;
	return false;
}

static void draw(struct chart *c, const struct trend *v, const char *label, bool dim)
{
	struct chart_series s = { .label = label, .mark = CHART_LINE, .x = v->x, .y = v->y, .n = v->n, .dim = dim };

	if (!dim && has_ranges(v)) {
		s.low = v->low;
		s.high = v->high;
	}
	if (v->known)
		page_series(c, s);
}

void trend_draw(struct chart *c, const struct trend *v, const char *label)
{
	draw(c, v, label, false);
}

void trend_draw_dim(struct chart *c, const struct trend *v, const char *label)
{
	draw(c, v, label, true);
}

size_t trend_at(const struct trend *v, double clients)
{
	size_t i = 0;

	while (i < v->n && v->x[i] != clients)
		i++;
	return i;
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
