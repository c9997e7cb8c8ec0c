/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting: where the time goes by stage, connections and clients over time. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/fail.h"
#include "common/base/json_at.h"
#include "loadgen/report/sections/found.h"
#include "loadgen/report/sections/trend.h"

static double stage_ms(const struct point *at, const char *stage, const char *percentile)
{
	char path[96];

	snprintf(path, sizeof(path), "connect_ns.%s.%s", stage, percentile);
	return point_range(at, path).value / 1e6;
}

#define ALL_STAGES(percentile) \
	PAGE_STAGES("connect_ns.", percentile), { "total#ms", "connect_ns.total" percentile, 1e-6, 3 }, \
	{ "psn_generate#ms", "connect_ns.psn_generate" percentile, 1e-6, 3 }, { 0 }

static const struct page_column times[] = {
	{ "tried#clients", "tried", 1, 0 }, { "connected#clients", "connected", 1, 0 },
	{ "least#ms", "connect_ns.total.min", 1e-6, 3 }, { "median#ms", "connect_ns.total.p50", 1e-6, 3 },
	{ "p99#ms", "connect_ns.total.p99", 1e-6, 3 }, { "most#ms", "connect_ns.total.max", 1e-6, 3 },
	{ "longest stage", "longest.p50.stage", 0, 0 }, { "its median#ms", "longest.p50.ns", 1e-6, 3 },
	{ "its share#%", "longest.p50.ratio", 100, 0 }, { "longest stage of the p99", "longest.p99.stage", 0, 0 },
	{ "its p99#ms", "longest.p99.ns", 1e-6, 3 }, { 0 }
};

static void add_times(struct page *p, struct doc_table *t, const char *when, const json_t *o, double alone_ns)
{
	page_add(t, DOC_PLAIN, "s", when);
	page_cells_of(p, t, times, o);
	page_cells(t, "1", json_number_at(o, "connect_ns.total.p50") / alone_ns);
}

/* Adds the last run of a number of clients. */
static void add_times_among(struct page *p, struct doc_table *t, const struct point *at, double alone_ns)
{
	const json_t *step = at->steps[at->n - 1];
	json_t *o = json_pack("{s:O?, s:O?, s:O?, s:O?}", "tried", json_at(step, "attempted"), "connected",
			      json_at(step, "connected_peak"), "connect_ns", json_at(step, "connect_ns"), "longest",
			      json_at(step, "connect_longest"));

	add_times(p, t, page_text(p, "among %s%s", page_clients(p, at->clients), page_with_size(p, at->bytes)), o,
		  alone_ns);
	json_decref(o);
}

/* Compares the time of connections made one at a time with that of connections made together. */
static void show_alone(struct page *p, const struct point *at)
{
	const json_t *before = json_at(p->run, "floor.before"), *after = json_at(p->run, "floor.after");
	double alone_ns = json_number_at(before, "connect_ns.total.p50"), total_ns = stage_ms(at, "total", "p50") * 1e6;
	struct doc_table *t;

	if (!json_is_object(before))
		return;
	if (isfinite(alone_ns) && isfinite(total_ns))
		doc_text(p->doc, "alone-said",
			 "One client at a time connected to the idle server in %s (median); with %s it took %.1f times "
			 "as long.", page_ns(p, alone_ns), page_clients(p, at->clients),
			 total_ns / alone_ns);
	t = page_table(p, "alone",
		       "Clients that connected one at a time, before the first step and after the last, and the "
		       "clients of the last run of each number.", "when");
	page_columns(p, t, times);
	doc_column(t, "times the first median", NULL, true);
	add_times(p, t, "before the first step", before, alone_ns);
	for (size_t i = 0; i < p->points->n; i++)
		add_times_among(p, t, &p->points->v[i], alone_ns);
	if (json_is_object(after))
		add_times(p, t, "after the last step", after, alone_ns);
}

