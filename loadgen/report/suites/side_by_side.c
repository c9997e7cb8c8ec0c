/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternatives of a comparison beside each other: who is ahead at which sizes, what each had, and what connecting took.
 * See comparison.h; the figures are those of loadgen/side_by_side.h. */
#include "loadgen/report/suites/comparison.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

#define POINTS_MAX 512u
#define ALTERNATIVES_MAX 16u
#define STAGES_MAX 16u
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

static const struct column {
	const char *title, *name;
	double unit;
	int decimals;
} columns[] = {
	{ "p50#us", "response_p50_ns", 1e3, 1 },
	{ "p95#us", "response_p95_ns", 1e3, 1 },
	{ "p99#us", "response_p99_ns", 1e3, 1 },
	{ "p99.9#us", "response_p99_9_ns", 1e3, 1 },
	{ "jitter, p99/p50#", "jitter_ratio", 1, 2 },
	{ "messages#1/s", "throughput_msgs_per_s", 1, 0 },
	{ "bandwidth#GB/s", "throughput_bytes_per_s", 1e9, 5 },
	{ "server CPU#us/op", "server_cpu_ns_per_message", 1e3, 1 },
	{ "generator CPU#us/op", "generator_cpu_ns_per_message", 1e3, 1 },
	{ "connecting p50#ms", "connect_p50_ns", 1e6, 2 },
	{ "connecting p99#ms", "connect_p99_ns", 1e6, 2 },
	{ "server resident#KiB/client", "server_rss_bytes_per_client", 1024, 1 },
	{ "kernel#KiB/client", "machine_kernel_bytes_per_client", 1024, 1 },
};

#define COLUMNS_N (sizeof(columns) / sizeof(columns[0]))

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

static void add_row(struct doc_table *t, const bool known[COLUMNS_N], const json_t *point, const json_t *o)
{
	doc_row(t, DOC_PLAIN);
	doc_number(t, json_number_at(point, "clients"), 0);
	doc_number(t, json_number_at(point, "message_bytes"), 0);
	doc_cell(t, "%s", page_text_at(o, "name", "unknown"));
	for (size_t k = 0; k < COLUMNS_N; k++)
		if (known[k])
			doc_number(t, json_number_at(o, columns[k].name) / columns[k].unit, columns[k].decimals);
}

static void show_figures(struct page *p, const char *id, const json_t *points)
{
	const char *titles = "clients#;size#bytes;alternative";
	const json_t *point, *o;
	struct doc_table *t;
	bool known[COLUMNS_N];
	size_t i, k;

	for (k = 0; k < COLUMNS_N; k++) {
		known[k] = is_known(points, columns[k].name);
		if (known[k])
			titles = page_text(p, "%s;%s", titles, columns[k].title);
	}
	t = page_table(p, page_text(p, "%s_side_by_side", id), "Each alternative: medians of the rounds.", titles);
	json_array_foreach(points, i, point)
		json_array_foreach(json_object_get(point, "figures"), k, o)
			if (i < POINTS_MAX && k < ALTERNATIVES_MAX && page_takes_row(p))
				add_row(t, known, point, o);
}

/* A row for each stage that some alternative has, of the point with the most clients. */
static void show_stages(struct page *p, const char *id, const json_t *points)
{
	const json_t *point, *most = NULL, *all, *o, *v;
	const char *titles = "stage", *stage;
	struct doc_table *t;
	size_t i, k;

	json_array_foreach(points, i, point) {
		if (!most || json_number_at(point, "clients") > json_number_at(most, "clients"))
			most = point;
	}
	all = json_object_get(most, "figures");
	if (!isfinite(json_number_at(json_array_get(all, 0), "connect_stages.tcp_connect")))
		return;
	json_array_foreach(all, k, o) {
		if (k < ALTERNATIVES_MAX)
			titles = page_text(p, "%s;%s#ms", titles, page_text_at(o, "name", "unknown"));
	}
	t = page_table(p, page_text(p, "%s_stages", id), page_text(p, "Connecting by stage, p50, %s; a stage without a figure "
		       "is none of that alternative's.", page_clients(p, json_number_at(most, "clients"))), titles);
	i = 0;
	json_object_foreach(json_object_get(json_array_get(all, 0), "connect_stages"), stage, v) {
		const char *path;

		if (i++ == STAGES_MAX)
			break;
		path = page_text(p, "connect_stages.%s", stage);
		if (!is_known(points, path))
			continue;
		doc_row(t, DOC_PLAIN);
		doc_cell(t, "%s", stage);
		json_array_foreach(all, k, o) {
			if (k < ALTERNATIVES_MAX)
				doc_number(t, json_number_at(o, path) / 1e6, 2);
		}
	}
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
static void draw(struct page *p, const char *id, const json_t *points, const char *name, double unit, struct chart *c,
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
		draw(p, page_text(p, "%s-p50", id), points, "response_p50_ns", 1e3, &time, "Time of an operation");
	if (is_known(points, "throughput_bytes_per_s"))
		draw(p, page_text(p, "%s-bandwidth", id), points, "throughput_bytes_per_s", 1e9, &bandwidth, "Bandwidth");
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

void side_by_side_show(struct page *p, const char *id, const json_t *comparison)
{
	const json_t *points = json_object_get(comparison, "points"), *contest;
	size_t i;

	warn_of_software(p, comparison);
	/* Comparisons that were made before these figures were kept have none. */
	if (json_array_size(json_object_get(json_array_get(points, 0), "figures")) == 0)
		return;
	json_array_foreach(json_object_get(comparison, "sizes"), i, contest) {
		if (i < POINTS_MAX)
			say_contest(p, contest);
	}
	draw_sizes(p, id, points);
	show_figures(p, id, points);
	show_stages(p, id, points);
}
