/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency against offered load: the steps of a sweep. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/offered.h"

/* The figures of a point that are drawn in charts. */
enum { P50, P99, P99_9, ACHIEVED, SERIES };

static const struct {
	const char *label;
	size_t at;
	double unit;
} series[SERIES] = {
	[P50] = { "p50", offsetof(struct offered_point, p50_ns), 1e3 },
	[P99] = { "p99", offsetof(struct offered_point, p99_ns), 1e3 },
	[P99_9] = { "p99.9", offsetof(struct offered_point, p99_9_ns), 1e3 },
	[ACHIEVED] = { "achieved", offsetof(struct offered_point, achieved_per_s), 1 },
};

struct curve {
	double clients, bytes;
	struct offered_point v[OFFERED_MAX];
	size_t n;
	double x[OFFERED_MAX], y[SERIES][OFFERED_MAX];
	struct knee knee;
};

static void read_curve(const json_t *steps, double clients, double bytes, struct curve *c)
{
	c->clients = clients;
	c->bytes = bytes;
	c->n = offered_points(steps, clients, bytes, c->v);
	for (size_t i = 0; i < c->n; i++) {
		c->x[i] = c->v[i].per_s;
		for (size_t k = 0; k < SERIES; k++) {
			memcpy(&c->y[k][i], (const char *)&c->v[i] + series[k].at, sizeof(double));
			c->y[k][i] /= series[k].unit;
		}
	}
	offered_knee(c->v, c->n, &c->knee);
}

static void add_line(struct chart *chart, const struct curve *c, const char *label, const double *y, bool dim)
{
	for (size_t i = 0; i < c->n; i++)
		if (isfinite(y[i])) {
			page_series(chart, (struct chart_series){ .label = label, .mark = CHART_LINE, .x = c->x, .y = y,
								  .n = c->n, .dim = dim });
			return;
		}
}

/* The lowest rate with a saturated generator, or with `saturated` false, behind schedule; NAN: none. */
static double first_rate(const struct curve *c, bool saturated)
{
	for (size_t i = 0; i < c->n; i++)
		if (saturated ? c->v[i].saturated : c->v[i].behind)
			return c->v[i].per_s;
	return NAN;
}

static void mark(struct chart *chart, const struct curve *c)
{
	page_rule(chart, c->knee.clients, true, false, "knee");
	page_rule(chart, first_rate(c, false), true, true, "behind schedule");
	page_rule(chart, first_rate(c, true), true, true, "generator at its limit");
}

static void draw_latency(struct page *p, const struct curve *c, const struct curve *bases, const char *id)
{
	struct chart chart = { .x_label = "offered, operations/s", .y_label = "round trip, us", .x_log = true,
			       .y_log = true };

	for (size_t k = P50; k <= P99_9; k++)
		add_line(&chart, c, series[k].label, c->y[k], false);
	for (size_t i = 0; i < p->n_baselines; i++) {
		struct offered_crossing at[OFFERED_CROSSINGS_MAX];
		size_t n = offered_crossings(bases[i].v, bases[i].n, c->v, c->n, at);

		add_line(&chart, &bases[i], page_text(p, "p99, baseline %s", p->baselines[i].label), bases[i].y[P99],
			 true);
		for (size_t k = 0; k < n; k++)
			page_rule(&chart, at[k].per_s, true, false, page_text(p, "crosses %s", p->baselines[i].label));
	}
	mark(&chart, c);
	page_chart(p, page_text(p, "%s-chart", id), "Latency against offered load", &chart,
		   "Percentiles of the round trip, counted from when operations were due, over the operations a second "
		   "that were offered; both axes logarithmic.");
}

static void draw_achieved(struct page *p, const struct curve *c, const struct curve *bases, const char *id)
{
	struct chart chart = { .x_label = "offered, operations/s", .y_label = "achieved, operations/s", .x_log = true,
			       .y_log = true };

	add_line(&chart, c, series[ACHIEVED].label, c->y[ACHIEVED], false);
	page_line(&chart, "as offered", c->x, c->x, c->n);
	for (size_t i = 0; i < p->n_baselines; i++)
		add_line(&chart, &bases[i], page_text(p, "baseline %s", p->baselines[i].label), bases[i].y[ACHIEVED],
			 true);
	mark(&chart, c);
	page_chart(p, page_text(p, "%s-achieved-chart", id), "Achieved against offered load", &chart,
		   "Operations that ended a second over those that were offered: they lie on the straight line as long "
		   "as server and generator keep up.");
}

static const char *mark_of(struct page *p, const struct curve *c, const struct offered_point *at)
{
	const char *knee = at->per_s == c->knee.clients ? "knee" : "", *behind = at->behind ? "behind schedule" : "";
	const char *saturated = at->saturated ? "generator at its limit" : "";

	return page_text(p, "%s%s%s%s%s", knee, knee[0] && (behind[0] || saturated[0]) ? ", " : "", behind,
			 behind[0] && saturated[0] ? ", " : "", saturated);
}