/* The percentiles shown for all stages, each as bars and as a table. */
static const struct shown_percentile {
	const char *percentile, *table, *chart, *title, *y_label, *caption, *id_none, *none;
	struct page_column columns[13];
} shown[] = {
	{ "p50", "stages", "stages-chart", "Connection stages, medians", "median of each stage, ms",
	  "Medians of the stages. They do not add up exactly to the median of the whole. psn_generate is a part of "
	  "psn_exchange.",
	  "stages-p50-none", "The medians are not known: they need 5 connections in a step.", { ALL_STAGES(".p50") } },
	{ "p99", "stages_p99", "stages-p99-chart", "Connection stages, p99", "p99 of each stage, ms",
	  "The p99 of the stages. A connection that is slow in one stage is rarely slow in all, so their sum is above "
	  "the p99 of the whole.",
	  "stages-p99-none", "The p99 of the stages is not known: it needs 299 connections in a step.",
	  { ALL_STAGES(".p99") } },
};

static void show_stages(struct page *p, const struct bars *bars, const struct shown_percentile *s)
{
	struct chart c = { .x_label = "clients", .y_label = s->y_label };
	bool any = false;

	bars_name(p, bars, &c);
	for (int stage = 0; stage < STAGE_TIMED; stage++) {
		double *ms = page_numbers(p, bars->n);

		for (size_t i = 0; ms && i < bars->n; i++)
			ms[i] = stage_ms(bars->v[i], stage_names[stage], s->percentile);
		any |= bars_add(p, bars, &c, stage_names[stage], ms);
	}
	if (!any) {
		doc_text(p->doc, s->id_none, "%s", s->none);
		return;
	}
	page_chart(p, s->chart, s->title, &c,
		   "One bar for each number of clients, made of the stages of a connection, one above the other.");
	page_points(p, s->table, s->caption, s->columns);
}

static void show_other_stages(struct page *p)
{
	static const struct page_column of_server[] = {
		{ "tls_accept#ms", "server_stages_ns.tls_accept.p50", 1e-6, 3 },
		{ "psn_generate#ms", "server_stages_ns.psn_generate.p50", 1e-6, 3 },
		{ "qp_setup#ms", "server_stages_ns.qp_setup.p50", 1e-6, 3 },
		{ "accept_to_established#ms", "server_stages_ns.accept_to_established.p50", 1e-6, 3 }, { 0 }
	};
	static const struct page_column phases[] = { PAGE_STAGES("phase_ns_per_connection.", ""), { 0 } };
	static const struct page_column handshakes[] = {
		{ "full handshakes#", "handshakes.full", 1, 0 }, { "full p50#ms", "connect_full_ns.total.p50", 1e-6,
								   3 },
		{ "sessions resumed#", "handshakes.resumed", 1, 0 }, { "resumed p50#ms", "connect_resumed_ns.total.p50",
								       1e-6, 3 },
		{ 0 }
	};

	if (!page_points(p, "server_stages",
			 "The server's own stages, medians, by its clock; tls_accept counts only full "
			 "handshakes.", of_server))
		doc_text(p->doc, "server-stages-none",
			 "The server's own stages are not known: its report is missing, or "
			 "covers more than one step.");
	page_points(p, "phases", "With --phased: the time of each phase, for each connection.", phases);
	page_points(p, "handshakes", "TLS handshakes, and the median time of connecting with each kind.", handshakes);
}

/* Sum of a figure over all steps; steps that lack it are skipped. */
static double sum_of_steps(const struct page *p, const char *path)
{
	const json_t *step;
	double sum = 0;
	size_t i;

	json_array_foreach(json_at(p->run, "steps"), i, step)
		sum += fmax(json_number_at(step, path), 0);
	return sum;
}

