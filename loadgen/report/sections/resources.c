/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections on the cost of clients (CPU, memory, descriptors, queue pairs), on limits, and on checks of the figures. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/sections/found.h"
#include "loadgen/report/sections/trend.h"

#define MIB (1 / 1048576.0)
#define BUSY 0.9

static const struct figures cpu = {
	"cpu", "CPUs in use", "CPUs in use", "CPUs in use for each number of clients.", false, 3, {
		{ "server#CPUs", PAGE_CPUS("resources.server"), 1, 2 },
		{ "generator#CPUs", PAGE_CPUS("resources.generator"), 1, 2 },
		{ "generator's machine#CPUs", PAGE_MACHINE_CPUS, 1, 2 },
	},
};

static const struct figures memory = {
	"memory", "Memory", "MiB", "Memory for each number of clients.", false, 4, {
		{ "server resident#MiB", "resources.server.rss_bytes", MIB, 2 },
		{ "server pinned#MiB", "resources.server.pinned_bytes", MIB, 2 },
		{ "generator resident#MiB", "resources.generator.rss_bytes", MIB, 2 },
		{ "kernel#MiB", "resources.server.machine_kernel_bytes", MIB, 2 },
	},
};

static const struct figures counts = {
	"counts", "Descriptors, queue pairs, completion queues, memory regions", "in use",
	"Descriptors, queue pairs, completion queues and memory regions for each number of clients.", false, 8, {
		{ "server descriptors#", "resources.server.fds", 1, 0 },
		{ "server QPs#", "resources.server.qps", 1, 0 },
		{ "server CQs#", "resources.server.cqs", 1, 0 },
		{ "server MRs#", "resources.server.mrs", 1, 0 },
		{ "generator descriptors#", "resources.generator.fds", 1, 0 },
		{ "generator QPs#", "resources.generator.qps", 1, 0 },
		{ "generator CQs#", "resources.generator.cqs", 1, 0 },
		{ "generator MRs#", "resources.generator.mrs", 1, 0 },
	},
};

static const struct figures lag = {
	"lag", "Behind schedule", "behind schedule, us",
	"How late messages were sent, for each number of clients, both axes logarithmic.", true, 3, {
		{ "p50#us", "schedule_lag_ns.p50", 1e-3, 1 },
		{ "p99#us", "schedule_lag_ns.p99", 1e-3, 1 },
		{ "maximum#us", "schedule_lag_ns.max", 1e-3, 1 },
		{ "over 1 ms late#", "sent_late", 1, 0 },
	},
};

static void say_cpu(struct page *p, const struct trend *v)
{
	double cores = json_number_at(p->run, "environment.server.cores");
	size_t i = v[0].last;

	if (v[0].known)
		doc_text(p->doc, "cpu-used", "With %s the server used %.2f of its machine's %s CPUs, and the generator "
			 "%.2f.", page_clients(p, v[0].x[i]), v[0].y[i], page_count(p, cores), v[1].y[i]);
	if (v[0].known && v[2].y[i] / json_number_at(p->run, "environment.clients.cores") > BUSY)
		doc_note(p->doc, DOC_WARN, "cpu-full", "The generator's machine was busy on %.2f of its CPUs there: it "
			 "had no CPU time left, and this limits the figures.", v[2].y[i]);
	doc_text(p->doc, NULL, "The machine's figure includes kernel work that is charged to no process; Soft-RoCE "
		 "does much of its work that way.");
}

static bool show_figures(struct page *p, const struct figures *f, double bytes)
{
	struct trend v[FIGURES_MAX];

	if (!figures_read(p, f, bytes, v))
		return false;
	if (f == &cpu)
		say_cpu(p, v);
	figures_show(p, f, v);
	return true;
}

static const struct slope {
	const char *name, *words;
	double unit;
	const char *cells;		/* of its row */
} slopes[] = {
	{ "rss_bytes", "resident memory, KiB", 1024, "ss02220" },
	{ "pinned_bytes", "pinned memory, KiB", 1024, "ss02220" },
	{ "machine_kernel_bytes", "memory of the machine's kernel, KiB", 1024, "ss02220" },
	{ "fds", "descriptors", 1, "ss13330" },
	{ "qps", "queue pairs", 1, "ss13330" },
	{ "cqs", "completion queues", 1, "ss13330" },
	{ "mrs", "memory regions", 1, "ss13330" },
};

