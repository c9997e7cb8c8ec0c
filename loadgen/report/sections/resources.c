/* What clients cost: CPU, memory, descriptors, queue pairs; the limits of both ends; checks of the measurement itself.
 */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/sections/found.h"
#include "loadgen/report/sections/trend.h"

#define COLUMNS_MAX 8
#define MIB 1048576.0

/* --- charts of several curves and their table --- */

struct column {
	const char *label;
	struct trend v;
};

static void show_columns(struct page *p, const char *id, const char *title, const char *unit, const char *y_label,
			 const struct column *columns, size_t n, int decimals)
{
	struct chart c = { .x_label = "clients", .y_label = y_label, .x_log = trend_wants_log(p->points) };
	struct doc_table *t;

	for (size_t k = 0; k < n; k++)
		trend_draw(&c, &columns[k].v, columns[k].label);
	page_chart(p, page_text(p, "%s-chart", id), title, &c, page_text(p, "%s for each number of clients.", title));
	t = doc_table(p->doc, id, NULL);
	doc_column(t, "clients", NULL, true);
	for (size_t k = 0; k < n; k++)
		doc_column(t, columns[k].label, unit, true);
	for (size_t i = 0; n && i < columns[0].v.n; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, columns[0].v.x[i], 0);
		for (size_t k = 0; k < n; k++)
			doc_number(t, columns[k].v.y[i], decimals);
	}
}

static size_t known_in(const struct column *columns, size_t n)
{
	size_t known = 0;

	for (size_t k = 0; k < n; k++)
		known += columns[k].v.known;
	return known;
}

/* --- CPU --- */

static double cores_of_process(const json_t *step, const void *side)
{
	return read_cores(step, side);
}

static double cores_of_machine(const json_t *step, const void *unused)
{
	(void)unused;
	return read_busy_cores(step);
}

static void say_cpu(struct page *p, const struct column *c)
{
	double cores = json_number_at(p->run, "environment.server.cores");
	size_t i = c[0].v.last;

	if (!c[0].v.known)
		return;
	doc_text(p->doc, NULL, "With %s the server used %.2f of its machine's %s CPUs, and the generator %.2f.",
		 page_clients(p, c[0].v.x[i]), c[0].v.y[i], page_count(p, cores), c[1].v.y[i]);
	if (c[2].v.y[i] / json_number_at(p->run, "environment.clients.cores") > 0.9)
		doc_note(p->doc, DOC_WARN, NULL,
			 "The generator's machine was busy on %.2f of its CPUs there: nothing was left, so the figures "
			 "are those of a full machine.",
			 c[2].v.y[i]);
}

static bool show_cpu(struct page *p, double bytes)
{
	struct column c[] = {
		{ "server", trend_computed(p, p->points, bytes, cores_of_process, "server") },
		{ "generator", trend_computed(p, p->points, bytes, cores_of_process, "generator") },
		{ "generator's machine", trend_computed(p, p->points, bytes, cores_of_machine, NULL) },
	};

	if (!known_in(c, 3))
		return false;
	say_cpu(p, c);
	doc_text(p->doc, NULL, "The machine's figure has the kernel's work that is charged to no process, where Soft-RoCE "
			 "does much of its own.");
	show_columns(p, "cpu", "CPUs in use", "CPUs", "CPUs in use", c, 3, 2);
	return true;
}

/* --- memory and what is counted --- */

static bool show_memory(struct page *p, double bytes)
{
	struct column c[] = {
		{ "server resident", trend_figure(p, p->points, bytes, "resources.server.rss_bytes", 1 / MIB) },
		{ "server pinned", trend_figure(p, p->points, bytes, "resources.server.pinned_bytes", 1 / MIB) },
		{ "generator resident", trend_figure(p, p->points, bytes, "resources.generator.rss_bytes", 1 / MIB) },
		{ "kernel", trend_figure(p, p->points, bytes, "resources.server.machine_kernel_bytes", 1 / MIB) },
	};

	if (!known_in(c, 4))
		return false;
	show_columns(p, "memory", "Memory", "MiB", "MiB", c, 4, 2);
	return true;
}

