/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on what the machines did during the run: CPU, memory, descriptors and clients of both ends against time,
 * with the steps and their phases marked; peaks of the steps beside the figures at the end of the measured time; CPU
 * time and context switches for each operation. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/sections/trend.h"

#define MIB 1048576.
#define ROWS_MAX 200		/* samples shown of a side; run.json has more */
#define SAMPLES_MAX 65536	/* a longer array counts as damaged */

static const char *const sides[] = { "server", "generator" };
#define SIDES (sizeof(sides) / sizeof(sides[0]))

/* Evenly spaced samples of a side. */
struct samples {
	const char *side;
	const json_t *o;
	size_t at[ROWS_MAX];		/* indexes of the samples in the arrays of `o` */
	size_t n;
	double *t_s;
};

static double value_at(const json_t *o, const char *name, size_t i)
{
	const json_t *v = json_array_get(json_object_get(o, name), i);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Growth of a counter per second since the previous sample; NAN if it fell (a new process took its place). */
static double rate(const struct samples *s, const char *name, size_t i)
{
	double span_s, more;

	if (i == 0)
		return NAN;
	span_s = value_at(s->o, "clock_s", s->at[i]) - value_at(s->o, "clock_s", s->at[i - 1]);
	more = value_at(s->o, name, s->at[i]) - value_at(s->o, name, s->at[i - 1]);
	return span_s > 0 && more >= 0 ? more / span_s : NAN;
}

static bool read_samples(struct page *p, const char *side, struct samples *out)
{
	const json_t *o = json_object_get(json_object_get(p->run, "resources_series"), side);
	size_t all = json_array_size(json_object_get(o, "t_s")), n;

	*out = (struct samples){ .side = side, .o = o };
	if (all == 0 || all > SAMPLES_MAX)
		return false;
	n = all < ROWS_MAX ? all : ROWS_MAX;
	out->t_s = page_numbers(p, n);
	if (!out->t_s)
		return false;
	for (size_t i = 0; i < n; i++) {
		out->at[i] = n > 1 ? i * (all - 1) / (n - 1) : 0;
		out->t_s[i] = value_at(o, "t_s", out->at[i]);
	}
	out->n = n;
	return true;
}

/* A short name for the three phases of a step that are marked; the name itself for others, NULL for NULL. */
static const char *short_phase(const char *name)
{
	static const struct page_words words[] = {
		{ "connecting", "connect" }, { "measuring", "measure" }, { "disconnecting", "leave" },
	};

	return page_words(words, sizeof(words) / sizeof(words[0]), name, NULL);
}

static void mark_phases(struct chart *c, const json_t *phases)
{
	const json_t *names = json_object_get(phases, "name"), *name;
	size_t i;

	json_array_foreach((json_t *)names, i, name) {
		const char *text = json_string_value(name), *words = text ? short_phase(text) : NULL;

		if (words && words != text)
			page_rule(c, value_at(phases, "t_s", i), true, false, words);
	}
}

/* Marks the phases of steps, or if there is no room for these, the starts of as many steps as possible. */
static void mark(struct page *p, struct chart *c)
{
	const json_t *steps = json_object_get(p->run, "steps");
	size_t n = json_array_size(steps), marks = n < CHART_RULES_MAX ? n : CHART_RULES_MAX;

	if (3 * n <= CHART_RULES_MAX) {
		mark_phases(c, json_at(p->run, "resources_series.phases"));
		return;
	}
	for (size_t i = 0; i < marks; i++) {
		const json_t *step = json_array_get(steps, marks > 1 ? i * (n - 1) / (marks - 1) : 0);

		page_rule(c, json_number_at(step, "started_s"), true, false,
			  page_count(p, json_number_at(step, "target_clients")));
	}
}

struct curve {
	const char *label, *name;
	double unit;
	bool is_rate, right;
};

static void draw_curve(struct page *p, struct chart *c, const struct samples *s, const struct curve *v, bool name_side)
{
	double *y = page_numbers(p, s->n);
	bool known = false;

	for (size_t i = 0; y && i < s->n; i++) {
		y[i] = (v->is_rate ? rate(s, v->name, i) : value_at(s->o, v->name, s->at[i])) / v->unit;
		known |= isfinite(y[i]);
	}
	if (known)
		page_series(c, (struct chart_series){ .label = name_side ? page_text(p, "%s %s", s->side, v->label) :
						      v->label,
						      .mark = CHART_LINE_PLAIN, .x = s->t_s, .y = y, .n = s->n,
						      .right = v->right });
}

static void show_cpu(struct page *p, const struct samples *s)
{
	static const struct curve curves[] = {
		{ "user", "machine_user_s", 1, true, false },
		{ "system", "machine_system_s", 1, true, false },
		{ "softirq", "machine_softirq_s", 1, true, false },
		{ "idle", "machine_idle_s", 1, true, false },
		{ "its own process: user", "cpu_user_s", 1, true, false },
		{ "its own process: system", "cpu_system_s", 1, true, false },
	};
	struct chart c = { .x_label = "seconds since the run began", .y_label = "CPUs" };

	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
		draw_curve(p, &c, s, &curves[i], false);
	mark(p, &c);
	page_chart(p, page_text(p, "machines-cpu-%s", s->side), page_text(p, "CPUs of the %s's machine", s->side), &c,
		   page_text(p, "CPUs of the %s's machine in user, system, softirq and idle time, and those of its "
			     "process, against time.", s->side));
}

static void show_both(struct page *p, const struct samples *s, const char *id, const char *title, const char *y_label,
		      const struct curve *curves, size_t n)
{
	struct chart c = { .x_label = "seconds since the run began", .y_label = y_label, .right_label = "clients" };

	for (size_t k = 0; k < SIDES; k++)
		for (size_t i = 0; i < n; i++)
			if (s[k].n)
				draw_curve(p, &c, &s[k], &curves[i], true);
	mark(p, &c);
	page_chart(p, id, title, &c, page_text(p, "%s of both ends against time, and the clients connected.", title));
}

static void show_charts(struct page *p, const struct samples *s)
{
	static const struct curve memory[] = {
		{ "resident", "rss_bytes", MIB, false, false }, { "pinned", "pinned_bytes", MIB, false, false },
		{ "clients", "clients_connected", 1, false, true },
	};
	static const struct curve counts[] = {
		{ "descriptors", "fds", 1, false, false }, { "queue pairs", "qps", 1, false, false },
		{ "clients", "clients_connected", 1, false, true },
	};

	for (size_t k = 0; k < SIDES; k++)
		if (s[k].n)
			show_cpu(p, &s[k]);
	show_both(p, s, "machines-memory", "Memory over time", "MiB", memory, sizeof(memory) / sizeof(memory[0]));
	show_both(p, s, "machines-counts", "Descriptors and queue pairs over time", "in use", counts,
		  sizeof(counts) / sizeof(counts[0]));
}

/* The phase that ran at a time. */
static const char *phase_at(const json_t *phases, double t_s)
{
	const json_t *names = json_object_get(phases, "name");
	const char *name = NULL;

	for (size_t i = 0; i < json_array_size(names) && value_at(phases, "t_s", i) <= t_s; i++)
		name = json_string_value(json_array_get(names, i));
	return name;
}

/* The columns of the samples: gauges, and growth of counters per second. */
static const struct {
	const char *title, *name;
	double scale;
	int decimals;
	bool is_rate;
} of_sample[] = {
	{ "process user#CPUs", "cpu_user_s", 1, 2, true }, { "process system#CPUs", "cpu_system_s", 1, 2, true },
	{ "machine user#CPUs", "machine_user_s", 1, 2, true }, { "machine system#CPUs", "machine_system_s", 1, 2,
								 true },
	{ "softirq#CPUs", "machine_softirq_s", 1, 2, true }, { "steal#CPUs", "machine_steal_s", 1, 2, true },
	{ "idle#CPUs", "machine_idle_s", 1, 2, true }, { "busiest core#%", "busiest_core_ratio", 100, 0, false },
	{ "throttled#CPUs", "cgroup_throttled_s", 1, 3, true },
	{ "memory limit reached#1/s", "cgroup_memory_hits", 1, 0, true },
	{ "resident#MiB", "rss_bytes", 1 / MIB, 1, false }, { "pinned#MiB", "pinned_bytes", 1 / MIB, 1, false },
	{ "available#MiB", "machine_available_bytes", 1 / MIB, 1, false },
	{ "slab#MiB", "machine_slab_bytes", 1 / MIB, 1, false },
	{ "runnable#", "machine_runnable", 1, 0, false }, { "descriptors#", "fds", 1, 0, false },
	{ "threads#", "threads", 1, 0, false }, { "clients#", "clients_connected", 1, 0, false },
	{ "connecting#", "clients_connecting", 1, 0, false }, { "QPs#", "qps", 1, 0, false },
	{ "CQs#", "cqs", 1, 0, false },
	{ "MRs#", "mrs", 1, 0, false }, { "voluntary switches#1/s", "switches_voluntary", 1, 0, true },
	{ "involuntary switches#1/s", "switches_involuntary", 1, 0, true },
	{ "completions#1/s", "completions", 1, 0, true },
	{ "polls#1/s", "polls", 1, 0, true }, { "wake-ups#1/s", "wakeups", 1, 0, true },
};
#define OF_SAMPLE (sizeof(of_sample) / sizeof(of_sample[0]))

static void show_samples(struct page *p, const struct samples *s)
{
	const json_t *phases = json_at(p->run, "resources_series.phases");
	const char *titles = "side;time#s;phase";
	struct doc_table *t;

	for (size_t c = 0; c < OF_SAMPLE; c++)
		titles = page_text(p, "%s;%s", titles, of_sample[c].title);
	t = page_table(p, "resources", "Samples of both ends; rates since the row before.", titles);
	for (size_t k = 0; k < SIDES; k++)
		for (size_t i = 0; i < s[k].n; i++) {
			page_add(t, DOC_PLAIN, "s2s", s[k].side, s[k].t_s[i], phase_at(phases, s[k].t_s[i]));
			for (size_t c = 0; c < OF_SAMPLE; c++)
				doc_number(t, of_sample[c].scale * (of_sample[c].is_rate ?
								    rate(&s[k], of_sample[c].name, i) :
					   value_at(s[k].o, of_sample[c].name, s[k].at[i])), of_sample[c].decimals);
		}
}

/* Growth of a counter over all samples; NAN if no sample has it. If the counter falls, a new process has replaced one
 * that ended; what the new process had used before its first sample is not counted. */
static double added(const json_t *a)
{
	double sum = 0, last = 0;
	bool known = false;
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)a, i, v) {
		if (!json_is_number(v))
			continue;
		sum += fmax(json_number_value(v) - last, 0);
		last = json_number_value(v);
		known = true;
	}
	return known ? sum : NAN;
}