static void add_line(struct doc_table *t, const char *side, const char *words, const struct line *l, double unit,
		     const char *cells)
{
	if (isfinite(l->slope.value))
		page_add(t, DOC_PLAIN, cells, side, words, l->base.value / unit, l->slope.value / unit,
			 l->slope.low / unit, l->slope.high / unit, (double)l->n);
}

static struct line line_of(const struct page *p, const char *name, bool server)
{
	const struct read_figure figure = { .name = name, .server = server, .generator = !server };
	struct read_use use;

	read_use(p->run, &figure, &use);
	return use.line;
}

/* CPU time is released at once, unlike memory and queue pairs, so its line goes through all points. */
static void add_lines(struct page *p, struct doc_table *t, const char *side, double bytes)
{
	struct trend v = trend_figure(p, p->points, bytes, strcmp(side, "server") == 0 ? PAGE_CPUS("resources.server") :
					PAGE_CPUS("resources.generator"), 1);
	struct line line = stats_line(v.x, v.y, v.n);

	add_line(t, side, "CPUs in use", &line, 1, "ss24440");
	for (size_t i = 0; i < sizeof(slopes) / sizeof(slopes[0]); i++) {
		line = line_of(p, slopes[i].name, strcmp(side, "server") == 0);
		add_line(t, side, slopes[i].words, &line, slopes[i].unit, slopes[i].cells);
	}
}

static void show_slopes(struct page *p, double bytes)
{
	struct line rss = line_of(p, "rss_bytes", true), qps = line_of(p, "qps", true);
	const char *each = page_count(p, qps.slope.value);
	struct doc_table *t;

	doc_heading(p->doc, "What one client more costs");
	if (!isfinite(rss.slope.value)) {
		doc_text(p->doc, "slopes-none", "Not known: this takes at least two numbers of clients.");
		return;
	}
	doc_text(p->doc, "slopes-said", "By a straight line through the steps, each client more costs the server %s of "
		 "resident memory and %s queue pair%s; without clients it has %s.", page_bytes(p, rss.slope.value),
		 each, strcmp(each, "1") == 0 ? "" : "s", page_bytes(p, rss.base.value));
	t = page_table(p, "slopes", "Straight lines through the steps: what is in use without clients, and what each "
		       "client adds, with its 95 % interval.", "side;resource;without clients#;each "
		       "client#;low#;high#;steps#");
	add_lines(p, t, "server", bytes);
	add_lines(p, t, "generator", bytes);
}

#define PLAN_MISSED 0.15		/* largest deviation, as a share of what was used */
#define PLAN_ROWS_MAX 64		/* a plan has fewer */

/* True if plan and use deviate. More descriptors planned than sampled are no deviation: samples may miss their peak,
 * which occurs while clients connect. */
static bool is_missed(const json_t *row)
{
	double ratio = json_number_at(row, "ratio");
	bool may_be_more = strcmp(page_text_at(row, "resource", ""), "fds") == 0;

	return ratio < 1 - PLAN_MISSED || (ratio > 1 + PLAN_MISSED && isfinite(ratio) && !may_be_more);
}

/* A figure of a row of `plan`, in its resource's unit. */
static const char *planned_figure(struct page *p, const json_t *row, const char *name)
{
	const char *resource = page_text_at(row, "resource", ""), *unit = strstr(resource, "_bytes");

	return page_in_unit(p, json_number_at(row, name), unit && !unit[6] ? "bytes" : "");
}

const char *resources_plan_missed(struct page *p)
{
	const char *all = "";
	const json_t *row;
	size_t i;

	json_array_foreach(json_at(p->run, "plan.rows"), i, row)
		if (i < PLAN_ROWS_MAX && is_missed(row))
			all = page_text(p, "%s%s%s (%s): %s planned, %s used", all, *all ? "; " : "",
					page_text_at(row, "what", "?"), found_side_words(json_text_at(row, "side")),
					planned_figure(p, row, "needed"), planned_figure(p, row, "used"));
	return all;
}

