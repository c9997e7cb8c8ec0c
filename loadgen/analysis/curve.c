/* See curve.h. */
#include "loadgen/analysis/curve.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

#define SPACING 1.5
#define REPETITIONS_MAX 128

static bool is_first_size(const json_t *steps, const json_t *step)
{
	double first = json_number_at(json_array_get(steps, 0), "message_bytes");
	double bytes = json_number_at(step, "message_bytes");

	return !isfinite(first) || bytes == first;
}

/* Steps that broke, or that the generator was the limit of, say nothing of the server's curve. */
static bool is_of_curve(const json_t *steps, const json_t *step)
{
	return !read_has_flag(step, "generator_saturated") && !json_is_object(json_object_get(step, "hard_failure")) &&
	       is_first_size(steps, step);
}

static int by_clients(const void *a, const void *b)
{
	double x = ((const struct knee_point *)a)->clients, y = ((const struct knee_point *)b)->clients;

	return x < y ? -1 : x > y;
}

/* The numbers of clients that are points, each once. Returns how many. */
static size_t numbers(const json_t *steps, struct knee_point *out)
{
	json_t *step;
	size_t i, n = 0, kept = 0;

	json_array_foreach((json_t *)steps, i, step) {
		const char *purpose = json_text_at(step, "probe.purpose");
		double clients = json_number_at(step, "target_clients");

		if (n == CURVE_POINTS_MAX || !(clients > 0) || !isfinite(json_number_at(step, "throughput_msgs_per_s")) ||
		    (purpose && strcmp(purpose, "double") != 0) || !is_of_curve(steps, step))
			continue;
		out[n++].clients = clients;
	}
	qsort(out, n, sizeof(out[0]), by_clients);
	for (i = 0; i < n; i++)
		if (kept == 0 || out[i].clients >= SPACING * out[kept - 1].clients)
			out[kept++].clients = out[i].clients;
	return kept;
}

/* The median of a figure over the steps with that many clients; NAN when none has it. */
static double median_of(const json_t *steps, double clients, const char *path)
{
	double v[REPETITIONS_MAX];
	json_t *step;
	size_t i, n = 0;

	json_array_foreach((json_t *)steps, i, step) {
		double x = json_number_at(step, path);

		if (n < REPETITIONS_MAX && json_number_at(step, "target_clients") == clients && isfinite(x) &&
		    is_of_curve(steps, step))
			v[n++] = x;
	}
	return stats_median(v, n);
}

size_t curve_knee_points(const json_t *steps, struct knee_point *out)
{
	size_t n = numbers(steps, out);

	for (size_t i = 0; i < n; i++) {
		out[i].throughput = median_of(steps, out[i].clients, "throughput_msgs_per_s");
		out[i].p99_ns = median_of(steps, out[i].clients, "response_ns.p99");
	}
	return n;
}

/* Of the mean of a step's intervals. */
static double error_of(const json_t *step)
{
	size_t n;
	struct estimate mean = read_throughput_mean(step, &n);

	return n > 1 ? (mean.high - mean.value) / stats_t95((double)n - 1) : NAN;
}

size_t curve_usl_points(const json_t *steps, struct usl_point *out)
{
	json_t *step;
	size_t i, n = 0;

	json_array_foreach((json_t *)steps, i, step) {
		double clients = json_number_at(step, "active"), throughput = json_number_at(step, "throughput_msgs_per_s");

		if (n == CURVE_POINTS_MAX || !(clients > 0) || !(throughput > 0) || !is_of_curve(steps, step))
			continue;
		out[n++] = (struct usl_point){ clients, throughput, error_of(step) };
	}
	return n;
}

/* How often a number of clients was measured. */
static int tries_at(const json_t *steps, double clients)
{
	json_t *step;
	size_t i;
	int n = 0;

	json_array_foreach((json_t *)steps, i, step)
		n += json_number_at(step, "target_clients") == clients && is_of_curve(steps, step);
	return n;
}

static void describe(const struct knee *k, double last, char *text, size_t size)
{
	switch (k->reason) {
	case KNEE_THROUGHPUT:
		snprintf(text, size, "from %.0f to %.0f clients throughput grew by less than 10 %% for twice the clients",
			 k->clients, k->beyond);
		return;
	case KNEE_P99:
		snprintf(text, size, "with %.0f clients p99 was more than twice that of the fewest clients", k->beyond);
		return;
	case KNEE_NONE:
		snprintf(text, size, "throughput grew and p99 held up to %.0f clients, the most that were measured", last);
		return;
	case KNEE_FEW_POINTS:
		snprintf(text, size, "fewer than two numbers of clients were measured");
		return;
	}
}

json_t *curve_knee_json(const json_t *steps)
{
	struct knee_point points[CURVE_POINTS_MAX];
	size_t n = curve_knee_points(steps, points);
	struct knee k;
	double last = n ? points[n - 1].clients : NAN;
	bool found;
	char text[160];

	knee_find(points, n, &k);
	describe(&k, last, text, sizeof(text));
	found = k.reason == KNEE_THROUGHPUT || k.reason == KNEE_P99;
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:s, s:s}", "clients", json_whole(found ? k.clients : NAN), "low",
			 json_whole(found ? k.clients : k.reason == KNEE_NONE ? last : NAN), "high",
			 json_whole(found ? k.beyond : NAN), "at_least", k.reason == KNEE_NONE, "confirmed", found &&
			 tries_at(steps, k.clients) > 1 && tries_at(steps, k.beyond) > 1, "reason",
			 knee_reason_names[k.reason], "text", text);
}

json_t *curve_usl_json(const json_t *steps)
{
	struct usl_point points[CURVE_POINTS_MAX];
	struct usl_fit f;

	usl_fit(points, curve_usl_points(steps, points), &f);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:b, s:o, s:o}", "status", usl_status_names[f.status], "lambda",
			 read_estimate_json(f.lambda), "sigma", read_estimate_json(f.sigma), "kappa", read_estimate_json(f.kappa), "r2",
			 json_number(f.r2), "points", (json_int_t)f.points, "passes_peak", f.passes_peak, "peak_clients",
			 f.passes_peak ? read_estimate_json(f.peak_clients) : json_null(), "peak_throughput",
			 f.passes_peak ? read_estimate_json(f.peak_throughput) : json_null());
}
