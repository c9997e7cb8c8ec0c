/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two runs, step by step. See baseline.h; differences.c finds what makes runs incomparable.
 *
 * Only repetitions show how much a figure varies from run to run: with three or more, the interval is that of their
 * mean. With fewer, the interval of throughput comes from the step's intervals, and that of a percentile from its order
 * statistics. Neither includes the variation from run to run, which min_effect allows for. With two repetitions the
 * interval covers the intervals of both. The share of clients held has the interval of a proportion (Wilson's score).
 *
 * Rounds are judged by the ratio within each round, because both sides then met the same state of the machine. The
 * range of 5 ratios or more is an interval of at least 93.75 % for their median (sign test), whatever their
 * distribution.
 */
#include "loadgen/analysis/baseline.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/stats.h"

#define REPETITIONS_MAX 128u
#define REPETITIONS_OF_INTERVAL 3u
#define Z95 1.959964
/* How far a percentile may lie outside the interval of its histogram: cells are exact to 3 digits. */
#define CELL_SHARE 0.01

struct metric;
/* Reads a metric of a step; the value is NAN if the step does not have it. */
typedef struct estimate metric_fn(const struct baseline_side *side, const json_t *step, const struct metric *m);

struct metric {
	const char *name, *unit, *path, *which;
	double percentile;
	metric_fn *of_step;
	bool higher_is_better;
	bool only_rounds;		/* else redundant (one workload), or not comparable (two machines) */
};

static const struct estimate unknown = { NAN, NAN, NAN };

static struct estimate value_alone(double v)
{
	return (struct estimate){ isfinite(v) ? v : NAN, NAN, NAN };
}

/* The figure covers all of the step's measured time; the spread of the step's intervals gives its confidence. */
static struct estimate throughput(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	struct estimate e = value_alone(read_amount(step, m->path)), mean = read_throughput_mean(step, NULL);
	double half = (mean.high - mean.low) / 2;

	(void)side;
	if (isfinite(e.value) && isfinite(half)) {
		e.low = fmax(e.value - half, 0);
		e.high = e.value + half;
	}
	return e;
}

static struct estimate percentile(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	struct estimate e = value_alone(read_amount(step, m->path)), order;
	const struct hist *h = side->hist && isfinite(e.value) ? side->hist(side->arg, step, m->which) : NULL;

	if (!h)
		return e;
	order = stats_percentile(h, m->percentile);
	/* A histogram that contradicts the step's figure belongs to another step: do not use it. */
	if (order.low <= e.value * (1 + CELL_SHARE) && order.high >= e.value * (1 - CELL_SHARE)) {
		e.low = fmin(order.low, e.value);
		e.high = fmax(order.high, e.value);
	}
	return e;
}

static struct estimate held_ratio(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	double n = read_amount(step, "target_clients"), p = read_amount(step, m->path) / n;
	double middle = (p + Z95 * Z95 / (2 * n)) / (1 + Z95 * Z95 / n);
	double half = Z95 / (1 + Z95 * Z95 / n) * sqrt(p * (1 - p) / n + Z95 * Z95 / (4 * n * n));

	(void)side;
	if (!(n >= 1) || !(p <= 1))
		return unknown;
	return (struct estimate){ p, fmax(fmin(middle - half, p), 0), fmin(fmax(middle + half, p), 1) };
}

/* How many clients connected in a second of connecting. Where they send messages, those are compared. */
static struct estimate connects(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	(void)side;
	return isfinite(read_amount(step, "throughput_msgs_per_s")) ? unknown :
	       value_alone(read_amount(step, m->path) / read_amount(step, "connect_wall_s"));
}

/* A side's CPU time for each connection. Where messages were measured, cpu_of_message is compared instead. */
static struct estimate cpu_of_connection(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	(void)side;
	return isfinite(read_amount(step, "throughput_msgs_per_s")) ? unknown : value_alone(read_amount(step, m->path));
}

/* A side's CPU time for each message; m->which names the side. */
static struct estimate cpu_of_message(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	(void)side;
	return value_alone(read_cores(step, m->which) * 1e9 / read_amount(step, m->path));
}

static struct estimate gauge(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	(void)side;
	return value_alone(read_amount(step, m->path));
}

static const struct metric metrics[] = {
	{ "throughput_msgs_per_s", "per_s", "throughput_msgs_per_s", NULL, 0, throughput, true, false },
	{ "response_p50_ns", "ns", "response_ns.p50", "response", 50, percentile, false, false },
	{ "response_p95_ns", "ns", "response_ns.p95", "response", 95, percentile, false, false },
	{ "response_p99_ns", "ns", "response_ns.p99", "response", 99, percentile, false, false },
	{ "response_p99_9_ns", "ns", "response_ns.p99_9", "response", 99.9, percentile, false, false },
	{ "connect_p50_ns", "ns", "connect_ns.total.p50", "connect", 50, percentile, false, false },
	{ "connect_p99_ns", "ns", "connect_ns.total.p99", "connect", 99, percentile, false, false },
	{ "held_ratio", "ratio", "connected_held", NULL, 0, held_ratio, true, false },
	{ "server_cpu_ns_per_message", "ns", "throughput_msgs_per_s", "server", 0, cpu_of_message, false, false },
	{ "server_rss_bytes", "bytes", "resources.server.rss_bytes", NULL, 0, gauge, false, false },
	{ "throughput_bytes_per_s", "bytes_per_s", "throughput_bytes_per_s", NULL, 0, gauge, true, true },
	{ "connects_per_s", "per_s", "connected_held", NULL, 0, connects, true, true },
	{ "server_cpu_ns_per_connection", "ns", "connect_cpu_ns_per_client.server", NULL, 0, cpu_of_connection, false,
	  true },
	{ "generator_cpu_ns_per_connection", "ns", "connect_cpu_ns_per_client.generator", NULL, 0, cpu_of_connection,
	  false, true },
	{ "generator_cpu_ns_per_message", "ns", "throughput_msgs_per_s", "generator", 0, cpu_of_message, false, true },
};

/* The mean of n >= 1 estimates, with an interval that covers all of theirs; unknown if one of them is unknown. */
static struct estimate envelope(const struct estimate *e, size_t n)
{
	struct estimate all = e[0];

	for (size_t i = 1; i < n; i++) {
		all.value += e[i].value;
		all.low = isnan(all.low) || isnan(e[i].low) ? NAN : fmin(all.low, e[i].low);
		all.high = isnan(all.high) || isnan(e[i].high) ? NAN : fmax(all.high, e[i].high);
	}
	all.value /= (double)n;
	return all;
}

static struct estimate estimate_of(const struct baseline_side *side, const struct point *at, const struct metric *m)
{
	struct estimate e[REPETITIONS_MAX];
	double v[REPETITIONS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < at->n && n < REPETITIONS_MAX; i++) {
		e[n] = m->of_step(side, at->steps[i], m);
		v[n] = e[n].value;
		n += isfinite(e[n].value);
	}
	if (n == 0)
		return unknown;
	return n >= REPETITIONS_OF_INTERVAL ? stats_mean(v, n) : envelope(e, n);
}

/* Median and range over the rounds: of both sides' figures, and of the ratio (above 1 where the run is better). */
struct rounds {
	struct estimate base, run, ratio;
	size_t n;			/* ratios */
};

/* NAN where the point has no step of that round. */
static double value_in_round(const struct baseline_side *side, const struct point *at, const struct metric *m,
			     double round)
{
	for (size_t i = 0; i < at->n; i++)
		if (read_amount(at->steps[i], "repetition") == round)
			return m->of_step(side, at->steps[i], m).value;
	return NAN;
}

static void read_rounds(const struct baseline_side *base, const struct point *at_base, const struct baseline_side *run,
			const struct point *at_run, const struct metric *m, struct rounds *out)
{
	double x[REPETITIONS_MAX], y[REPETITIONS_MAX], ratio[REPETITIONS_MAX];
	size_t n = MIN(at_base->n, (size_t)REPETITIONS_MAX);

	for (size_t i = 0; i < n; i++) {
		x[i] = m->of_step(base, at_base->steps[i], m).value;
		y[i] = value_in_round(run, at_run, m, read_amount(at_base->steps[i], "repetition"));
		ratio[i] = m->higher_is_better ? y[i] / x[i] : x[i] / y[i];
	}
	*out = (struct rounds){ stats_range(x, n), stats_range(y, n), stats_range(ratio, n), stats_sort(ratio, n) };
}

/* `apart`: the intervals do not overlap. `better`: how much better the run is, as a share; negative: worse. */
static const char *verdict_of(bool known, bool apart, double better, double min_effect)
{
	if (!known)
		return "unknown";
	if (!apart || fabs(better) <= min_effect)
		return "same";
	return better > 0 ? "improvement" : "regression";
}

/* The message size of a point; null if it is not known. */
static json_t *bytes_json(const struct point *at)
{
	return json_whole(at->bytes > 0 ? at->bytes : NAN);
}

/* A comparison under way, with the arrays that it fills. `failed`: memory ran out. */
struct comparison {
	const struct baseline_side *base, *run;
	const struct baseline_options *options;
	json_t *rows, *missing;
	bool regression, failed;
};

static void add_row(struct comparison *c, const struct point *at, const struct metric *m, const struct estimate *base,
		    const struct estimate *run, const struct estimate *ratio, const char *verdict)
{
	c->regression |= strcmp(verdict, "regression") == 0;
	c->failed |= json_array_append_new(c->rows, json_pack("{s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s}",
		"clients", json_whole(at->clients), "message_bytes", bytes_json(at), "metric", m->name, "unit", m->unit,
		"better", m->higher_is_better ? "higher" : "lower", "base", read_estimate_json(*base), "run",
		read_estimate_json(*run), "change_ratio", json_number(run->value / base->value - 1), "round_ratio",
		ratio ? read_estimate_json(*ratio) : json_null(), "verdict", verdict)) != 0;
}

static void compare_metric(struct comparison *c, const struct point *at_base, const struct point *at_run,
			   const struct metric *m)
{
	struct estimate base = estimate_of(c->base, at_base, m), run = estimate_of(c->run, at_run, m);
	double change = run.value / base.value - 1;
	bool known = isfinite(change) && isfinite(base.high - base.low) && isfinite(run.high - run.low);
	bool apart = run.low > base.high || run.high < base.low;

	if (isfinite(base.value) || isfinite(run.value))
		add_row(c, at_base, m, &base, &run, NULL,
			verdict_of(known, apart, m->higher_is_better ? change : -change, c->options->min_effect));
}

static void compare_rounds(struct comparison *c, const struct point *at_base, const struct point *at_run,
			   const struct metric *m)
{
	struct rounds r;

	read_rounds(c->base, at_base, c->run, at_run, m, &r);
	if (isfinite(r.base.value) || isfinite(r.run.value))
		add_row(c, at_base, m, &r.base, &r.run, &r.ratio, verdict_of(r.n >= BASELINE_ROUNDS,
			r.ratio.low > 1 || r.ratio.high < 1, r.ratio.value - 1, c->options->min_effect));
}

/* Adds the points that the other run lacks. */
static void add_missing(struct comparison *c, const struct points *points, const struct points *other, const char *in)
{
	for (size_t i = 0; i < points->n; i++)
		if (!points_find(other, points->v[i].clients, points->v[i].bytes))
			c->failed |= json_array_append_new(c->missing, json_pack("{s:o, s:o, s:s}",
				"clients", json_whole(points->v[i].clients), "message_bytes", bytes_json(&points->v[i]),
				"in", in)) != 0;
}

static void compare(struct comparison *c, const struct points *base, const struct points *run)
{
	for (size_t i = 0; i < base->n; i++) {
		const struct point *at = points_find(run, base->v[i].clients, base->v[i].bytes);

		for (size_t k = 0; at && k < sizeof(metrics) / sizeof(metrics[0]); k++)
			if (c->options->rounds || !metrics[k].only_rounds)
				(c->options->rounds ? compare_rounds : compare_metric)(c, &base->v[i], at, &metrics[k]);
	}
	add_missing(c, base, run, "run");
	add_missing(c, run, base, "base");
}

json_t *baseline_compare(const struct baseline_side *base, const struct baseline_side *run,
			 const struct baseline_options *options)
{
	struct comparison c = { .base = base, .run = run, .options = options };
	struct points *of_base = NULL, *of_run = NULL;
	/* Two sweeps are compared at the highest rate that both kept up with. */
	double rate = fmin(points_main_rate(json_at(base->run, "steps")), points_main_rate(json_at(run->run, "steps")));
	json_t *o = NULL;

	c.rows = json_array();
	c.missing = json_array();
	c.failed = !c.rows || !c.missing || points_at(base->run, rate, &of_base) || points_at(run->run, rate, &of_run);
	if (!c.failed)
		compare(&c, of_base, of_run);
	if (!c.failed)
		o = json_pack("{s:b, s:O, s:O}", "regression", c.regression, "rows", c.rows, "missing", c.missing);
	json_decref(c.rows);
	json_decref(c.missing);
	points_free(of_base);
	points_free(of_run);
	return o;
}