static bool show_counts(struct page *p, double bytes)
{
	static const char *const sides[] = { "server", "generator" };
	static const char *const names[] = { "fds", "qps", "cqs", "mrs" };
	static const char *const words[] = { "descriptors", "QPs", "CQs", "MRs" };
	struct column c[COLUMNS_MAX];
	char path[64];

	for (size_t i = 0; i < COLUMNS_MAX; i++) {
		snprintf(path, sizeof(path), "resources.%s.%s", sides[i / 4], names[i % 4]);
		c[i].label = page_text(p, "%s %s", sides[i / 4], words[i % 4]);
		c[i].v = trend_figure(p, p->points, bytes, path, 1);
	}
	if (!known_in(c, COLUMNS_MAX))
		return false;
	show_columns(p, "counts", "Descriptors, queue pairs, completion queues, memory regions", NULL, "in use", c,
		     COLUMNS_MAX, 0);
	return true;
}

/* --- what one client more costs --- */

struct slope {
	const char *name, *words;
	bool in_bytes;
};

static const struct slope slopes[] = {
	{ "rss_bytes", "resident memory", true }, { "pinned_bytes", "pinned memory", true },
	{ "machine_kernel_bytes", "memory of the machine's kernel", true }, { "fds", "descriptors", false },
	{ "qps", "queue pairs", false }, { "cqs", "completion queues", false }, { "mrs", "memory regions", false },
};

static void add_slope(struct page *p, struct doc_table *t, const struct slope *s, bool server)
{
	struct read_figure figure = { .name = s->name, .server = server, .generator = !server };
	double unit = s->in_bytes ? 1024 : 1;
	struct read_use use;

	read_use(p->run, &figure, &use);
	if (!isfinite(use.line.slope.value))
		return;
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "%s", server ? "server" : "generator");
	doc_cell(t, "%s%s", s->words, s->in_bytes ? ", KiB" : "");
	doc_number(t, use.line.base.value / unit, s->in_bytes ? 0 : 1);
	doc_number(t, use.line.slope.value / unit, s->in_bytes ? 2 : 3);
	doc_number(t, use.line.slope.low / unit, s->in_bytes ? 2 : 3);
	doc_number(t, use.line.slope.high / unit, s->in_bytes ? 2 : 3);
	doc_number(t, (double)use.line.n, 0);
}

/* CPU time of a process is no count that it holds, so its line goes through the points, not through its use. */
static void add_cpu_slope(struct page *p, struct doc_table *t, const char *side, double bytes)
{
	struct trend v = trend_computed(p, p->points, bytes, cores_of_process, side);
	struct line line = stats_line(v.x, v.y, v.n);

	if (!isfinite(line.slope.value))
		return;
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "%s", side);
	doc_cell(t, "CPUs in use");
	doc_number(t, line.base.value, 2);
	doc_number(t, line.slope.value, 4);
	doc_number(t, line.slope.low, 4);
	doc_number(t, line.slope.high, 4);
	doc_number(t, (double)line.n, 0);
}

static void show_slopes(struct page *p, double bytes)
{
	struct read_figure rss = { .name = "rss_bytes", .server = true }, qps = { .name = "qps", .server = true };
	struct read_use memory, queues;
	struct doc_table *t;

	doc_heading(p->doc, "What one client more costs");
	read_use(p->run, &rss, &memory);
	read_use(p->run, &qps, &queues);
	if (!isfinite(memory.line.slope.value)) {
		doc_text(p->doc, NULL, "Not known: it takes two numbers of clients at least.");
		return;
	}
	doc_text(p->doc, NULL,
		 "By a straight line through the steps, each client more costs the server %s of resident memory and %s "
		 "queue pair%s; without any client it has %s.",
		 page_bytes(p, memory.line.slope.value), page_count(p, queues.line.slope.value),
		 strcmp(page_count(p, queues.line.slope.value), "1") == 0 ? "" : "s",
		 page_bytes(p, memory.line.base.value));
	t = doc_table(p->doc, "slopes",
		      "Straight lines through the steps: what there is without clients, and what each adds, with its "
		      "95 % interval.");
	doc_column(t, "side", NULL, false);
	doc_column(t, "resource", NULL, false);
	doc_column(t, "without clients", NULL, true);
	doc_column(t, "each client", NULL, true);
	doc_column(t, "low", NULL, true);
	doc_column(t, "high", NULL, true);
	doc_column(t, "steps", NULL, true);
	for (int side = 0; side < 2; side++) {
		add_cpu_slope(p, t, side == 0 ? "server" : "generator", bytes);
		for (size_t i = 0; i < sizeof(slopes) / sizeof(slopes[0]); i++)
			add_slope(p, t, &slopes[i], side == 0);
	}
}

