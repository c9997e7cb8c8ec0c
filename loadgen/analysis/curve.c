/* SPDX-License-Identifier: BSD-2-Clause */
/* See curve.h. */
#include "loadgen/analysis/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/points.h"

#define SPACING 1.5
#define CPU_FULL 0.9

/* The message size and offered rate of the curve's steps; NAN: any. */
struct curve_rule {
	double bytes, rate;
};

/* Leaves out steps that broke, that the generator limited, or that stood still for a while: they do not show the
 * server's limits. Steps with another message size or rate belong to another curve. */
static bool is_of_curve(const json_t *step, const void *curve)
{
	const struct curve_rule *c = curve;

	return !read_has_flag(step, VALIDITY_generator_saturated) && !read_has_flag(step, VALIDITY_clock_hole) &&
	       !read_has_flag(step, VALIDITY_replies_stalled) &&
	       !json_is_object(json_object_get(step, "hard_failure")) &&
	       (!isfinite(c->bytes) || json_number_at(step, "message_bytes") == c->bytes) &&
	       (!isfinite(c->rate) || json_number_at(step, "offered_per_s") == c->rate);
}

static struct curve_rule rule_of(const json_t *steps)
{
	return (struct curve_rule){ .bytes = json_number_at(json_array_get(steps, 0), "message_bytes"),
				    .rate = points_main_rate(steps) };
}

/* Leaves out a search's probes between its doublings: they are so close together that noise hides any growth. */
static bool is_knee_point(const struct point *at)
{
	for (size_t i = 0; i < at->n; i++) {
		const char *purpose = json_text_at(at->steps[i], "probe.purpose");

		if (isfinite(json_number_at(at->steps[i], "throughput_msgs_per_s")) &&
		    (!purpose || strcmp(purpose, "double") == 0))
			return true;
	}
	return false;
}

static struct points *points_of(const json_t *steps)
{
	const struct curve_rule curve = rule_of(steps);
	const struct points_rule rule = { .clients = "target_clients", .counts = is_of_curve, .arg = &curve };
	struct points *p;

	return points_by(steps, &rule, &p) ? NULL : p;
}

/* The CPU time in use as a share of the generator's machine, or of one CPU for each server thread: the larger one. */
static double cpu_share(const json_t *step, const void *unused)
{
	double busy = json_number_at(step, "resources.machine.busy_s");
	size_t threads = json_array_size(json_at(step, "effective.server.threads"));

	(void)unused;
	return fmax(busy / (busy + json_number_at(step, "resources.machine.idle_s")),
		    json_number_at(step, "resources.server.cpus") / (threads ? (double)threads : NAN));
}

/* True if the CPUs were full in a closed loop with this number of clients. */
static bool fills_cpus(const struct points *points, double clients)
{
	for (size_t i = 0; i < points->n; i++)
		if (points->v[i].clients == clients)
			return !isfinite(json_number_at(points->v[i].steps[0], "offered_per_s")) &&
			       point_range_of(&points->v[i], cpu_share, NULL).value >= CPU_FULL;
	return false;
}

static size_t knee_points(const struct points *points, struct knee_point *out)
{
	size_t n = 0;

	for (size_t i = 0; points && i < points->n && n < CURVE_POINTS_MAX; i++) {
		const struct point *at = &points->v[i];

		if (is_knee_point(at) && (n == 0 || at->clients >= SPACING * out[n - 1].clients))
			out[n++] = (struct knee_point){ at->clients, point_range(at, "throughput_msgs_per_s").value,
							point_range(at, "response_ns.p99").value };
	}
	return n;
}

size_t curve_knee_points(const json_t *steps, struct knee_point *out)
{
	struct points *points = points_of(steps);
	size_t n = knee_points(points, out);

	points_free(points);
	return n;
}

/* The standard error of the mean of a step's intervals. */
static double error_of(const json_t *step)
{
	size_t n;
	struct estimate mean = read_throughput_mean(step, &n);

	return n > 1 ? (mean.high - mean.value) / stats_t95((double)n - 1) : NAN;
}