static void table(struct page *p, const struct curve *c, const char *id)
{
	struct doc_table *t = page_table(p, id, "Round trips count from when operations were due. Lag: how late they "
						"were sent.",
					 PAGE_POINT ";offered#/s;achieved#/s;p50#us;p95#us;p99#us;p99.9#us;lag "
						    "p99#us;marks");

	for (size_t i = 0; i < c->n; i++) {
		const struct offered_point *at = &c->v[i];

		page_row(p, t, at->behind || at->saturated ? DOC_WARN : DOC_PLAIN, c->clients, c->bytes);
		page_cells(t, "0011111s", at->per_s, at->achieved_per_s, at->p50_ns / 1e3, at->p95_ns / 1e3,
			   at->p99_ns / 1e3, at->p99_9_ns / 1e3, at->lag_p99_ns / 1e3, mark_of(p, c, at));
	}
}

static void say_marks(struct page *p, const struct curve *c)
{
	double behind = first_rate(c, false), saturated = first_rate(c, true);

	if (isfinite(behind))
		doc_note(p->doc, DOC_WARN, "offered-behind",
			 "From %s a second on, fewer than 95 %% of the operations that were due "
			 "ended: server or generator fell behind its schedule, and round trips include the time "
			 "that operations waited.", page_count(p, behind));
	if (isfinite(saturated))
		doc_note(p->doc, DOC_WARN, "offered-saturated",
			 "From %s a second on, the load generator was at its own limit in a "
			 "step: such steps say nothing about the server, and the knee leaves them out.",
			 page_count(p, saturated));
}

static void say_crossings(struct page *p, const struct curve *c, const struct curve *bases)
{
	for (size_t i = 0; i < p->n_baselines; i++) {
		struct offered_crossing at[OFFERED_CROSSINGS_MAX];
		size_t n = offered_crossings(bases[i].v, bases[i].n, c->v, c->n, at);

		for (size_t k = 0; k < n; k++)
			doc_item(p->doc, "offered-crossing",
				 "At about %s a second the p99 curve crosses that of %s: beyond it, this "
				 "run is the %s one.", page_count(p, at[k].per_s), p->baselines[i].label,
				 at[k].faster_beyond ? "faster" : "slower");
		if (n == 0 && bases[i].n)
			doc_text(p->doc, "offered-no-crossing", "The p99 curves of this run and of %s do not cross.",
				 p->baselines[i].label);
	}
}

static void show_curve(struct page *p, const struct point *at, size_t number)
{
	struct curve *c = page_room(p, 1, sizeof(*c)), *bases = page_room(p, PAGE_BASELINES_MAX, sizeof(*bases));
	const char *id = number ? page_text(p, "offered_%zu", number + 1) : "offered";
	char text[256];

	if (!c || !bases)
		return;
	read_curve(json_at(p->run, "steps"), at->clients, at->bytes, c);
	for (size_t i = 0; i < p->n_baselines; i++)
		read_curve(json_at(p->baselines[i].source->run, "steps"), at->clients, at->bytes, &bases[i]);
	if (c->n == 0)
		return;
	doc_text(p->doc, "offered-knee", "With %s%s: %s.", page_clients(p, c->clients), page_with_size(p, c->bytes),
		 offered_knee_text(c->v, c->n, text, sizeof(text)));
	say_marks(p, c);
	say_crossings(p, c, bases);
	draw_latency(p, c, bases, id);
	table(p, c, id);
	draw_achieved(p, c, bases, id);
}

static void say_search(struct page *p)
{
	const json_t *found = json_at(p->run, "analysis.offered_load.slo_rate");

	if (!json_is_object(found))
		return;
	doc_text(p->doc, "offered-slo", "Operations a second that met %s, %s: %s.",
		 page_text_at(p->run, "config.slo", "the SLO"),
		 json_is_true(json_object_get(found, "confirmed")) ? "confirmed" : "not confirmed",
		 page_text_at(found, "reason", "no reason is given"));
}

void section_offered(struct page *p)
{
	double rate = points_main_rate(json_at(p->run, "steps"));

	if (!isfinite(rate))
		return;
	doc_section(p->doc, "offered", "Latency against offered load");
	doc_text(p->doc, NULL, "An open loop offered the server several rates, one after the other, whether or not it "
			       "kept up. Up to the "
		 "knee, more load costs little latency. The other sections show the steps with %s operations a second, "
		 "the most that was kept up with.", page_count(p, rate));
	say_search(p);
	for (size_t i = 0; i < p->points->n; i++)
		show_curve(p, &p->points->v[i], i);
}