void section_resources(struct page *p)
{
	double bytes = p->points->n_sizes ? p->points->sizes[0] : NAN;
	bool any;

	doc_section(p->doc, "resources", "CPU, memory and what else clients take");
	if (p->points->n_sizes > 1)
		doc_text(p->doc, NULL, "Shown for messages of %s, the smallest of %zu sizes.", page_bytes(p, bytes),
			 p->points->n_sizes);
	any = show_cpu(p, bytes);
	any |= show_memory(p, bytes);
	any |= show_counts(p, bytes);
	if (any)
		show_slopes(p, bytes);
	else
		doc_text(p->doc, NULL, "Nothing is known: no step came to its measured time, at whose end both sides are "
				 "read.");
}

/* --- limits --- */

static const char *name_of(const json_t *limit, const char *key)
{
	const char *text = json_text_at(limit, key);

	return text ? text : "unknown";
}

static void add_limit(struct page *p, struct doc_table *t, const json_t *l, double measured_clients)
{
	double used = json_number_at(l, "used"), limit = json_number_at(l, "limit");
	double at = json_number_at(l, "projected_clients");
	const char *resource = name_of(l, "resource");
	bool in_bytes = strstr(resource, "mem") || used > 1e9;

	doc_row(t, json_is_true(json_at(l, "measured")) ? DOC_BAD : at < 2 * measured_clients ? DOC_WARN : DOC_PLAIN);
	doc_cell(t, "%s", resource);
	doc_cell(t, "%s", found_side_words(json_text_at(l, "side")));
	doc_cell(t, "%s", in_bytes ? page_bytes(p, used) : page_count(p, used));
	doc_cell(t, "%s", in_bytes ? page_bytes(p, limit) : page_count(p, limit));
	doc_number(t, 100 * used / limit, 2);
	doc_cell(t, "%s",
		 in_bytes ? page_bytes(p, json_number_at(l, "per_client"))
			  : page_count(p, json_number_at(l, "per_client")));
	doc_number(t, at, 0);
	doc_cell(t, "%s",
		 json_is_true(json_at(l, "measured")) ? "measured"
		 : isfinite(at)			      ? "projected"
		 : isfinite(json_number_at(l, "per_client")) ? "does not grow"
							     : "one number of clients: not known");
	doc_cell(t, "%s", json_text_at(l, "option") ? json_text_at(l, "option") : "");
}

static double most_clients(const struct points *points)
{
	double most = 0;

	for (size_t i = 0; i < points->n; i++)
		most = fmax(most, points->v[i].clients);
	return most;
}

void section_limits(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0), *l;
	double at = json_number_at(first, "projected_clients");
	struct doc_table *t;
	size_t i;

	doc_section(p->doc, "limits", "Limits, and where they end");
	if (json_array_size(p->limits) == 0) {
		doc_text(p->doc, NULL, "Nothing is known of limits: no step came to its measured time, at whose end both "
				 "sides are read.");
		return;
	}
	if (isfinite(at))
		doc_text(p->doc, NULL, "The first limit to end is %s (%s), at about %s by the line through the steps%s.",
			 found_resource_words(json_text_at(first, "resource")),
			 found_side_words(json_text_at(first, "side")), page_clients(p, at),
			 json_is_true(json_at(first, "measured")) ? ", and this run came close to it" : "");
	else
		doc_text(p->doc, NULL, "No limit comes nearer with more clients, as far as the steps show.");
	doc_text(p->doc, NULL, "A projection goes on in a straight line; it says which limit to raise first, not that the "
			 "server would work up to there.");
	t = doc_table(p->doc, "limits", "In the order in which they end.");
	doc_column(t, "resource", NULL, false);
	doc_column(t, "side", NULL, false);
	doc_column(t, "used", NULL, true);
	doc_column(t, "limit", NULL, true);
	doc_column(t, "used", "%", true);
	doc_column(t, "each client", NULL, true);
	doc_column(t, "ends at", "clients", true);
	doc_column(t, "known how", NULL, false);
	doc_column(t, "raised with", NULL, false);
	json_array_foreach(p->limits, i, l) {
		add_limit(p, t, l, most_clients(p->points));
	}
}

/* --- checks --- */

#define RESIDUAL_MAX 0.05