size_t curve_usl_points(const json_t *steps, struct usl_point *out)
{
	const struct curve_rule curve = rule_of(steps);
	json_t *step;
	size_t i, n = 0;

	json_array_foreach((json_t *)steps, i, step) {
		double clients = json_number_at(step, "active"),
			throughput = json_number_at(step, "throughput_msgs_per_s");

		if (n == CURVE_POINTS_MAX || !(clients > 0) || !(throughput > 0) || !is_of_curve(step, &curve))
			continue;
		out[n++] = (struct usl_point){ clients, throughput, error_of(step) };
	}
	return n;
}

/* The number of steps that measured a number of clients. */
static size_t tries_at(const struct points *points, double clients)
{
	for (size_t i = 0; points && i < points->n; i++)
		if (points->v[i].clients == clients)
			return points->v[i].n;
	return 0;
}

/* Rounds to two digits. */
static double rounded(double v)
{
	double unit = pow(10, floor(log10(v)) - 1);

	return round(v / unit) * unit;
}

/* The range of rates that a sweep should try: from a tenth of the highest throughput to a little more than that. */
static void describe_saturated(const struct knee_point *v, size_t n, char *text, size_t size)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, v[i].throughput);
	snprintf(text, size, "saturated from the first step: the CPUs were full with %.0f clients already, so "
		 "their throughput shows no knee; that of offered load does: --rate %.0f-%.0f", v[0].clients,
		 fmax(rounded(0.1 * most), 1), fmax(rounded(1.2 * most), 1));
}

static void describe(const struct knee *k, const struct knee_point *v, size_t n, char *text, size_t size)
{
	switch (k->reason) {
	case KNEE_THROUGHPUT:
		snprintf(text, size, "from %.0f to %.0f clients throughput grew by less than 10 %% for twice the "
			 "clients", k->clients, k->beyond);
		return;
	case KNEE_P99:
		snprintf(text, size, "with %.0f clients p99 was more than twice that of the fewest clients", k->beyond);
		return;
	case KNEE_NONE:
		snprintf(text, size, "throughput grew and p99 held up to %.0f clients, the most that were measured",
			 v[n - 1].clients);
		return;
	case KNEE_FEW_POINTS:
		snprintf(text, size, "fewer than two numbers of clients were measured");
		return;
	case KNEE_SATURATED:
		describe_saturated(v, n, text, size);
		return;
	}
}

json_t *curve_knee_json(const json_t *steps, bool threads_sleep)
{
	struct knee_point v[CURVE_POINTS_MAX];
	struct points *points = points_of(steps);
	size_t n = knee_points(points, v);
	double last = n ? v[n - 1].clients : NAN;
	bool found, confirmed;
	char text[256];
	struct knee k;

	if (!points)
		return NULL;
	knee_find(v, n, &k);
	if (n && threads_sleep && fills_cpus(points, v[0].clients))
		knee_of_full_cpus(&k, v[0].clients);
	describe(&k, v, n, text, sizeof(text));
	found = knee_is_found(&k);
	confirmed = found && tries_at(points, k.clients) > 1 && tries_at(points, k.beyond) > 1;
	points_free(points);
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:s, s:s}", "clients", json_whole(found ? k.clients : NAN), "low",
			 json_whole(found ? k.clients : k.reason == KNEE_NONE ? last : NAN), "high",
			 json_whole(found ? k.beyond : NAN), "at_least", k.reason == KNEE_NONE, "confirmed", confirmed,
			 "reason", knee_reason_names[k.reason], "text", text);
}

json_t *curve_usl_json(const json_t *steps)
{
	struct usl_point points[CURVE_POINTS_MAX];
	struct usl_fit f;

	usl_fit(points, curve_usl_points(steps, points), &f);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:b, s:o, s:o}", "status", usl_status_names[f.status],
			 "lambda", read_estimate_json(f.lambda), "sigma", read_estimate_json(f.sigma), "kappa",
			 read_estimate_json(f.kappa), "r2", json_number(f.r2), "points", (json_int_t)f.points,
			 "passes_peak", f.passes_peak, "peak_clients",
			 f.passes_peak ? read_estimate_json(f.peak_clients) : json_null(), "peak_throughput",
			 f.passes_peak ? read_estimate_json(f.peak_throughput) : json_null());
}
