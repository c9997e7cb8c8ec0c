/* Steps by number of clients and size. See points.h. */
#include "loadgen/report/input/points.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/input/source.h"

static double bytes_of(const json_t *step)
{
	double bytes = json_number_at(step, "message_bytes");

	return isfinite(bytes) ? bytes : 0;
}

static int by_number(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int by_size_and_clients(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	int order = by_number(bytes_of(x), bytes_of(y));

	if (!order)
		order = by_number(json_number_at(x, "target_clients"), json_number_at(y, "target_clients"));
	/* Both are of one array, whose order holds among equals. */
	return order;
}

/* Stable, unlike qsort: repetitions stay in the order they ran. */
static void sort_steps(const json_t **steps, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const json_t *step = steps[i];
		size_t k = i;

		for (; k > 0 && by_size_and_clients(&steps[k - 1], &step) > 0; k--)
			steps[k] = steps[k - 1];
		steps[k] = step;
	}
}

static size_t collect_steps(const json_t *run, const json_t **out)
{
	json_t *step;
	size_t i, n = 0;

	json_array_foreach(json_at(run, "steps"), i, step) {
		if (json_number_at(step, "target_clients") > 0 && i < POINTS_STEPS_MAX)
			out[n++] = step;
	}
	sort_steps(out, n);
	return n;
}

static void add_size(struct points *p, double bytes)
{
	if (p->n_sizes == 0 || p->sizes[p->n_sizes - 1] != bytes)
		p->sizes[p->n_sizes++] = bytes;
}

static void group(struct points *p, const json_t **steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double clients = json_number_at(steps[i], "target_clients"), bytes = bytes_of(steps[i]);
		struct point *last = p->n ? &p->v[p->n - 1] : NULL;

		if (!last || last->clients != clients || last->bytes != bytes) {
			add_size(p, bytes);
			last = &p->v[p->n++];
			*last = (struct point){ .clients = clients, .bytes = bytes, .steps = &steps[i] };
		}
		last->n++;
	}
}

int points_new(const json_t *run, struct points **out)
{
	size_t all = json_array_size(json_at(run, "steps")), most = all < POINTS_STEPS_MAX ? all : POINTS_STEPS_MAX;
	struct points *p = calloc(1, sizeof(*p) + most * sizeof(json_t *));
	const json_t **steps = p ? (const json_t **)(p + 1) : NULL;

	if (p) {
		p->v = calloc(most + 1, sizeof(*p->v));
		p->sizes = calloc(most + 1, sizeof(*p->sizes));
	}
	if (!p || !p->v || !p->sizes) {
		points_free(p);
		return -ENOMEM;
	}
	p->left_out = all - most;
	group(p, steps, collect_steps(run, steps));
	*out = p;
	return 0;
}

void points_free(struct points *p)
{
	if (!p)
		return;
	free(p->v);
	free(p->sizes);
	free(p);
}

const struct point *points_find(const struct points *p, double clients, double bytes)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].clients == clients && p->v[i].bytes == bytes)
			return &p->v[i];
	return NULL;
}

struct estimate point_range_of(const struct point *p, point_figure_fn *figure, const void *arg)
{
	struct estimate e = { NAN, NAN, NAN };
	double *v = calloc(p->n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; v && i < p->n; i++) {
		double x = figure(p->steps[i], arg);

		if (isfinite(x))
			v[n++] = x;
	}
	if (v)
		e = stats_range(v, n);
	free(v);
	return e;
}

static double figure_at(const json_t *step, const void *path)
{
	return json_number_at(step, path);
}

struct estimate point_range(const struct point *p, const char *path)
{
	return point_range_of(p, figure_at, path);
}

double point_cores(const json_t *step, const void *side)
{
	return read_cores(step, side);
}

/* The interval of what one run's intervals had. */
static void widen_by_intervals(struct estimate *e, const json_t *step)
{
	struct estimate mean = read_throughput_mean(step, NULL);

	/* An interval is of the mean of whole intervals, the figure of all of the measured time. */
	if (mean.low <= e->value && mean.high >= e->value) {
		e->low = mean.low;
		e->high = mean.high;
	}
}

struct estimate point_throughput(const struct point *p)
{
	struct estimate e = point_range(p, "throughput_msgs_per_s");

	for (size_t i = 0; i < p->n && isfinite(e.value) && !isfinite(e.low); i++)
		if (isfinite(json_number_at(p->steps[i], "throughput_msgs_per_s")))
			widen_by_intervals(&e, p->steps[i]);
	return e;
}

const char *point_percentile_name(double percentile)
{
	static const struct { double percentile; const char *name; } names[] = {
		{ 50, "p50" }, { 90, "p90" }, { 95, "p95" }, { 99, "p99" }, { 99.9, "p99_9" }, { 99.99, "p99_99" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].percentile == percentile)
			return names[i].name;
	return NULL;
}

/* Else its median would be that of other runs than the median of the others. */
static bool is_in_all_runs(const struct point *p, const char *path)
{
	size_t known = 0, measured = 0;

	for (size_t i = 0; i < p->n; i++) {
		known += isfinite(json_number_at(p->steps[i], path));
		measured += isfinite(json_number_at(p->steps[i], "throughput_msgs_per_s"));
	}
	return known >= measured;
}

struct estimate point_percentile(const struct point *p, struct source *s, const char *which, double percentile)
{
	const char *name = point_percentile_name(percentile);
	struct estimate e = { NAN, NAN, NAN }, of_samples;
	const struct hist *h;
	char path[64];

	if (!name)
		return e;
	snprintf(path, sizeof(path), "%s_ns%s.%s", which, strcmp(which, "connect") == 0 ? ".total" : "", name);
	if (!is_in_all_runs(p, path))
		return e;
	e = point_range(p, path);
	if (!isfinite(e.value) || isfinite(e.low) || p->n != 1)
		return e;
	h = source_histogram(s, p->steps[0], which);
	of_samples = h ? stats_percentile(h, percentile) : e;
	if (of_samples.low <= e.value && of_samples.high >= e.value)
		e = (struct estimate){ e.value, of_samples.low, of_samples.high };
	return e;
}
