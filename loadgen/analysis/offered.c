/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency against offered load. See offered.h. */
#include "loadgen/analysis/offered.h"

#include <math.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/points.h"

struct which {
	double clients, bytes;
};

static bool is_of(const json_t *step, const void *arg)
{
	const struct which *w = arg;
	double bytes = json_number_at(step, "message_bytes");

	return json_number_at(step, "target_clients") == w->clients && (isfinite(bytes) ? bytes : 0) == w->bytes;
}

static bool has_flag(const struct point *at, enum validity flag)
{
	for (size_t i = 0; i < at->n; i++)
		if (read_has_flag(at->steps[i], flag))
			return true;
	return false;
}

static struct offered_point point_of(const struct point *at)
{
	return (struct offered_point){
		.per_s = at->clients, .achieved_per_s = point_range(at, "throughput_msgs_per_s").value,
		.p50_ns = point_range(at, "response_ns.p50").value, .p95_ns = point_range(at, "response_ns.p95").value,
		.p99_ns = point_range(at, "response_ns.p99").value,
		.p99_9_ns = point_range(at, "response_ns.p99_9").value,
		.lag_p99_ns = point_range(at, "schedule_lag_ns.p99").value,
		.behind = has_flag(at, VALIDITY_behind_schedule),
		.saturated = has_flag(at, VALIDITY_generator_saturated) || has_flag(at, VALIDITY_clock_hole),
	};
}

/* Calls points_by with the offered rate in place of the number of clients. */
size_t offered_points(const json_t *steps, double clients, double bytes, struct offered_point out[OFFERED_MAX])
{
	const struct which which = { clients, bytes };
	const struct points_rule rule = { .clients = "offered_per_s", .counts = is_of, .arg = &which };
	struct points *points;
	size_t n;

	if (points_by(steps, &rule, &points))
		return 0;
	for (n = 0; n < points->n && n < OFFERED_MAX; n++)
		out[n] = point_of(&points->v[n]);
	points_free(points);
	return n;
}

void offered_knee(const struct offered_point *p, size_t n, struct knee *out)
{
	struct knee_point v[OFFERED_MAX];
	size_t used = 0;

	for (size_t i = 0; i < n && i < OFFERED_MAX; i++)
		if (!p[i].saturated)
			v[used++] = (struct knee_point){ p[i].per_s, p[i].achieved_per_s, p[i].p99_ns };
	knee_find(v, used, out);
}

/* The highest rate that counts in the search for the knee; NAN: none. */
static double last_used(const struct offered_point *p, size_t n)
{
	while (n && p[n - 1].saturated)
		n--;
	return n ? p[n - 1].per_s : NAN;
}

const char *offered_knee_text(const struct offered_point *p, size_t n, char *text, size_t size)
{
	struct knee k;

	offered_knee(p, n, &k);
	switch (k.reason) {
	case KNEE_THROUGHPUT:
		snprintf(text, size, "from %.0f to %.0f a second offered, what was achieved grew by less than 10 %% "
				     "for twice the load",
			 k.clients, k.beyond);
		break;
	case KNEE_P99:
		snprintf(text, size, "at %.0f operations/s offered, p99 was over twice that of the lowest rate",
			 k.beyond);
		break;
	case KNEE_NONE:
		snprintf(text, size, "what was achieved grew and p99 held up to %.0f a second, the most that was "
				     "offered while the generator was "
			 "not at its limit", last_used(p, n));
		break;
	case KNEE_SATURATED:	/* occurs only in a closed loop */
	case KNEE_FEW_POINTS:
		snprintf(text, size, "fewer than two rates were measured in which the generator was not at its limit");
		break;
	}
	return text;
}

/* log p99 at a rate, interpolated between the neighbouring points; NAN outside of the curve. */
static double log_p99_at(const struct offered_point *p, size_t n, double per_s)
{
	const struct offered_point *before = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!(p[i].p99_ns > 0) || !(p[i].per_s > 0))
			continue;
		if (p[i].per_s == per_s)
			return log(p[i].p99_ns);
		if (p[i].per_s > per_s && before)
			return log(before->p99_ns) + log(p[i].p99_ns / before->p99_ns) * log(per_s / before->per_s) /
			       log(p[i].per_s / before->per_s);
		if (p[i].per_s > per_s)
			return NAN;
		before = &p[i];
	}
	return NAN;
}

/* The next rate of either curve beyond `per_s`; INFINITY: none. */
static double next_rate(const struct offered_point *a, size_t n_a, const struct offered_point *b, size_t n_b,
			double per_s)
{
	double next = INFINITY;

	for (size_t i = 0; i < n_a; i++)
		if (a[i].per_s > per_s)
			next = fmin(next, a[i].per_s);
	for (size_t i = 0; i < n_b; i++)
		if (b[i].per_s > per_s)
			next = fmin(next, b[i].per_s);
	return next;
}

size_t offered_crossings(const struct offered_point *base, size_t n_base, const struct offered_point *run, size_t n_run,
			 struct offered_crossing out[OFFERED_CROSSINGS_MAX])
{
	double last_x = NAN, last_d = NAN, x = 0;	/* last_d: how far the curves are apart at the rate last_x */
	size_t n = 0;

	while (n < OFFERED_CROSSINGS_MAX && isfinite(x = next_rate(base, n_base, run, n_run, x))) {
		double d = log_p99_at(run, n_run, x) - log_p99_at(base, n_base, x);

		if (!isfinite(d) || d == 0)
			continue;
		if (last_d * d < 0)
			out[n++] = (struct offered_crossing){ last_x * pow(x / last_x, last_d / (last_d - d)), d < 0 };
		last_x = x;
		last_d = d;
	}
	return n;
}

static json_t *knee_json(const struct offered_point *p, size_t n)
{
	struct knee k;
	bool found;
	char text[256];

	offered_knee(p, n, &k);
	found = knee_is_found(&k);
	return json_pack("{s:o, s:o, s:o, s:b, s:s, s:s}", "per_s", json_number(found ? k.clients : NAN), "low",
			 json_number(found ? k.clients : k.reason == KNEE_NONE ? last_used(p, n) : NAN), "high",
			 json_number(found ? k.beyond : NAN), "at_least", k.reason == KNEE_NONE, "reason",
			 knee_reason_names[k.reason], "text", offered_knee_text(p, n, text, sizeof(text)));
}

json_t *offered_curves_json(const json_t *steps)
{
	const struct points_rule rule = { .clients = "target_clients" };
	struct offered_point v[OFFERED_MAX];
	struct points *points;
	json_t *curves;

	if (!isfinite(points_main_rate(steps)))
		return json_null();
	if (points_by(steps, &rule, &points))
		return NULL;
	curves = json_array();
	for (size_t i = 0; i < points->n; i++) {
		const struct point *at = &points->v[i];
		size_t n = offered_points(steps, at->clients, at->bytes, v);

		json_array_append_new(curves, json_pack("{s:o, s:o, s:o}", "clients", json_whole(at->clients),
							"message_bytes",
			json_whole(at->bytes > 0 ? at->bytes : NAN), "knee", knee_json(v, n)));
	}
	points_free(points);
	return curves;
}
