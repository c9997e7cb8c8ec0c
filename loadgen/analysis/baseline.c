/* A run against another: step by step. See baseline.h; what keeps runs from being compared is in differences.c.
 *
 * One run says how much its figures vary only by what it repeated. With three repetitions of a step their spread
 * counts, which has everything in it. With fewer, throughput is judged by the step's intervals and percentiles by
 * their order statistics; both miss what differs from one run to the next, hence min_effect. With two repetitions,
 * what both their intervals cover together. The share of clients that were held has the interval of a proportion
 * (Wilson's score).
 */
#include "loadgen/analysis/baseline.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/stats.h"

#define REPETITIONS_MAX 128u
#define REPETITIONS_OF_INTERVAL 3u
#define INTERVALS_MAX 512u
#define Z95 1.959964
/* How far a percentile may lie outside the interval of its histogram: cells are exact to 3 digits. */
#define CELL_SHARE 0.01

struct key {
	json_int_t clients, bytes;
};

struct metric;
/* What a step says of a metric; NAN value: nothing. */
typedef struct estimate metric_fn(const struct baseline_side *side, const json_t *step, const struct metric *m);

struct metric {
	const char *name, *unit, *path, *which;
	double percentile;
	metric_fn *of_step;
	bool higher_is_better;
};

static const struct estimate unknown = { NAN, NAN, NAN };

/* --- a metric of one step --- */

static struct estimate value_alone(double v)
{
	return (struct estimate){ isfinite(v) ? v : NAN, NAN, NAN };
}