static void show_psns(struct page *p)
{
	static const struct page_column columns[] = {
		{ "exchanged#", "psns.exchanged", 1, 0 }, { "distinct#", "psns.distinct", 1, 0 },
		{ "redrawn#by clients", "psns.redrawn", 1, 0 }, { "redrawn#by server", "psns.server_redrawn", 1, 0 },
		{ "read back#by clients", "psn_verified", 1, 0 },
		{ "read back#by server", "psns.server_verified", 1, 0 },
		{ "mismatches#by clients", "psns.mismatches", 1, 0 },
		{ "mismatches#by server", "psns.server_mismatches", 1, 0 }, { 0 }
	};
	double exchanged = sum_of_steps(p, "psns.exchanged"), shared = exchanged - sum_of_steps(p, "psns.distinct");
	double redrawn = sum_of_steps(p, "psns.redrawn") + sum_of_steps(p, "psns.server_redrawn");
	double wrong = sum_of_steps(p, "psns.mismatches") + sum_of_steps(p, "psns.server_mismatches");
	double read = 2 * sum_of_steps(p, "psn_verified");

	if (!(exchanged > 0 || wrong > 0))
		return;
	doc_text(p->doc, "psns", "Packet sequence numbers of all steps: %s were exchanged, %s; %s were taken and drawn "
		 "again; %s.%s", page_count(p, exchanged), shared > 0 ? page_text(p, "%s of them in use by another "
		 "live connection", page_count(p, shared)) : "all distinct among live connections",
		 page_count(p, redrawn), read > 0 ? page_text(p, "%s were read back from the clients' queue pairs as "
		 "agreed", page_count(p, read)) : "none was read back (--verify)", wrong > 0 ? page_text(p, " %s queue "
		 "pairs had others than agreed.", page_count(p, wrong)) : "");
	page_points(p, "psns", "PSNs, two for each connection; connections of which both were read back, and of which "
		    "others than agreed were. Each load host compares the PSNs of its own connections to a server and "
		    "rail; the server hands out none that it has in use.", columns);
}

/* Says which stage has the longest median at a point, and how fast clients connected. */
static void say_stages(struct page *p, const struct point *at)
{
	double sum = 0, most = 0, total = stage_ms(at, "total", "p50"), wall = point_range(at, "connect_wall_s").value;
	double peak = point_range(at, "connected_peak").value;
	double server_ns = point_range(at, "connect_cpu_ns_per_client.server").value;
	double generator_ns = point_range(at, "connect_cpu_ns_per_client.generator").value;
	int top = 0;

	for (int s = 0; s < STAGE_TIMED; s++) {
		double ms = stage_ms(at, stage_names[s], "p50");

		if (!(ms > 0))
			continue;
		sum += ms;
		if (ms > most) {
			most = ms;
			top = s;
		}
	}
	if (sum > 0)
		doc_text(p->doc, "stages-longest", "With %s a connection took %s (median), and %s of its stages' time "
			 "was %s (%s).", page_clients(p, at->clients), page_ns(p, total * 1e6),
			 page_percent(p, most / sum), stage_names[top], page_ns(p, most * 1e6));
	if (wall > 0)
		doc_text(p->doc, "connecting-rate", "%s of them were connected within %s: %s connections a second.%s",
			 page_count(p, peak), page_ns(p, wall * 1e9), page_count(p, peak / wall),
			 isfinite(server_ns + generator_ns) ?
			 page_text(p, " Connecting took, for each client on average, %s of the server's CPU time and "
				   "%s of the generator's.", page_ns(p, server_ns), page_ns(p, generator_ns)) : "");
}

void section_stages(struct page *p)
{
	struct bars bars;

	doc_section(p->doc, "connecting", "Connecting, stage by stage");
	bars_choose(p->points, &bars);
	if (bars.n == 0) {
		doc_text(p->doc, "connecting-none", "No connections were measured: no step was run.");
		return;
	}
	say_stages(p, bars.v[bars.n - 1]);
	doc_text(p->doc, NULL, "If a stage's share grows with the clients, connections queue there. Connections that "
		 "are made at the same time wait for each other, so a stage takes longer than its own work.");
	if (bars.n < p->points->n)
		doc_text(p->doc, "connecting-shown", "%zu of %zu numbers of clients are shown.", bars.n, p->points->n);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		show_stages(p, &bars, &shown[i]);
	show_other_stages(p);
	show_psns(p);
	show_alone(p, bars.v[bars.n - 1]);
}

/* Most points of the chart; in a longer run each point stands for several samples. */
#define TIMES_MAX 120

struct timeline {
	double *t_s, *connected, *connects_per_s;
	size_t n;
};