static void show_residual(struct page *p, const struct trend *v)
{
	struct chart c = { .x_label = "clients", .y_label = "residual, %", .x_log = trend_wants_log(p->points) };
	double worst = 0;
	struct doc_table *t;

	/* Of every run, not of their median, which hides one that is wrong. */
	for (size_t i = 0; i < v->n; i++) {
		double far = isfinite(v->low[i]) ? fmax(fabs(v->low[i]), fabs(v->high[i])) : fabs(v->y[i]);

		worst = fmax(worst, isfinite(far) ? far : 0);
	}
	doc_text(p->doc, NULL,
		 "Little's law says that clients in flight are throughput times round trip. It holds here within %s at "
		 "every step%s.",
		 page_percent(p, worst / 100),
		 worst <= 100 * RESIDUAL_MAX ? ", so the clients were really there and the arithmetic is right"
					     : ": beyond 5 %, throughput or round trips of that step are not to be "
					       "believed");
	trend_draw(&c, v, "1 - throughput x round trip / in flight");
	page_rule(&c, 100 * RESIDUAL_MAX, false, true, "5 %");
	page_rule(&c, -100 * RESIDUAL_MAX, false, true, "-5 %");
	page_chart(p, "littles-law-chart", "Residual of Little's law", &c,
		   "The residual in per cent for each number of clients, with the bounds of 5 %.");
	t = doc_table(p->doc, "littles_law", NULL);
	doc_column(t, "clients", NULL, true);
	doc_column(t, "residual", "%", true);
	for (size_t i = 0; i < v->n; i++) {
		doc_row(t, fabs(v->y[i]) > 100 * RESIDUAL_MAX ? DOC_WARN : DOC_PLAIN);
		doc_number(t, v->x[i], 0);
		doc_number(t, v->y[i], 3);
	}
}

static void show_lag(struct page *p, double bytes)
{
	struct trend p50 = trend_figure(p, p->points, bytes, "schedule_lag_ns.p50", 1e-3);
	struct trend p99 = trend_figure(p, p->points, bytes, "schedule_lag_ns.p99", 1e-3);
	struct trend max = trend_figure(p, p->points, bytes, "schedule_lag_ns.max", 1e-3);
	struct trend late = trend_figure(p, p->points, bytes, "sent_late", 1);
	struct chart c = { .x_label = "clients", .y_label = "behind schedule, us", .x_log = true, .y_log = true };
	struct doc_table *t;

	doc_text(p->doc, NULL,
		 "An open loop sends when messages are due. With %s half of them were sent at most %s late, 99 %% at "
		 "most %s; %s were sent more than 1 ms late. Late ones are sent all the same, and timed from when they "
		 "were due.",
		 page_clients(p, max.x[max.last]), page_ns(p, p50.y[max.last] * 1e3), page_ns(p, p99.y[max.last] * 1e3),
		 page_count(p, late.y[max.last]));
	trend_draw(&c, &p50, "p50");
	trend_draw(&c, &p99, "p99");
	trend_draw(&c, &max, "maximum");
	page_chart(p, "lag-chart", "Behind schedule", &c,
		   "How late messages were sent, for each number of clients, both axes logarithmic.");
	t = doc_table(p->doc, "lag", NULL);
	doc_column(t, "clients", NULL, true);
	doc_column(t, "p50", "us", true);
	doc_column(t, "p99", "us", true);
	doc_column(t, "maximum", "us", true);
	doc_column(t, "over 1 ms late", NULL, true);
	for (size_t i = 0; i < max.n; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, max.x[i], 0);
		doc_number(t, p50.y[i], 1);
		doc_number(t, p99.y[i], 1);
		doc_number(t, max.y[i], 1);
		doc_number(t, late.y[i], 0);
	}
}

void section_checks(struct page *p)
{
	double bytes = p->points->n_sizes ? p->points->sizes[0] : NAN;
	struct trend residual = trend_figure(p, p->points, bytes, "littles_law_residual", 100);
	struct trend lag = trend_figure(p, p->points, bytes, "schedule_lag_ns.max", 1e-3);

	doc_section(p->doc, "checks", "Checks of the measurement: Little's law, schedule");
	if (p->points->n_sizes > 1)
		doc_text(p->doc, NULL, "Shown for messages of %s, the smallest of %zu sizes.", page_bytes(p, bytes),
			 p->points->n_sizes);
	if (residual.known)
		show_residual(p, &residual);
	if (lag.known)
		show_lag(p, bytes);
	if (!residual.known && !lag.known)
		doc_text(p->doc, NULL, "Nothing to check: no messages were measured, or clients came and went.");
	else if (!residual.known)
		doc_text(p->doc, NULL, "Little's law is not checked: it needs a closed loop and clients that stay.");
	else if (!lag.known)
		doc_text(p->doc, NULL, "There is no schedule to be late for: in a closed loop the next message is due when "
				 "the last has come back.");
}