/* The figure is the step's own, over all of its measured time; the intervals say how sure it is. */
static struct estimate throughput(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	struct estimate e = value_alone(read_amount(step, m->path)), series;
	const json_t *intervals = json_object_get(step, "intervals");
	double v[INTERVALS_MAX], half;
	size_t n = 0;

	(void)side;
	for (size_t i = 0; i < json_array_size(intervals) && n < INTERVALS_MAX; i++) {
		v[n] = read_amount(json_array_get(intervals, i), "messages_per_s");
		n += isfinite(v[n]);
	}
	series = stats_series_mean(v, n);
	half = (series.high - series.low) / 2;
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
	/* Otherwise the file is not that of this step. */
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

static struct estimate cpu_of_message(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	double cpu_s = read_amount(step, "resources.server.cpu_user_s") +
		       read_amount(step, "resources.server.cpu_system_s");

	(void)side;
	return value_alone(cpu_s * 1e9 / read_amount(step, "resources.server.window_s") / read_amount(step, m->path));
}

static struct estimate gauge(const struct baseline_side *side, const json_t *step, const struct metric *m)
{
	(void)side;
	return value_alone(read_amount(step, m->path));
}

static const struct metric metrics[] = {
	{ "throughput_msgs_per_s", "per_s", "throughput_msgs_per_s", NULL, 0, throughput, true },
	{ "response_p50_ns", "ns", "response_ns.p50", "response", 50, percentile, false },
	{ "response_p95_ns", "ns", "response_ns.p95", "response", 95, percentile, false },
	{ "response_p99_ns", "ns", "response_ns.p99", "response", 99, percentile, false },
	{ "response_p99_9_ns", "ns", "response_ns.p99_9", "response", 99.9, percentile, false },
	{ "connect_p50_ns", "ns", "connect_ns.total.p50", "connect", 50, percentile, false },
	{ "connect_p99_ns", "ns", "connect_ns.total.p99", "connect", 99, percentile, false },
	{ "held_ratio", "ratio", "connected_held", NULL, 0, held_ratio, true },
	{ "server_cpu_ns_per_message", "ns", "throughput_msgs_per_s", NULL, 0, cpu_of_message, false },
	{ "server_rss_bytes", "bytes", "resources.server.rss_bytes", NULL, 0, gauge, false },
};

/* --- over the repetitions --- */

/* False for what is no step. Older runs do not say the size. */
static bool key_of(const json_t *step, struct key *key)
{
	const json_t *bytes = json_object_get(step, "message_bytes");

	key->clients = json_integer_value(json_object_get(step, "target_clients"));
	key->bytes = json_is_integer(bytes) ? json_integer_value(bytes) : -1;
	return key->clients > 0;
}

static bool is_of(const json_t *step, const struct key *key)
{
	struct key k;

	return key_of(step, &k) && k.clients == key->clients && k.bytes == key->bytes;
}

/* Whether a step before `end` has the key. */
static bool has_key(const json_t *run, const struct key *key, size_t end)
{
	for (size_t i = 0; i < end; i++)
		if (is_of(read_step(run, i), key))
			return true;
	return false;
}

/* From the least to the most that any of them allows; unknown if one of them is. `n` is 1 or more. */
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

static struct estimate estimate_of(const struct baseline_side *side, const struct key *key, const struct metric *m)
{
	struct estimate e[REPETITIONS_MAX];
	double v[REPETITIONS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < read_n_steps(side->run) && n < REPETITIONS_MAX; i++) {
		if (!is_of(read_step(side->run, i), key))
			continue;
		e[n] = m->of_step(side, read_step(side->run, i), m);
		v[n] = e[n].value;
		n += isfinite(e[n].value);
	}
	if (n == 0)
		return unknown;
	return n >= REPETITIONS_OF_INTERVAL ? stats_mean(v, n) : envelope(e, n);
}

/* --- verdicts --- */

static const char *verdict_of(const struct metric *m, const struct estimate *base, const struct estimate *run,
			      double change, double min_effect)
{
	bool apart = run->low > base->high || run->high < base->low;

	if (!isfinite(change) || !isfinite(base->high - base->low) || !isfinite(run->high - run->low))
		return "unknown";
	if (!apart || fabs(change) <= min_effect)
		return "same";
	return (change > 0) == m->higher_is_better ? "improvement" : "regression";
}

static json_t *estimate_json(const struct estimate *e)
{
	return json_pack("{s:o, s:o, s:o}", "value", json_number(e->value), "low", json_number(e->low), "high",
			 json_number(e->high));
}

static json_t *bytes_json(const struct key *key)
{
	return key->bytes < 0 ? json_null() : json_integer(key->bytes);
}

/* Of what comes of it: arrays that are filled, and whether memory lasted. */
struct comparison {
	const struct baseline_side *base, *run;
	double min_effect;
	json_t *rows, *missing;
	bool regression, failed;
};

static void add_row(struct comparison *c, const struct key *key, const struct metric *m)
{
	struct estimate base = estimate_of(c->base, key, m), run = estimate_of(c->run, key, m);
	double change = run.value / base.value - 1;
	const char *verdict = verdict_of(m, &base, &run, change, c->min_effect);

	if (isnan(base.value) && isnan(run.value))
		return;
	c->regression |= strcmp(verdict, "regression") == 0;
	c->failed |= json_array_append_new(c->rows, json_pack("{s:I, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:s}",
		"clients", key->clients, "message_bytes", bytes_json(key), "metric", m->name, "unit", m->unit, "better",
		m->higher_is_better ? "higher" : "lower", "base", estimate_json(&base), "run", estimate_json(&run),
		"change_ratio", json_number(change), "verdict", verdict)) != 0;
}

static void add_missing(struct comparison *c, const struct key *key, const char *in)
{
	c->failed |= json_array_append_new(c->missing, json_pack("{s:I, s:o, s:s}", "clients", key->clients,
		"message_bytes", bytes_json(key), "in", in)) != 0;
}

static void compare(struct comparison *c)
{
	const json_t *base = c->base->run, *run = c->run->run;
	struct key key;

	for (size_t i = 0; i < read_n_steps(base); i++) {
		if (!key_of(read_step(base, i), &key) || has_key(base, &key, i))
			continue;
		if (!has_key(run, &key, read_n_steps(run)))
			add_missing(c, &key, "run");
		else
			for (size_t k = 0; k < sizeof(metrics) / sizeof(metrics[0]); k++)
				add_row(c, &key, &metrics[k]);
	}
	for (size_t i = 0; i < read_n_steps(run); i++)
		if (key_of(read_step(run, i), &key) && !has_key(run, &key, i) &&
		    !has_key(base, &key, read_n_steps(base)))
			add_missing(c, &key, "base");
}

json_t *baseline_compare(const struct baseline_side *base, const struct baseline_side *run, double min_effect)
{
	struct comparison c = { .base = base, .run = run, .min_effect = min_effect > 0 ? min_effect : 0,
				.rows = json_array(), .missing = json_array() };

	if (c.rows && c.missing)
		compare(&c);
	if (c.failed || !c.rows || !c.missing) {
		json_decref(c.rows);
		json_decref(c.missing);
		return NULL;
	}
	return json_pack("{s:b, s:o, s:o}", "regression", c.regression, "rows", c.rows, "missing", c.missing);
}
