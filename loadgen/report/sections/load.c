/* SPDX-License-Identifier: BSD-2-Clause */
/* Throughput and latency against clients. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/usl.h"
#include "loadgen/report/sections/found.h"
#include "loadgen/report/sections/trend.h"

/* Most curves that are readable in one chart; tables have all sizes. */
#define SIZES_SHOWN 6
#define FIT_POINTS 60

static const char *size_label(struct page *p, double bytes, const char *label)
{
	return p->points->n_sizes > 1 ? page_text(p, "%s%s%s", page_bytes(p, bytes), label[0] ? ", " : "", label)
				      : label;
}

static void say_sizes_left_out(struct page *p)
{
	if (p->points->n_sizes > SIZES_SHOWN)
		doc_text(p->doc, NULL, "The chart shows the %d smallest of %zu message sizes; the table has all.",
			 SIZES_SHOWN, p->points->n_sizes);
}

static void rule_capacities(const struct page *p, struct chart *c)
{
	const json_t *capacity = json_at(p->run, "analysis.capacity");

	page_rule(c, json_number_at(capacity, "knee.clients"), true, false, "knee");
	page_rule(c, json_number_at(capacity, "slo_capacity.clients"), true, false, "SLO capacity");
	page_rule(c, json_number_at(capacity, "first_hard_failure.clients"), true, true, "first hard failure");
}

struct load {
	double bytes;
	struct trend rate;
	struct usl_fit fit;
};

/* The fit takes the steps of the size that ran first, as in the run's own analysis. */
static bool is_fitted_size(const struct page *p, double bytes)
{
	double first = json_number_at(json_array_get(json_at(p->run, "steps"), 0), "message_bytes");

	return p->points->n_sizes == 1 || bytes == first;
}

/* True if only some clients sent: then no curve is fitted, because the law counts senders, the chart all clients. */
static bool is_partly_active(const struct page *p)
{
	double active = json_number_at(p->run, "config.active");
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(p->run, "steps"), i, step) {
		if (json_number_at(step, "target_clients") > active)
			return true;
	}
	return false;
}

static void fit_load(struct page *p, struct load *l)
{
	struct usl_point *v = page_room(p, CURVE_POINTS_MAX, sizeof(*v));

	l->fit = (struct usl_fit){ .status = USL_FEW_POINTS };
	if (v && is_fitted_size(p, l->bytes) && !is_partly_active(p))
		usl_fit(v, curve_usl_points(json_at(p->run, "steps"), v), &l->fit);
}

static void draw_fit(struct page *p, struct chart *c, const struct load *l)
{
	double from = l->rate.x[l->rate.first], to = l->rate.x[l->rate.last];
	double *x = page_numbers(p, FIT_POINTS), *y = page_numbers(p, FIT_POINTS);
	double *low = page_numbers(p, FIT_POINTS), *high = page_numbers(p, FIT_POINTS);

	if (l->fit.status != USL_FITTED || !x || !y || !low || !high)
		return;
	for (size_t i = 0; i < FIT_POINTS; i++) {
		struct estimate e;

		x[i] = from * pow(to / from, (double)i / (FIT_POINTS - 1));
		e = usl_at(&l->fit, x[i]);
		y[i] = e.value;
		low[i] = e.low;
		high[i] = e.high;
	}
	page_line(c, size_label(p, l->bytes, "fit (USL)"), x, y, FIT_POINTS);
	page_series(c, (struct chart_series){ .label = size_label(p, l->bytes, "95 % interval of the fit"),
		.mark = CHART_BAND, .x = x, .y = y, .low = low, .high = high, .n = FIT_POINTS });
}

static void draw_baselines(struct page *p, struct chart *c, double bytes)
{
	for (size_t i = 0; i < p->n_baselines; i++) {
		struct trend v = trend_figure(p, p->baselines[i].points, bytes, TREND_THROUGHPUT, 1);

		trend_draw(c, &v, size_label(p, bytes, page_text(p, "baseline %s", p->baselines[i].label)), true);
	}
}

static void draw_throughput(struct page *p, const struct load *loads, size_t n)
{
	struct chart c = { .x_label = "clients", .y_label = "messages a second", .x_log = trend_wants_log(p->points) };

	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++) {
		trend_draw(&c, &loads[i].rate, size_label(p, loads[i].bytes, n > 1 ? "" : "measured"), false);
		draw_fit(p, &c, &loads[i]);
		draw_baselines(p, &c, loads[i].bytes);
	}
	rule_capacities(p, &c);
	page_chart(p, "throughput-chart", "Throughput against clients", &c,
		   "Messages a second for each number of clients, with the range of repetitions or the 95 % interval "
		   "of one run, and the fitted curve.");
}

static bool is_any_fitted(const struct load *loads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (loads[i].fit.status == USL_FITTED)
			return true;
	return false;
}

