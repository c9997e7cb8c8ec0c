/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternatives of a comparison beside each other: who is ahead at which sizes, what each had, and what connecting took.
 * See comparison.h; the figures are those of loadgen/suites/side_by_side.h. */
#include "loadgen/report/suites/comparison.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

#define POINTS_MAX 512u
#define ALTERNATIVES_MAX 16u
#define CROSSINGS_MAX 64u	/* as many as sizes of a run */

/* --- who is ahead --- */

static const char *metric_words(const json_t *contest)
{
	static const struct page_words words[] = {
		{ "response_p50_ns", "the shorter p50" }, { "throughput_bytes_per_s", "the greater bandwidth" },
	};

	return page_words(words, 2, json_text_at(contest, "metric"), "the better figure");
}

static void say_contest(struct page *p, const json_t *contest)
{
	const json_t *names = json_object_get(contest, "names"), *ahead = json_object_get(contest, "ahead"), *a;
	const char *text = "";
	size_t i;

	json_array_foreach(ahead, i, a) {
		double from = json_number_at(a, "from_bytes");

		if (i == CROSSINGS_MAX)
			break;
		if (i && isfinite(from))
			text = page_text(p, "%s, from about %s on %.100s", text, page_bytes(p, from),
					 page_text_at(a, "name", "unknown"));
		else if (i == 0)
			text = page_text_at(a, "name", "unknown");
	}
	doc_item(p->doc, NULL, "%s, %s against %s: %s has %s%s.", page_clients(p, json_number_at(contest, "clients")),
		 page_json(p, json_array_get(names, 0)), page_json(p, json_array_get(names, 1)), *text ? text : "neither",
		 metric_words(contest), json_array_size(ahead) == 1 ? " at all sizes" : "");
}

/* --- tables --- */

/* Some alternative has it at some point. */
static bool is_known(const json_t *points, const char *path)
{
	const json_t *point, *o;
	size_t i, k;

	json_array_foreach(points, i, point)
		json_array_foreach(json_object_get(point, "figures"), k, o)
			if (isfinite(json_number_at(o, path)))
				return true;
	return false;
}

/* Each alternative at each point, with the point's clients and size. The caller's. */
static json_t *alternatives_of(const json_t *points)
{
	json_t *all = json_array(), *point, *o;
	size_t i, k;

	json_array_foreach((json_t *)points, i, point)
		json_array_foreach(json_object_get(point, "figures"), k, o)
			if (i < POINTS_MAX && k < ALTERNATIVES_MAX) {
				json_t *copy = json_is_object(o) ? json_copy(o) : json_object();

				json_object_set(copy, "clients", json_object_get(point, "clients"));
				json_object_set(copy, "message_bytes", json_object_get(point, "message_bytes"));
				json_array_append_new(all, copy);
			}
	return all;
}

static void show_figures(struct page *p, const char *id, const json_t *points)
{
	static const struct page_column columns[] = {
		{ "clients#", "clients", 1, 0 }, { "size#bytes", "message_bytes", 1, 0 }, { "alternative", "name", 0, 0 },
		{ "p50#us", "response_p50_ns", 1e-3, 1 }, { "p95#us", "response_p95_ns", 1e-3, 1 },
		{ "p99#us", "response_p99_ns", 1e-3, 1 }, { "p99.9#us", "response_p99_9_ns", 1e-3, 1 },
		{ "jitter, p99/p50#", "jitter_ratio", 1, 2 }, { "messages#1/s", "throughput_msgs_per_s", 1, 0 },
		{ "bandwidth#GB/s", "throughput_bytes_per_s", 1e-9, 5 },
		{ "server CPU#us/op", "server_cpu_ns_per_message", 1e-3, 1 },
		{ "generator CPU#us/op", "generator_cpu_ns_per_message", 1e-3, 1 },
		{ "connecting p50#ms", "connect_p50_ns", 1e-6, 2 }, { "connecting p99#ms", "connect_p99_ns", 1e-6, 2 },
		{ "server resident#KiB/client", "server_rss_bytes_per_client", 1 / 1024.0, 1 },
		{ "kernel#KiB/client", "machine_kernel_bytes_per_client", 1 / 1024.0, 1 }, { 0 }
	};
	static const struct page_column stages[] = {
		{ "clients#", "clients", 1, 0 }, { "size#bytes", "message_bytes", 1, 0 }, { "alternative", "name", 0, 0 },
		PAGE_STAGES("connect_stages.", ""), { 0 }
	};
	json_t *all = alternatives_of(points);

	page_objects(p, page_text(p, "%s_side_by_side", id), "Each alternative: medians of the rounds.", columns, all, SIZE_MAX);
	if (is_known(points, "connect_stages.tcp_connect"))
		page_objects(p, page_text(p, "%s_stages", id), "Connecting by stage, p50. A stage without a figure is none of that "
			     "alternative's.", stages, all, SIZE_MAX);
	json_decref(all);
}