static void show_planned(struct page *p)
{
	const char *missed = resources_plan_missed(p);
	struct doc_table *t;
	const json_t *row;
	size_t i;

	doc_heading(p->doc, "Planned and used");
	if (!json_array_size(json_at(p->run, "plan.rows"))) {
		doc_text(p->doc, "planned-none", "Not known: a run has no plan if it used several load hosts or "
			 "servers, if no client connected, or if an older version made it.");
		return;
	}
	doc_text(p->doc, "planned-said", "What the plan expects for %s, and the most that a step used. %s%s.",
		 page_clients(p, json_number_at(p->run, "plan.clients")), *missed ? "Off by more than 15 % are " :
		 "Nothing that was measured is off by more than 15 %", missed);
	t = page_table(p, "planned", "Resources that a run measures.", "resource;side;planned;used;planned / used#");
	json_array_foreach(json_at(p->run, "plan.rows"), i, row)
		if (i < PLAN_ROWS_MAX && isfinite(json_number_at(row, "used")))
			page_add(t, is_missed(row) ? DOC_WARN : DOC_PLAIN, "ssss2", page_text_at(row, "what", "?"),
				 found_side_words(json_text_at(row, "side")), planned_figure(p, row, "needed"),
				 planned_figure(p, row, "used"), json_number_at(row, "ratio"));
}

void section_resources(struct page *p)
{
	double bytes;
	bool any;

	doc_section(p->doc, "resources", "CPU, memory and what else clients take");
	bytes = page_smallest_size(p);
	any = show_figures(p, &cpu, bytes);
	any |= show_figures(p, &memory, bytes);
	any |= show_figures(p, &counts, bytes);
	if (any)
		show_slopes(p, bytes);
	else
		doc_text(p->doc, "resources-none", "Nothing is known: both sides are read at the end of a step's "
			 "measured time, and no step reached it.");
	show_planned(p);
}

/* Says whether the number of clients that reaches a limit was measured or projected, or why it is not known. */
static const char *known_how(const json_t *l)
{
	double each = json_number_at(l, "per_client");

	if (json_is_true(json_at(l, "measured")))
		return "measured";
	if (isfinite(json_number_at(l, "projected_clients")))
		return "projected";
	return isfinite(each) ? "does not grow" : "not known: one number of clients";
}

static void add_limit(struct page *p, struct doc_table *t, const json_t *l, double measured_clients)
{
	double used = json_number_at(l, "used"), limit = json_number_at(l, "limit");
	double at = json_number_at(l, "projected_clients");
	const char *resource = json_text_at(l, "resource");
	const char *(*shown)(struct page *, double) = strstr(resource, "mem") || strcmp(resource, "network") == 0 ||
		used > 1e9 ? page_bytes : page_count;

	page_add(t, json_is_true(json_at(l, "measured")) ? DOC_BAD : at < 2 * measured_clients ? DOC_WARN : DOC_PLAIN,
		 "ssss2s0ss", resource, found_side_words(json_text_at(l, "side")), shown(p, used), shown(p, limit),
		 100 * used / limit, shown(p, json_number_at(l, "per_client")), at, known_how(l),
		 json_text_at(l, "option"));
}

