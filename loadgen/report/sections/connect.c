/* Connecting: where the time goes by stage, connections and clients over time. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/fail.h"
#include "common/base/json_at.h"
#include "loadgen/report/sections/bars.h"

/* --- stages --- */

static double stage_ms(const struct point *at, const char *stage, const char *percentile)
{
	char path[96];

	snprintf(path, sizeof(path), "connect_ns.%s.%s", stage, percentile);
	return point_range(at, path).value / 1e6;
}

struct stage_value {
	const char *stage, *percentile;
};

static double value_of_stage(const struct point *at, const void *arg)
{
	const struct stage_value *v = arg;

	return stage_ms(at, v->stage, v->percentile);
}

/* True if there is anything to show. */
static bool add_stage_series(struct page *p, struct chart *c, const struct bars *bars, const char *percentile)
{
	bool any = false;

	for (int s = 0; s < STAGE_TIMED; s++) {
		struct stage_value v = { stage_names[s], percentile };

		any |= bars_add(p, bars, c, stage_names[s], value_of_stage, &v);
	}
	return any;
}

static void table_stages(struct page *p, const struct bars *bars, const char *name, const char *percentile,
			 const char *caption)
{
	struct doc_table *t = doc_table(p->doc, name, caption);

	doc_column(t, "clients", NULL, true);
	if (p->points->n_sizes > 1)
		doc_column(t, "message size", "bytes", true);
	for (int s = 0; s < STAGE_TIMED; s++)
		doc_column(t, stage_names[s], "ms", true);
	doc_column(t, "total", "ms", true);
	for (size_t i = 0; i < bars->n; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, bars->v[i]->clients, 0);
		if (p->points->n_sizes > 1)
			doc_number(t, bars->v[i]->bytes, 0);
		for (int s = 0; s < STAGE_TIMED; s++)
			doc_number(t, stage_ms(bars->v[i], stage_names[s], percentile), 3);
		doc_number(t, stage_ms(bars->v[i], "total", percentile), 3);
	}
}

static void show_stages(struct page *p, const struct bars *bars, bool median)
{
	const char *percentile = median ? "p50" : "p99";
	struct chart c = { .x_label = "clients",
			   .y_label = median ? "median of each stage, ms" : "p99 of each stage, ms" };

	bars_name(p, bars, &c);
	if (!add_stage_series(p, &c, bars, percentile)) {
		doc_text(p->doc, NULL, median ? "The medians are not known: they need 5 connections in a step." :
			 "The p99 of the stages is not known: it needs 299 connections in a step.");
		return;
	}
	page_chart(p, median ? "stages-chart" : "stages-p99-chart",
		   median ? "Connection stages, medians" : "Connection stages, p99", &c,
		   "One bar for each number of clients, made of the stages of a connection, one above the other.");
	table_stages(p, bars, median ? "stages" : "stages_p99", percentile,
		     median ? "Medians of the stages. Medians do not add up exactly to that of the whole."
			    : "The p99 of the stages. The slowest in one stage is rarely the slowest in all, so the "
			      "sum is above that of the whole.");
}

static void table_server_stages(struct page *p, const struct bars *bars)
{
	static const char *const names[] = { "tls_accept", "psn_generate", "qp_setup", "accept_to_established" };
	struct doc_table *t = doc_table(p->doc, "server_stages", "The server's own stages, medians, by its clock.");
	char path[96];

	doc_column(t, "clients", NULL, true);
	for (size_t k = 0; k < 4; k++)
		doc_column(t, names[k], "ms", true);
	for (size_t i = 0; i < bars->n; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, bars->v[i]->clients, 0);
		for (size_t k = 0; k < 4; k++) {
			snprintf(path, sizeof(path), "server_stages_ns.%s.p50", names[k]);
			doc_number(t, point_range(bars->v[i], path).value / 1e6, 3);
		}
	}
}

/* The stage that takes most in the medians of a point. */
static void say_stages(struct page *p, const struct point *at)
{
	double sum = 0, most = 0, total = stage_ms(at, "total", "p50"), wall = point_range(at, "connect_wall_s").value;
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
		doc_text(p->doc, NULL, "With %s a connection took %s (median), and %s of its stages' time went into %s (%s).",
			 page_clients(p, at->clients), page_ns(p, total * 1e6), page_percent(p, most / sum),
			 stage_names[top], page_ns(p, most * 1e6));
	if (wall > 0)
		doc_text(p->doc, NULL, "Connecting %s of them took %s in all: %s connections a second.",
			 page_count(p, point_range(at, "connected_peak").value), page_ns(p, wall * 1e9),
			 page_count(p, point_range(at, "connected_peak").value / wall));
}

