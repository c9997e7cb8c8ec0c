/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps by number of clients and size. See points.h. */
#include "loadgen/analysis/points.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/hist/latency_json.h"

static double bytes_of(const json_t *step)
{
	double bytes = json_number_at(step, "message_bytes");

	return isfinite(bytes) ? bytes : 0;
}

static bool comes_before(const json_t *a, const json_t *b, const struct points_rule *rule)
{
	double x = bytes_of(a), y = bytes_of(b);

	return x < y || (x == y && json_number_at(a, rule->clients) < json_number_at(b, rule->clients));
}

/* Stable, unlike qsort: repetitions stay in the order they ran. */
static void sort_steps(const json_t **steps, size_t n, const struct points_rule *rule)
{
	for (size_t i = 1; i < n; i++) {
		const json_t *step = steps[i];
		size_t k = i;

		for (; k > 0 && comes_before(step, steps[k - 1], rule); k--)
			steps[k] = steps[k - 1];
		steps[k] = step;
	}
}

static size_t collect_steps(const json_t *steps, const struct points_rule *rule, const json_t **out)
{
	json_t *step;
	size_t i, n = 0;

	json_array_foreach((json_t *)steps, i, step) {
		if (i < READ_STEPS_MAX && json_number_at(step, rule->clients) > 0 &&
		    (!rule->counts || rule->counts(step, rule->arg)))
			out[n++] = step;
	}
	sort_steps(out, n, rule);
	return n;
}

static void add_size(struct points *p, double bytes)
{
	if (p->n_sizes == 0 || p->sizes[p->n_sizes - 1] != bytes)
		p->sizes[p->n_sizes++] = bytes;
}

static void group(struct points *p, const struct points_rule *rule, const json_t **steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double clients = json_number_at(steps[i], rule->clients), bytes = bytes_of(steps[i]);
		struct point *last = p->n ? &p->v[p->n - 1] : NULL;

		if (!last || last->clients != clients || last->bytes != bytes) {
			add_size(p, bytes);
			last = &p->v[p->n++];
			*last = (struct point){ .clients = clients, .bytes = bytes, .steps = &steps[i] };
		}
		last->n++;
	}
}

int points_by(const json_t *steps, const struct points_rule *rule, struct points **out)
{
	size_t all = json_array_size(steps), most = MIN(all, (size_t)READ_STEPS_MAX);
	struct points *p = calloc(1, sizeof(*p) + most * sizeof(json_t *));
	const json_t **kept = p ? (const json_t **)(p + 1) : NULL;

	if (p) {
		p->v = calloc(most + 1, sizeof(*p->v));
		p->sizes = calloc(most + 1, sizeof(*p->sizes));
	}
	if (!p || !p->v || !p->sizes) {
		points_free(p);
		return -ENOMEM;
	}
	p->left_out = all - most;
	group(p, rule, kept, collect_steps(steps, rule, kept));
	*out = p;
	return 0;
}

static bool is_same_point(const json_t *a, const json_t *b)
{
	return json_number_at(a, "target_clients") == json_number_at(b, "target_clients") && bytes_of(a) == bytes_of(b);
}

double points_main_rate(const json_t *steps)
{
	const json_t *first = json_array_get(steps, 0), *step;
	double highest = NAN, lowest = json_number_at(first, "offered_per_s");
	bool swept = false;
	size_t i;

	json_array_foreach((json_t *)steps, i, step) {
		double rate = json_number_at(step, "offered_per_s");

		if (!isfinite(rate) || i >= READ_STEPS_MAX)
			break;
		swept |= is_same_point(first, step) && rate != json_number_at(first, "offered_per_s");
		lowest = fmin(lowest, rate);
		if (read_is_measured(step) && !read_has_flag(step, VALIDITY_behind_schedule))
			highest = fmax(highest, rate); /* a NAN does not count */
	}
	return !swept ? NAN : isfinite(highest) ? highest : lowest;
}

static bool is_offered(const json_t *step, const void *per_s)
{
	return json_number_at(step, "offered_per_s") == *(const double *)per_s;
}

int points_at(const json_t *run, double per_s, struct points **out)
{
	const struct points_rule rule = { .clients = "target_clients", .counts = isfinite(per_s) ? is_offered : NULL,
					  .arg = &per_s };

	return points_by(json_at(run, "steps"), &rule, out);
}

int points_new(const json_t *run, struct points **out)
{
	return points_at(run, points_main_rate(json_at(run, "steps")), out);
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
	double v[READ_STEPS_MAX];	/* points_by takes no more steps */
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		double x = figure(p->steps[i], arg);

		if (isfinite(x))
			v[n++] = x;
	}
	return stats_range(v, n);
}

static double figure_at(const json_t *step, const void *path)
{
	return json_number_at(step, path);
}

struct estimate point_range(const struct point *p, const char *path)
{
	return point_range_of(p, figure_at, path);
}

/* Gives the figure of a single step the confidence interval of the mean over its intervals. */
static void widen_by_intervals(struct estimate *e, const json_t *step)
{
	struct estimate mean = read_throughput_mean(step, NULL);

	/* The figure covers all of the measured time, the mean only whole intervals: they may differ. */
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

/* The name of a percentile in a latency object; NULL if the object does not have it. */
static const char *percentile_name(double percentile)
{
	for (size_t i = 0; i < LATENCY_PERCENTILES; i++)
		if (latency_percentiles[i].percentile == percentile)
			return latency_percentiles[i].name;
	return NULL;
}

/* True if no repetition lacks the percentile. Otherwise its median would cover fewer runs than those of the others. */
static bool is_in_all_runs(const struct point *p, const char *path)
{
	size_t known = 0, measured = 0;

	for (size_t i = 0; i < p->n; i++) {
		known += isfinite(json_number_at(p->steps[i], path));
		measured += isfinite(json_number_at(p->steps[i], "throughput_msgs_per_s"));
	}
	return known >= measured;
}

struct estimate point_percentile(const struct point *p, point_hist_fn *hist, void *arg, const char *which,
				 double percentile)
{
	const char *name = percentile_name(percentile);
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
	h = hist(arg, p->steps[0], which);
	of_samples = h ? stats_percentile(h, percentile) : e;
	if (of_samples.low <= e.value && of_samples.high >= e.value)
		e = (struct estimate){ e.value, of_samples.low, of_samples.high };
	return e;
}