static void show_threads(struct page *p, const struct samples *s)
{
	struct doc_table *t = page_table(p, "threads",
					 "CPU time of each thread, from the first sample to the last that has it.",
					 "side;thread;user#s;system#s");
	json_t *thread;
	size_t i;

	for (size_t k = 0; k < SIDES; k++)
		json_array_foreach(json_object_get(s[k].o, "by_thread"), i, thread) {
			page_add(t, DOC_PLAIN, "ss22", s[k].side, page_text_at(thread, "name", "unknown"),
				 added(json_object_get(thread, "cpu_user_s")),
				 added(json_object_get(thread, "cpu_system_s")));
		}
}

static void show_peaks(struct page *p)
{
	static const struct page_column columns[] = {
		{ "CPU peak#CPUs", "peak.cpus", 1, 2 }, { "machine busy peak#%", "peak.machine_busy_ratio", 100, 0 },
		{ "busiest core peak#%", "peak.busiest_core_ratio", 100, 0 }, { "descriptors peak#", "peak.fds", 1, 0 },
		{ "descriptors#", "fds", 1, 0 }, { "resident peak#MiB", "peak.rss_bytes", 1 / MIB, 1 },
		{ "resident#MiB", "rss_bytes", 1 / MIB, 1 },
		{ "available least#MiB", "peak.machine_available_least_bytes", 1 / MIB, 1 },
		{ "threads peak#", "peak.threads", 1, 0 }, { "runnable peak#", "peak.machine_runnable", 1, 0 },
		{ "CPU time stolen#%", "machine_steal_ratio", 100, 2 },
		{ "throttled#s", "cgroup_throttled_s", 1, 3 },
		{ "voluntary switches#", "switches_voluntary", 1, 0 },
		{ "involuntary switches#", "switches_involuntary", 1, 0 },
		{ "CPU per operation#us", "cpu_ns_per_op", 1e-3, 2 }, { "switches per operation#", "switches_per_op", 1,
									3 }, { 0 }
	};
	struct doc_table *t = page_table(p, "peaks",
					 "Peaks from a step's start to its end beside what was in use at the end "
		"of its measured time: medians of the runs. Context switches and CPU time are of the measured time.",
		PAGE_POINT ";side");

	page_columns(p, t, columns);
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < SIDES; k++) {
			page_row(p, t, DOC_PLAIN, p->points->v[i].clients, p->points->v[i].bytes);
			page_cells(t, "s", sides[k]);
			page_cells_at(p, t, columns, &p->points->v[i], page_text(p, "resources.%s", sides[k]));
		}
}