void section_stages(struct page *p)
{
	struct bars bars;

	doc_section(p->doc, "connecting", "Connecting, stage by stage");
	bars_choose(p->points, &bars);
	if (bars.n == 0) {
		doc_text(p->doc, NULL, "No connections were measured: no step was run.");
		return;
	}
	say_stages(p, bars.v[bars.n - 1]);
	doc_text(p->doc, NULL, "A stage whose share grows with the clients is where they queue. Connections that are made at "
			 "the same time wait for one another, so a stage is longer than its work.");
	if (bars.n < p->points->n)
		doc_text(p->doc, NULL, "%zu of %zu numbers of clients are shown.", bars.n, p->points->n);
	show_stages(p, &bars, true);
	show_stages(p, &bars, false);
	table_server_stages(p, &bars);
}

/* --- over time --- */

/* Points of the chart; of a longer run each stands for several samples. */
#define TIMES_MAX 120

struct timeline {
	double *t_s, *connected, *connects_per_s;
	size_t n;
};

/* Connections a second since the sample before, which must be of the same step; NAN where there is none. */
static double rate_at(const json_t *samples, size_t i)
{
	const json_t *s = json_array_get(samples, i), *before = i ? json_array_get(samples, i - 1) : NULL;
	double made = json_number_at(s, "connects") - json_number_at(before, "connects");
	double span = json_number_at(s, "t") - json_number_at(before, "t");

	if (json_number_at(s, "clients") != json_number_at(before, "clients") || !(made >= 0) || !(span > 0))
		return NAN;
	return made / span;
}

/* One point stands for `stride` samples: the highest of each, so that what lasts for less than that is seen. */
static void collect_times(const json_t *samples, size_t stride, struct timeline *out)
{
	size_t n = json_array_size(samples);

	for (size_t i = 0; i < n && out->n < TIMES_MAX; i += stride) {
		double connected = NAN, rate = NAN;

		for (size_t k = i; k < n && k < i + stride; k++) {
			connected = fmax(connected, json_number_at(json_array_get(samples, k), "connected"));
			rate = fmax(rate, rate_at(samples, k));
		}
		out->t_s[out->n] = json_number_at(json_array_get(samples, i), "t");
		out->connected[out->n] = connected;
		out->connects_per_s[out->n++] = rate;
	}
}

static void draw_times(struct page *p, const struct timeline *l)
{
	struct chart c = { .x_label = "seconds since the run's start", .y_label = "clients connected",
		.right_label = "connections made a second" };

	page_series(&c, (struct chart_series) { .label = "clients connected",
						.mark = CHART_STEPS,
						.x = l->t_s,
						.y = l->connected,
						.n = l->n });
	page_series(&c, (struct chart_series) { .label = "connections made a second",
						.mark = CHART_LINE_PLAIN,
						.x = l->t_s,
						.y = l->connects_per_s,
						.n = l->n,
						.right = true });
	page_chart(p, "time-chart", "Clients and connections over time", &c,
		   "Clients connected (left axis) and connections made a second (right axis) from the run's start to "
		   "its end.");
}

static void table_times(struct page *p, const struct timeline *l)
{
	struct doc_table *t = doc_table(p->doc, "time", "Samples of the run.");

	doc_column(t, "time", "s", true);
	doc_column(t, "clients connected", NULL, true);
	doc_column(t, "connections made", "1/s", true);
	for (size_t i = 0; i < l->n; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, l->t_s[i], 2);
		doc_number(t, l->connected[i], 0);
		doc_number(t, l->connects_per_s[i], 0);
	}
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
	doc_text(p->doc, NULL,
		 "Most clients were connected %.1f s after the start: %s. Connections were made fastest at %.1f s: %s "
		 "a second.",
		 l->t_s[live], page_count(p, l->connected[live]), l->t_s[fast], page_count(p, l->connects_per_s[fast]));
	doc_text(p->doc, NULL, "Each rise is a step that connects its clients, each fall the clients that leave at its end. "
			 "A rise that flattens is a server, or a generator, that can make connections no faster.");
}

void section_time(struct page *p)
{
	const json_t *samples = source_samples(p->source);
	size_t n = json_array_size(samples), stride = n / TIMES_MAX + 1;
	struct timeline l = { page_numbers(p, TIMES_MAX), page_numbers(p, TIMES_MAX), page_numbers(p, TIMES_MAX), 0 };

	doc_section(p->doc, "time", "Over time");
	if (source_damaged_lines(p->source))
		doc_note(p->doc, DOC_WARN, NULL,
			 "Lines of events.ndjson that were damaged or cut off, and are left out: %zu.",
			 source_damaged_lines(p->source));
	if (n == 0 || !l.t_s || !l.connected || !l.connects_per_s) {
		doc_text(p->doc, NULL, source_has_events(p->source) ? "events.ndjson has no samples over time; runs made by "
								"older versions have none."
							      : "There is no events.ndjson beside run.json, so nothing "
								"is known over time.");
		return;
	}
	collect_times(samples, stride, &l);
	say_times(p, &l);
	if (stride > 1)
		doc_text(p->doc, NULL, "Each point stands for %zu samples.", stride);
	draw_times(p, &l);
	table_times(p, &l);
}