void section_limits(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0), *l;
	double at = json_number_at(first, "projected_clients"), most = 0;
	struct doc_table *t;
	size_t i;

	doc_section(p->doc, "limits", "Limits, and where they end");
	if (json_array_size(p->limits) == 0) {
		doc_text(p->doc, "limits-none", "No use of a limit is known: both sides are read at the end of a "
			 "step's measured time, and no step reached it.");
		return;
	}
	if (isfinite(at))
		doc_text(p->doc, "limits-first", "The first limit to be reached is %s, at about %s by the line through "
			 "the steps%s.", found_limit_words(p, first), page_clients(p, at),
			 json_is_true(json_at(first, "measured")) ? "; this run came close to it" : "");
	else
		doc_text(p->doc, "limits-do-not-grow", "As far as the steps show, more clients bring no limit closer.");
	doc_text(p->doc, NULL, "A projection extends a straight line. It shows which limit to raise first; it does not "
		 "show that the server would work with that many clients.");
	t = page_table(p, "limits", "In the order in which they are reached.",
		       "resource;side;used#;limit#;used#%;each client#;ends at#clients;known how;raised with");
	for (i = 0; i < p->points->n; i++)
		most = fmax(most, p->points->v[i].clients);
	json_array_foreach(p->limits, i, l) {
		add_limit(p, t, l, most);
	}
}

#define RESIDUAL_MAX 5.0		/* % */

static void show_residual(struct page *p, const struct trend *v)
{
	struct chart c = { .x_label = "clients", .y_label = "residual, %", .x_log = trend_wants_log(p->points) };
	double worst = 0;
	struct doc_table *t;

	/* Take the largest residual of all runs, because a median would hide a run with wrong figures. */
	for (size_t i = 0; i < v->n; i++) {
		double far = isfinite(v->low[i]) ? fmax(fabs(v->low[i]), fabs(v->high[i])) : fabs(v->y[i]);

		worst = fmax(worst, isfinite(far) ? far : 0);
	}
	doc_text(p->doc, worst <= RESIDUAL_MAX ? "littles-law-holds" : "littles-law-violated",
		 "Little's law: the number of messages in flight is throughput times round trip. The measured figures "
		 "agree within %s at every step%s.", page_percent(p, worst / 100), worst <= RESIDUAL_MAX ?
		 ", so the clients were there and the arithmetic is right" :
		 "; where they differ by more than 5 %, do not trust that step's throughput or round trips");
	trend_draw(&c, v, "1 - throughput x round trip / in flight", false);
	page_rule(&c, RESIDUAL_MAX, false, true, "5 %");
	page_rule(&c, -RESIDUAL_MAX, false, true, "-5 %");
	page_chart(p, "littles-law-chart", "Residual of Little's law", &c,
		   "The residual in per cent for each number of clients, with the bounds of 5 %.");
	t = page_table(p, "littles_law", NULL, "clients#;residual#%");
	for (size_t i = 0; i < v->n; i++)
		page_add(t, fabs(v->y[i]) > RESIDUAL_MAX ? DOC_WARN : DOC_PLAIN, "03", v->x[i], v->y[i]);
}

static void show_lag(struct page *p, const struct trend *v)
{
	size_t i = v[2].last;

	doc_text(p->doc, "lag-said", "In an open loop a message is due at a set time. With %s half of them were sent "
		 "at most %s late, 99 %% at most %s; %s were sent more than 1 ms late. Late messages are still sent, "
		 "and their response time counts from when they were due.", page_clients(p, v[2].x[i]),
		 page_ns(p, v[0].y[i] * 1e3), page_ns(p, v[1].y[i] * 1e3), page_count(p, v[3].y[i]));
	figures_show(p, &lag, v);
}

void section_checks(struct page *p)
{
	struct trend residual, late[FIGURES_MAX];
	double bytes;

	doc_section(p->doc, "checks", "Checks of the measurement: Little's law, schedule");
	bytes = page_smallest_size(p);
	residual = trend_figure(p, p->points, bytes, "littles_law_residual", 100);
	figures_read(p, &lag, bytes, late);
	if (residual.known)
		show_residual(p, &residual);
	if (late[2].known)
		show_lag(p, late);
	if (!residual.known && !late[2].known)
		doc_text(p->doc, "checks-none", "Nothing can be checked: no messages were measured, or clients came "
			 "and went.");
	else if (!residual.known)
		doc_text(p->doc, "littles-law-none", "Little's law is not checked: it needs a closed loop and clients "
			 "that stay.");
	else if (!late[2].known)
		doc_text(p->doc, "lag-none", "In a closed loop no message can be late: the next one is due when the "
			 "reply to the last one arrives.");
}
