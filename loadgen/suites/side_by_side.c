/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternatives beside each other. See side_by_side.h. */
#include "loadgen/suites/side_by_side.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/json_at.h"

#define SIZES_MAX 64u

/* The lead of the second of two alternatives over the first (log of the ratio) at each size; the sizes rise. */
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

static void read_curve(const json_t *points, double clients, const char *metric, bool higher, size_t a, size_t b,
		       struct curve *c)
{
	const json_t *point;
	size_t i;

	c->n = 0;
	json_array_foreach(points, i, point) {
		const json_t *all = json_object_get(point, "figures");
		double x = json_number_at(json_array_get(all, a), metric),
			y = json_number_at(json_array_get(all, b), metric);

		if (json_number_at(point, "clients") == clients && !isfinite(json_number_at(point, "offered_per_s")))
			add_point(c, json_number_at(point, "message_bytes"), higher ? log(y / x) : log(x / y));
	}
}

static void add_ahead(json_t *ahead, double from, const char *name)
{
	json_array_append_new(ahead, json_pack("{s:o, s:s}", "from_bytes", json_number(from), "name", name));
}

/* Lists which one is ahead at the smallest size, and each size where that changes. Equal figures do not count. */
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
			add_ahead(ahead, bytes * pow(c->bytes[i] / bytes, lead / (lead - c->lead[i])), c->lead[i] > 0 ?
				  b : a);
		bytes = c->bytes[i];
		lead = c->lead[i];
	}
	return ahead;
}

static const struct contest {
	const char *metric;
	bool higher;	/* is better */
} contests[] = { { "response_p50_ns", false }, { "throughput_bytes_per_s", true } };

/* Adds all pairs of alternatives at one number of clients. */
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
						json_whole(clients), "metric", contests[k].metric, "names", x, y,
						"ahead", ahead_of(&c, x, y)));
			}
}

bool side_by_side_is_first(const json_t *points, size_t at, const char *name)
{
	for (size_t i = 0; i < at; i++)
		if (json_number_at(json_array_get(points, i), name) ==
		    json_number_at(json_array_get(points, at), name))
			return false;
	return true;
}

json_t *side_by_side_sizes(const json_t *points)
{
	json_t *all = json_array();

	for (size_t i = 0; i < json_array_size(points); i++)
		if (side_by_side_is_first(points, i, "clients"))
			add_pairs(all, points, json_array_get(points, i));
	return all;
}