static void add_throughput_row(struct page *p, struct doc_table *t, const struct load *l, size_t i, bool with_fit)
{
	const struct trend *v = &l->rate;
	const struct point *at = points_find(p->points, v->x[i], l->bytes);
	struct estimate fit = { NAN, NAN, NAN };

	if (l->fit.status == USL_FITTED)
		fit = usl_at(&l->fit, v->x[i]);
	page_row(p, t, DOC_PLAIN, v->x[i], l->bytes);
	page_cells(t, "00001", at ? (double)at->n : NAN, v->y[i], v->low[i], v->high[i],
		   at ? point_range(at, "throughput_bytes_per_s").value / 1e6 : NAN);
	if (with_fit)
		page_cells(t, "000", fit.value, fit.low, fit.high);
	for (size_t b = 0; b < p->n_baselines; b++) {
		at = points_find(p->baselines[b].points, v->x[i], l->bytes);
		doc_number(t, at ? point_throughput(at).value : NAN, 0);
	}
}

#define COLUMNS PAGE_POINT ";runs#;throughput#msgs/s;low#msgs/s;high#msgs/s;throughput#MB/s"

static void table_throughput(struct page *p, const struct load *loads, size_t n)
{
	bool with_fit = is_any_fitted(loads, n);
	struct doc_table *t = page_table(p, "throughput", "Throughput. Several runs of a number of clients: their "
					 "median, with the least and the most. One run: its figure, with the 95 % "
					 "interval.", with_fit ?
					 COLUMNS ";fit#msgs/s;fit low#msgs/s;fit high#msgs/s" : COLUMNS);

	for (size_t b = 0; b < p->n_baselines; b++)
		doc_column(t, page_text(p, "baseline %s", p->baselines[b].label), "msgs/s", true);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < loads[i].rate.n; k++)
			add_throughput_row(p, t, &loads[i], k, with_fit);
}

static void say_growth(struct page *p, const struct load *l)
{
	const struct trend *v = &l->rate;
	size_t top = trend_top(v);

	if (v->known < 2)
		doc_text(p->doc, "throughput-single", "%s did %s messages a second%s. No other number of clients was "
			 "measured; --steps takes several, which show how throughput grows.",
			 page_clients(p, v->x[v->first]), page_count(p, v->y[v->first]), page_with_size(p, l->bytes));
	else
		doc_text(p->doc, "throughput-growth", "From %s to %s throughput went from %s to %s messages a "
			 "second%s: %.2g times as much for %s times the clients. The most was %s, with %s.",
			 page_count(p, v->x[v->first]), page_clients(p, v->x[v->last]), page_count(p, v->y[v->first]),
			 page_count(p, v->y[v->last]), page_with_size(p, l->bytes), v->y[v->last] / v->y[v->first],
			 page_count(p, v->x[v->last] / v->x[v->first]), page_count(p, v->y[top]),
			 page_clients(p, v->x[top]));
}

static void say_fitted(struct page *p, const struct load *l)
{
	const struct usl_fit *f = &l->fit;

	doc_text(p->doc, "fit", "The fitted curve (Universal Scalability Law, R2 %.3f%s) says that one client alone "
		 "would do %s messages a second, that %s of the work is serial (contention; %s to %s), and that each "
		 "pair of clients costs %.2g of a client's work (coherence; %.2g to %.2g).", f->r2,
		 page_with_size(p, l->bytes), page_count(p, f->lambda.value), page_percent(p, f->sigma.value),
		 page_percent(p, f->sigma.low), page_percent(p, f->sigma.high), f->kappa.value, f->kappa.low,
		 f->kappa.high);
	if (f->passes_peak)
		doc_text(p->doc, "fit-peak", "By that curve throughput peaks at about %s (%s to %s) with %s messages a "
			 "second; more clients lower it.", page_clients(p, f->peak_clients.value),
			 page_count(p, f->peak_clients.low), page_count(p, f->peak_clients.high),
			 page_count(p, f->peak_throughput.value));
	else
		doc_text(p->doc, "fit-no-peak", "The steps do not go beyond a peak, so the curve predicts none.");
}

static void say_fit(struct page *p, const struct load *l)
{
	if (is_partly_active(p)) {
		doc_text(p->doc, "fit-active", "No curve is fitted: only some of the clients sent (--active).");
		return;
	}
	switch (l->fit.status) {
	case USL_FEW_POINTS:
		doc_text(p->doc, "fit-few", "No curve is fitted%s: the Universal Scalability Law needs at least 4 "
			 "numbers of clients, and %zu %s measured.", page_with_size(p, l->bytes), l->rate.known,
			 l->rate.known == 1 ? "was" : "were");
		return;
	case USL_BAD_FIT:
		doc_text(p->doc, "fit-bad", "The Universal Scalability Law does not fit these points%s, so no curve is "
			 "drawn.", page_with_size(p, l->bytes));
		return;
	case USL_FITTED:
		say_fitted(p, l);
		return;
	}
}