/* --- curves --- */

static size_t count_sizes(const json_t *points, double clients)
{
	const json_t *point;
	size_t i, n = 0;

	json_array_foreach(points, i, point) {
		n += json_number_at(point, "clients") == clients;
	}
	return n;
}

/* A figure against the size, for the first number of clients, a line for each alternative. */
static void draw_curve(struct page *p, const char *id, const json_t *points, const char *name, double unit, struct chart *c,
		 const char *title)
{
	const json_t *first = json_array_get(points, 0), *point;
	double clients = json_number_at(first, "clients");
	size_t n = count_sizes(points, clients), i;

	for (size_t k = 0; k < json_array_size(json_object_get(first, "figures")) && k < ALTERNATIVES_MAX; k++) {
		double *x = page_numbers(p, n), *y = page_numbers(p, n);
		size_t at = 0;

		if (!x || !y)
			return;
		json_array_foreach(points, i, point) {
			if (json_number_at(point, "clients") != clients || at == n)
				continue;
			x[at] = json_number_at(point, "message_bytes");
			y[at++] = json_number_at(json_array_get(json_object_get(point, "figures"), k), name) / unit;
		}
		page_series(c, (struct chart_series){ .mark = CHART_LINE, .x = x, .y = y, .n = n, .label = page_text_at(
			json_array_get(json_object_get(first, "figures"), k), "name", "unknown") });
	}
	page_chart(p, id, title, c, "Medians of the rounds; the table has the numbers.");
}

static void draw_sizes(struct page *p, const char *id, const json_t *points)
{
	struct chart time = { .x_label = "size, bytes", .x_log = true, .y_log = true, .y_label = "p50, us" };
	struct chart bandwidth = { .x_label = "size, bytes", .x_log = true, .y_log = true, .y_label = "bandwidth, GB/s" };

	if (count_sizes(points, json_number_at(json_array_get(points, 0), "clients")) < 2)
		return;
	if (is_known(points, "response_p50_ns"))
		draw_curve(p, page_text(p, "%s-p50", id), points, "response_p50_ns", 1e3, &time, "Time of an operation");
	if (is_known(points, "throughput_bytes_per_s"))
		draw_curve(p, page_text(p, "%s-bandwidth", id), points, "throughput_bytes_per_s", 1e9, &bandwidth, "Bandwidth");
}

/* --- all of it --- */

static bool compares_transports(const json_t *comparison)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(comparison, "alternatives"), i, o) {
		if (json_object_get(json_object_get(o, "options"), "transport"))
			return true;
	}
	return false;
}

/* Why sockets win where no adapter does RDMA's work. */
static void warn_of_software(struct page *p, const json_t *comparison)
{
	if (!compares_transports(comparison) ||
	    !json_is_true(json_at(comparison, "environment.rdma_device.is_software")))
		return;
	doc_note(p->doc, DOC_WARN, NULL, "RDMA here is software (%s)%s: it makes each packet and its checksum on the CPU that sends "
		 "it, while the kernel's TCP has segmentation offload, so TCP wins wherever bytes count. An adapter does that work "
		 "without the CPU: nothing here is a statement on adapters.",
		 page_text_at(comparison, "environment.rdma_device.driver", "no adapter"),
		 json_is_true(json_at(comparison, "environment.is_emulated_cpu")) ? " on an emulated CPU" : "");
}

void side_by_side_say(struct page *p, const json_t *comparison)
{
	const json_t *contest;
	size_t i;

	warn_of_software(p, comparison);
	json_array_foreach(json_object_get(comparison, "sizes"), i, contest) {
		if (i < POINTS_MAX)
			say_contest(p, contest);
	}
}

void side_by_side_show(struct page *p, const char *id, const json_t *comparison)
{
	const json_t *points = json_object_get(comparison, "points");

	/* Comparisons that were made before these figures were kept have none. */
	if (json_array_size(json_object_get(json_array_get(points, 0), "figures")) == 0)
		return;
	draw_sizes(p, id, points);
	show_figures(p, id, points);
}
