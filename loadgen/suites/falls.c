/* SPDX-License-Identifier: BSD-2-Clause */
/* See falls.h. */
#include "loadgen/suites/falls.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/suites/side_by_side.h"

#define CLIENTS_MAX 64u	/* numbers of clients of a curve */
#define ROUNDS_MAX 64u
#define COUNTERS_MAX 8u
#define FALLEN 0.9	/* share of the best throughput below which it has fallen */
#define GROWN 1.1

/* Throughput of an alternative at one size; the clients rise. */
struct curve {
	struct { double clients, per_s; const json_t *run; } at[CLIENTS_MAX];
	size_t n;
};

static void add_point(struct curve *c, double clients, double per_s, const json_t *run)
{
	size_t i = c->n;

	if (!isfinite(per_s) || !isfinite(clients) || c->n == CLIENTS_MAX)
		return;
	for (; i > 0 && c->at[i - 1].clients > clients; i--)
		c->at[i] = c->at[i - 1];
	c->at[i].clients = clients;
	c->at[i].per_s = per_s;
	c->at[i].run = run;
	c->n++;
}

static void read_curve(const json_t *points, double bytes, size_t alternative, struct curve *c)
{
	const json_t *point;
	size_t i;

	c->n = 0;
	json_array_foreach(points, i, point) {
		const json_t *figures = json_array_get(json_object_get(point, "figures"), alternative);

		if (json_number_at(point, "message_bytes") == bytes &&
		    !isfinite(json_number_at(point, "offered_per_s")))
			add_point(c, json_number_at(point, "clients"), json_number_at(figures, "throughput_msgs_per_s"),
				  json_array_get(json_object_get(point, "runs"), alternative));
	}
}

static size_t best_of(const struct curve *c)
{
	size_t best = 0;

	for (size_t i = 1; i < c->n; i++)
		if (c->at[i].per_s > c->at[best].per_s)
			best = i;
	return best;
}

/* The first point beyond the best from which on all are below FALLEN of it; c->n: there is none. */
static size_t fall_of(const struct curve *c, size_t best)
{
	size_t i = c->n;

	while (i > best + 1 && c->at[i - 1].per_s < FALLEN * c->at[best].per_s)
		i--;
	return i;
}

/* How much a counter of one side's ports grew for each operation; NAN: not known. */
static double of_side(const json_t *step, const char *side, const char *name)
{
	const json_t *network = json_at(step, side), *port;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(network, "ports"), i, port)
		sum += json_number_at(json_object_get(port, "counters"), name);
	return sum / json_number_at(network, "window_s") / json_number_at(step, "throughput_msgs_per_s");
}

/* The same for both sides, if both are known. On one machine they usually read the same device, so only the
 * generator's reading counts. */
static double per_operation(const json_t *step, const char *name)
{
	double generator = of_side(step, "network.generator", name), server = of_side(step, "network.server", name);

	if (json_is_true(json_at(step, "network.generator.loopback")) || !isfinite(server))
		return generator;
	return generator + server;
}

static double median_of(const json_t *run, const char *name)
{
	double v[ROUNDS_MAX];
	const json_t *step;
	size_t i, n = 0;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		double x = per_operation(step, name);

		if (isfinite(x) && n < ROUNDS_MAX)
			v[n++] = x;
	}
	return n ? stats_median(v, n) : NAN;
}

static json_t *counters_that_grew(const json_t *best, const json_t *below)
{
	const json_t *step = json_array_get(json_object_get(below, "steps"), 0);
	json_t *all = json_array(), *value;
	const char *name;

	json_object_foreach(json_object_get(json_array_get(json_at(step, "network.generator.ports"), 0), "counters"),
			    name, value) {
		double before = median_of(best, name), after = median_of(below, name);

		if (after > GROWN * before && json_array_size(all) < COUNTERS_MAX)
			json_array_append_new(all, json_pack("{s:s, s:o, s:o}", "name", name, "best_per_op",
							     json_number(before), "below_per_op", json_number(after)));
	}
	return all;
}

static json_t *fall_json(const struct curve *c, const char *name, double bytes)
{
	size_t best = best_of(c), fall = fall_of(c, best);
	bool falls = fall < c->n;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", name, "message_bytes", json_whole(bytes),
			 "best_clients", json_whole(c->at[best].clients), "best_msgs_per_s",
			 json_number(c->at[best].per_s), "above_clients",
			 falls ? json_whole(c->at[fall - 1].clients) : json_null(), "below_clients",
			 falls ? json_whole(c->at[fall].clients) : json_null(), "below_msgs_per_s",
			 json_number(falls ? c->at[fall].per_s : NAN), "counters",
			 falls ? counters_that_grew(c->at[best].run, c->at[fall].run) : json_array());
}

json_t *falls_json(const json_t *points)
{
	json_t *all = json_array();
	struct curve c;

	for (size_t i = 0; i < json_array_size(points); i++) {
		const json_t *figures = json_object_get(json_array_get(points, i), "figures");
		double bytes = json_number_at(json_array_get(points, i), "message_bytes");

		if (!side_by_side_is_first(points, i, "message_bytes"))
			continue;
		for (size_t k = 0; k < json_array_size(figures); k++) {
			const char *name = json_text_at(json_array_get(figures, k), "name");

			read_curve(points, bytes, k, &c);
			if (c.n >= 3 && name)
				json_array_append_new(all, fall_json(&c, name, bytes));
		}
	}
	return all;
}
