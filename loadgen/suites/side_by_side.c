/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternatives beside each other. See side_by_side.h. */
#include "loadgen/suites/side_by_side.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "common/wire/fail.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/stats.h"

#define ROUNDS_MAX 128u
#define SIZES_MAX 64u

/* --- figures --- */

/* Where a step has a figure; `side`: it is the CPU time of that side for each message. */
static const struct figure {
	const char *name, *path, *side;
} figures[] = {
	{ "response_p50_ns", "response_ns.p50", NULL }, { "response_p95_ns", "response_ns.p95", NULL },
	{ "response_p99_ns", "response_ns.p99", NULL }, { "response_p99_9_ns", "response_ns.p99_9", NULL },
	{ "jitter_ratio", "response_ns.jitter", NULL }, { "throughput_msgs_per_s", "throughput_msgs_per_s", NULL },
	{ "throughput_bytes_per_s", "throughput_bytes_per_s", NULL },
	{ "server_cpu_ns_per_message", "throughput_msgs_per_s", "server" },
	{ "generator_cpu_ns_per_message", "throughput_msgs_per_s", "generator" },
	{ "connect_p50_ns", "connect_ns.total.p50", NULL }, { "connect_p99_ns", "connect_ns.total.p99", NULL },
	{ "server_rss_bytes_per_client", "memory.server_rss_bytes_per_client", NULL },
	{ "machine_kernel_bytes_per_client", "memory.machine_kernel_bytes_per_client", NULL },
};

static double of_step(const json_t *step, const char *path, const char *side)
{
	double v = read_amount(step, path);

	return side ? read_cores(step, side) * 1e9 / v : v;
}

static json_t *median(const json_t *run, const char *path, const char *side)
{
	double v[ROUNDS_MAX];
	const json_t *step;
	size_t i, n = 0;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		double x = of_step(step, path, side);

		if (isfinite(x) && n < ROUNDS_MAX)
			v[n++] = x;
	}
	return json_number(n ? stats_median(v, n) : NAN);
}

static json_t *stages(const json_t *run)
{
	json_t *o = json_object();
	char path[64];

	for (int s = 0; s < STAGE_TIMED; s++) {
		snprintf(path, sizeof(path), "connect_ns.%s.p50", stage_names[s]);
		json_object_set_new(o, stage_names[s], median(run, path, NULL));
	}
	return o;
}

json_t *side_by_side_figures(const char *name, const json_t *run)
{
	json_t *o = json_pack("{s:s}", "name", name);

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(o, figures[i].name, median(run, figures[i].path, figures[i].side));
	json_object_set_new(o, "connect_stages", stages(run));
	return o;
}

/* --- sizes --- */

/* The log of how much further the second of two alternatives is ahead of the first, by size; the sizes rise. */
struct curve {
	double bytes[SIZES_MAX], lead[SIZES_MAX];
	size_t n;
};

static void add_point(struct curve *c, double bytes, double lead)
{
	size_t i = c->n;

	if (!isfinite(lead) || !(bytes > 0) || c->n == SIZES_MAX)
		return;
	for (; i > 0 && c->bytes[i - 1] > bytes; i--) {
		c->bytes[i] = c->bytes[i - 1];
		c->lead[i] = c->lead[i - 1];
	}
	c->bytes[i] = bytes;
	c->lead[i] = lead;
	c->n++;
}

static void read_curve(const json_t *points, double clients, const char *metric, bool higher, size_t a, size_t b, struct curve *c)
{
	const json_t *point;
	size_t i;

	c->n = 0;
	json_array_foreach(points, i, point) {
		const json_t *all = json_object_get(point, "figures");
		double x = json_number_at(json_array_get(all, a), metric), y = json_number_at(json_array_get(all, b), metric);

		if (json_number_at(point, "clients") == clients && !isfinite(json_number_at(point, "offered_per_s")))
			add_point(c, json_number_at(point, "message_bytes"), higher ? log(y / x) : log(x / y));
	}
}

static void add_ahead(json_t *ahead, double from, const char *name)
{
	json_array_append_new(ahead, json_pack("{s:o, s:s}", "from_bytes", json_number(from), "name", name));
}

/* The one that is ahead at the smallest size, and the sizes from which on the other one is. Equals are not ahead. */
static json_t *ahead_of(const struct curve *c, const char *a, const char *b)
{
	json_t *ahead = json_array();
	double bytes = NAN, lead = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (c->lead[i] == 0)
			continue;
		if (lead == 0)
			add_ahead(ahead, NAN, c->lead[i] > 0 ? b : a);
		else if (lead * c->lead[i] < 0)
			add_ahead(ahead, bytes * pow(c->bytes[i] / bytes, lead / (lead - c->lead[i])), c->lead[i] > 0 ? b : a);
		bytes = c->bytes[i];
		lead = c->lead[i];
	}
	return ahead;
}

static const struct contest {
	const char *metric;
	bool higher;	/* is better */
} contests[] = { { "response_p50_ns", false }, { "throughput_bytes_per_s", true } };

/* All pairs at one number of clients. */
static void add_pairs(json_t *to, const json_t *points, const json_t *first)
{
	const json_t *all = json_object_get(first, "figures");
	double clients = json_number_at(first, "clients");
	struct curve c;

	for (size_t k = 0; k < sizeof(contests) / sizeof(contests[0]); k++)
		for (size_t a = 0; a < json_array_size(all); a++)
			for (size_t b = a + 1; b < json_array_size(all); b++) {
				const char *x = json_text_at(json_array_get(all, a), "name");
				const char *y = json_text_at(json_array_get(all, b), "name");

				read_curve(points, clients, contests[k].metric, contests[k].higher, a, b, &c);
				if (c.n > 1)
					json_array_append_new(to, json_pack("{s:o, s:s, s:[s, s], s:o}", "clients",
						json_whole(clients), "metric", contests[k].metric, "names", x, y, "ahead", ahead_of(&c, x, y)));
			}
}

static bool is_first(const json_t *points, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (json_number_at(json_array_get(points, i), "clients") ==
		    json_number_at(json_array_get(points, at), "clients"))
			return false;
	return true;
}

json_t *side_by_side_sizes(const json_t *points)
{
	json_t *all = json_array();

	for (size_t i = 0; i < json_array_size(points); i++)
		if (is_first(points, i))
			add_pairs(all, points, json_array_get(points, i));
	return all;
}