static void say_open_loop(struct page *p)
{
	double rate = json_number_at(p->run, "config.rate_per_s");
	double each = json_number_at(p->run, "config.rate_per_client_per_s");

	if (rate > 0 || each > 0)
		doc_note(p->doc, DOC_PLAIN, "open-loop", "This is an open loop: the load generator sent %s messages a "
			 "second %s, whether or not the server kept up. The curve shows whether it did, not the most "
			 "it could do.", page_count(p, rate > 0 ? rate : each),
			 rate > 0 ? "in all" : "for each client");
}

static void say_saturation(struct page *p)
{
	struct found_flag flag = found_flag(p->points, VALIDITY_generator_saturated);
	const char *hosts = found_hosts_at_limit(p, 0);

	if (*hosts)
		doc_note(p->doc, DOC_WARN, "hosts-limit",
			 "From %s on load hosts were at their limit (%s): there the server can "
			 "do at least what is shown. Add hosts to see what it can.", page_clients(p, flag.least),
			 hosts);
	else if (flag.steps)
		doc_note(p->doc, DOC_WARN, "generator-limit", "From %s on the load generator itself was at its limit: "
			 "there the server can do at least what is shown.", page_clients(p, flag.least));
}

static size_t known_loads(const struct load *loads, size_t n)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		known += loads[i].rate.known;
	return known;
}

static const char *why_no_messages(const struct page *p)
{
	if (p->points->n == 0)
		return "no step was run";
	if (found_only_connects(p))
		return "the workload only makes and holds connections";
	return "no step reached its measured time";
}

/* Warns of lost clients, because points are drawn at the number of clients requested. */
static void say_not_held(struct page *p)
{
	const struct point *bad = found_first_not_held(p->points);

	if (bad)
		doc_note(p->doc, DOC_WARN, "not-held", "From %s on some clients were lost: the points from there on, "
			 "in this section and the next ones, are drawn at the clients asked for, but were measured "
			 "with fewer. Knee and fit leave out steps that lost more than 1 %%.",
			 page_clients(p, bad->clients));
}

void section_throughput(struct page *p)
{
	size_t n = p->points->n_sizes;
	struct load *loads = page_room(p, n + 1, sizeof(*loads));

	doc_section(p->doc, "throughput", "Throughput against clients");
	for (size_t i = 0; loads && i < n; i++) {
		loads[i].bytes = p->points->sizes[i];
		loads[i].rate = trend_figure(p, p->points, loads[i].bytes, TREND_THROUGHPUT, 1);
		fit_load(p, &loads[i]);
	}
	/* page_failed: figures are missing because memory ran out, and no report will be written. */
	if (!loads || page_failed(p) || known_loads(loads, n) == 0) {
		doc_text(p->doc, "throughput-none", "No messages were measured: %s.", why_no_messages(p));
		return;
	}
	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++)
		if (loads[i].rate.known) {
			say_growth(p, &loads[i]);
			if (is_fitted_size(p, loads[i].bytes))
				say_fit(p, &loads[i]);
		}
	doc_text(p->doc, NULL, "Where the curve rises in a straight line, clients do not slow each other down. Where "
		 "it flattens, a shared resource is used up. Where it falls, clients cause each other extra work.");
	say_not_held(p);
	say_open_loop(p);
	say_saturation(p);
	say_sizes_left_out(p);
	draw_throughput(p, loads, n);
	table_throughput(p, loads, n);
}

static const double percentiles[] = { 50, 95, 99, 99.9 };
static const char *const percentile_labels[] = { "p50", "p95", "p99", "p99.9" };
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))
#define P99 2

struct latency {
	double bytes;
	struct trend us[PERCENTILES];
};

/* Draws the objective's limits on percentiles of the response time. */
static void rule_objectives(struct page *p, struct chart *c)
{
	const struct point *last = p->points->n ? &p->points->v[p->points->n - 1] : NULL;
	const json_t *term;
	size_t i;

	json_array_foreach(last ? json_at(last->steps[0], "slo") : NULL, i, term) {
		const char *metric = json_text_at(term, "metric"), *text = json_text_at(term, "expression");

		if (metric && text && strncmp(metric, "response_p", 10) == 0)
			page_rule(c, json_number_at(term, "limit") / 1e3, false, true, text);
	}
}