/* Connections made per second since the previous sample; NAN if that belongs to another step. */
static double rate_at(const struct source_sample *samples, size_t i)
{
	const struct source_sample *s = &samples[i], *before = &samples[i ? i - 1 : 0];
	double made = s->connects - before->connects, span = s->t_s - before->t_s;

	return s->clients == before->clients && made >= 0 && span > 0 ? made / span : NAN;
}

/* Makes one point of every `stride` samples, with their highest figures, so that short peaks are visible. */
static void collect_times(const struct source *s, size_t stride, struct timeline *out)
{
	size_t n = s->n_samples;

	for (size_t i = 0; i < n && out->n < TIMES_MAX; i += stride) {
		double connected = NAN, rate = NAN;

		for (size_t k = i; k < n && k < i + stride; k++) {
			connected = fmax(connected, s->samples[k].connected);
			rate = fmax(rate, rate_at(s->samples, k));
		}
		out->t_s[out->n] = s->samples[i].t_s;
		out->connected[out->n] = connected;
		out->connects_per_s[out->n++] = rate;
	}
}

static void show_times(struct page *p, const struct timeline *l)
{
	struct chart c = { .x_label = "seconds since the run's start", .y_label = "clients connected",
		.right_label = "connections made a second" };
	struct doc_table *t;

	page_series(&c, (struct chart_series){ .label = "clients connected", .mark = CHART_STEPS, .x = l->t_s,
		.y = l->connected, .n = l->n });
	page_series(&c, (struct chart_series){ .label = "connections made a second", .mark = CHART_LINE_PLAIN,
					       .x = l->t_s,
		.y = l->connects_per_s, .n = l->n, .right = true });
	page_chart(p, "time-chart", "Clients and connections over time", &c,
		   "Clients connected (left axis) and connections made a second (right axis) from the run's start to "
		   "its end.");
	t = page_table(p, "time", "Samples of the run.", "time#s;clients connected#;connections made#1/s");
	for (size_t i = 0; i < l->n; i++)
		page_add(t, DOC_PLAIN, "200", l->t_s[i], l->connected[i], l->connects_per_s[i]);
}

static void say_times(struct page *p, const struct timeline *l)
{
	size_t live = 0, fast = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!(l->connected[live] >= l->connected[i]))
			live = i;
		if (!(l->connects_per_s[fast] >= l->connects_per_s[i]) && isfinite(l->connects_per_s[i]))
			fast = i;
	}
	doc_text(p->doc, "time-most", "The most clients were connected %.1f s after the start: %s. Connections were "
		 "made fastest at %.1f s: %s a second.", l->t_s[live], page_count(p, l->connected[live]), l->t_s[fast],
		 page_count(p, l->connects_per_s[fast]));
	doc_text(p->doc, NULL, "In each rise a step connects its clients; in each fall they leave at the step's end. "
		 "Where a rise flattens, the server or the load generator cannot make connections faster.");
}

void section_time(struct page *p)
{
	size_t n = p->source->n_samples, stride = n / TIMES_MAX + 1;
	struct timeline l = { page_numbers(p, TIMES_MAX), page_numbers(p, TIMES_MAX), page_numbers(p, TIMES_MAX), 0 };

	doc_section(p->doc, "time", "Over time");
	if (p->source->damaged)
		doc_note(p->doc, DOC_WARN, "events-damaged",
			 "Lines of events.ndjson that were damaged or cut off, and are left out: %zu.",
			 p->source->damaged);
	if (!p->source->has_events) {
		doc_text(p->doc, "events-none", "There is no events.ndjson beside run.json, so nothing is known over "
			 "time.");
		return;
	}
	if (n == 0 || !l.t_s || !l.connected || !l.connects_per_s) {
		doc_text(p->doc, "samples-none", "events.ndjson has no samples over time. Older versions wrote none.");
		return;
	}
	collect_times(p->source, stride, &l);
	say_times(p, &l);
	if (stride > 1)
		doc_text(p->doc, "time-stride", "Each point stands for %zu samples.", stride);
	show_times(p, &l);
}