static void say_peak(struct page *p)
{
	const struct point *most = p->points->n ? &p->points->v[p->points->n - 1] : NULL;
	const json_t *r = most && most->n ? json_at(most->steps[most->n - 1], "resources.server") : NULL;
	double fds = read_amount(r, "peak.fds"), at_rest = read_amount(r, "fds"), cpus = read_amount(r, "peak.cpus");
	double available = read_amount(r, "peak.machine_available_least_bytes");

	if (isfinite(fds) && isfinite(at_rest))
		doc_text(p->doc, "machines-peak",
			 "With %s the server had up to %s descriptors, and %s at the end of the measured "
			 "time.%s%s", page_clients(p, most->clients), page_count(p, fds), page_count(p, at_rest),
			 isfinite(cpus) ? page_text(p, " Its process used up to %.2f CPUs.", cpus) : "",
			 isfinite(available) ? page_text(p, " Its machine had at least %s of memory available.",
							 page_bytes(p, available)) : "");
}

void section_machines(struct page *p)
{
	struct samples s[SIDES];
	bool any = false;

	doc_section(p->doc, "machines", "What the machines did");
	for (size_t k = 0; k < SIDES; k++)
		any |= read_samples(p, sides[k], &s[k]);
	if (!any) {
		doc_text(p->doc, "machines-none", "Nothing is known: the run took no samples (--sample-interval).");
		return;
	}
	doc_text(p->doc, "machines-said",
		 "Each side was sampled every %.3g s, from before the first connection until after the "
		 "last one had left. If both ends share a machine, its figures are shown twice.",
		 json_number_at(p->run, "resources_series.interval_s"));
	say_peak(p);
	show_charts(p, s);
	show_samples(p, s);
	show_peaks(p);
	show_threads(p, s);
}