/* With several sizes only the p99 is drawn, a curve for each size. */
static void draw_latency(struct page *p, const struct latency *l, size_t n)
{
	struct chart c = { .x_label = "clients", .y_label = "round trip, us", .x_log = true, .y_log = true };

	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++)
		for (size_t k = 0; k < PERCENTILES; k++)
			if (n == 1 || k == P99)
				trend_draw(&c, &l[i].us[k], size_label(p, l[i].bytes, percentile_labels[k]), false);
	for (size_t i = 0; i < p->n_baselines && n == 1; i++) {
		struct trend v = trend_response_us(p, p->baselines[i].points, p->baselines[i].source, l[0].bytes,
						   99);

		trend_draw(&c, &v, page_text(p, "p99, baseline %s", p->baselines[i].label), true);
	}
	rule_objectives(p, &c);
	page_chart(p, "latency-chart", "Round trips against clients", &c,
		   "Percentiles of the round trip for each number of clients, both axes logarithmic, with the limits "
		   "of --slo as lines.");
}

static void add_latency_row(struct page *p, struct doc_table *t, const struct latency *l, size_t r)
{
	page_row(p, t, DOC_PLAIN, l->us[0].x[r], l->bytes);
	for (size_t k = 0; k < PERCENTILES; k++)
		doc_number(t, l->us[k].y[r], 1);
	page_cells(t, "11", l->us[P99].low[r], l->us[P99].high[r]);
	for (size_t b = 0; b < p->n_baselines; b++) {
		const struct point *at = points_find(p->baselines[b].points, l->us[0].x[r], l->bytes);

		doc_number(t, at ? point_range(at, "response_ns.p99").value / 1e3 : NAN, 1);
	}
}

static void table_latency(struct page *p, const struct latency *l, size_t n)
{
	struct doc_table *t = page_table(p, "latency", "Round trips (response time). Low and high of p99: the least "
					 "and the most of several runs, or the 95 % interval of one.", PAGE_POINT
					 ";p50#us;p95#us;p99#us;p99.9#us;p99 low#us;p99 high#us");

	for (size_t b = 0; b < p->n_baselines; b++)
		doc_column(t, page_text(p, "p99, baseline %s", p->baselines[b].label), "us", true);
	for (size_t i = 0; i < n; i++)
		for (size_t r = 0; r < l[i].us[0].n; r++)
			add_latency_row(p, t, &l[i], r);
}

static void say_latency(struct page *p, const struct latency *l)
{
	const struct trend *mid = &l->us[0], *high = &l->us[P99];

	if (!mid->known)
		return;
	doc_text(p->doc, "latency-p50", "With %s half of the round trips took at most %s%s, with %s %s.",
		 page_clients(p, mid->x[mid->first]), page_ns(p, mid->y[mid->first] * 1e3), page_with_size(p, l->bytes),
		 page_clients(p, mid->x[mid->last]), page_ns(p, mid->y[mid->last] * 1e3));
	if (high->known > 1)
		doc_text(p->doc, "latency-p99", "The p99 (1 %% of the round trips are slower) went from %s to %s: %.2g "
			 "times as long for %s times the clients.", page_ns(p, high->y[high->first] * 1e3),
			 page_ns(p, high->y[high->last] * 1e3), high->y[high->last] / high->y[high->first],
			 page_count(p, high->x[high->last] / high->x[high->first]));
	else if (high->known == 1)
		doc_text(p->doc, "latency-p99-single", "The p99 (1 %% of the round trips are slower) was %s with %s.",
			 page_ns(p, high->y[high->first] * 1e3), page_clients(p, high->x[high->first]));
}

static void say_objectives(struct page *p)
{
	const char *text = json_text_at(p->run, "config.slo");

	if (text)
		doc_text(p->doc, "objective", "The objective was %s. Its limits on round trips are the horizontal "
			 "lines of the chart.", text);
	else
		doc_text(p->doc, "objective-none", "No objective was given. With one, such as --slo 'p99<1ms', the "
			 "chart shows its limit and each step is judged by it.");
}

void section_latency(struct page *p)
{
	size_t n = p->points->n_sizes, known = 0;
	struct latency *l = page_room(p, n + 1, sizeof(*l));

	doc_section(p->doc, "latency", "Latency against clients");
	for (size_t i = 0; l && i < n; i++) {
		l[i].bytes = p->points->sizes[i];
		for (size_t k = 0; k < PERCENTILES; k++) {
			l[i].us[k] = trend_response_us(p, p->points, p->source, l[i].bytes, percentiles[k]);
			known += l[i].us[k].known;
		}
	}
	if (known == 0 || page_failed(p)) {
		doc_text(p->doc, "latency-none", "No round trips were measured: %s.", why_no_messages(p));
		return;
	}
	for (size_t i = 0; i < n && i < SIZES_SHOWN; i++)
		say_latency(p, &l[i]);
	say_objectives(p);
	doc_text(p->doc, NULL, "Where a curve rises as steeply as the number of clients, requests queue: each client "
		 "waits for the others. A percentile with too few samples is left out.");
	say_sizes_left_out(p);
	draw_latency(p, l, n);
	table_latency(p, l, n);
	parts_add(p);
}
