/* SPDX-License-Identifier: BSD-2-Clause */
/* The distribution of round trips: percentile spectrum and histogram. Also figures of parts of the operations: each
 * direction, each kind, and half of a round trip. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/hist/hist.h"
#include "common/hist/latency_json.h"
#include "common/base/json_at.h"

#define BINS_MAX 60
#define PICTURE_ROWS 20
#define PICTURE_BINS (BINS_MAX / PICTURE_ROWS)	/* of each row */
#define PICTURE_BAR 40				/* characters of the longest bar */
/* Stable round trips have a p99 of at most a few times the median. */
#define JITTER_NOTABLE 5

static const double spectrum[] = { 0,	     10,   20,	  25,	  30,	 40,	 50,	 60,	  70,	  75,
				   80,	     85,   90,	  92.5,	  95,	 97.5,	 98.75,	 99,	  99.375, 99.6875,
				   99.84375, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999, 99.9995, 99.9999 };
#define SPECTRUM (sizeof(spectrum) / sizeof(spectrum[0]))

/* The distributions of one step. */
struct shown {
	const struct point *at;
	const json_t *step;
	const char *label;		/* "100 clients" */
	double *response, *service;	/* us, at each percentile of `spectrum`; all NAN: there is no histogram */
	double count, max_us, us[LATENCY_PERCENTILES];
	double low[BINS_MAX + 1], bins[BINS_MAX + 1];	/* lower end of each bar, us; its samples */
};

static double percentile_us(const struct hist *h, double percentile)
{
	if (!hist_supports(h, percentile))
		return NAN;
	return (double)(percentile > 0 ? hist_percentile(h, percentile) : hist_min(h)) / 1e3;
}

static void read_spectrum(const struct hist *h, double *out)
{
	for (size_t i = 0; out && i < SPECTRUM; i++)
		out[i] = percentile_us(h, spectrum[i]);
}

/* Fills the histogram's bars, which are equally wide on a log axis, from the fastest to the slowest sample. */
static void read_bins(const struct hist *h, struct shown *s)
{
	double from = fmax((double)hist_min(h), 1), to = fmax((double)hist_max(h) + 1, from * 1.01);

	for (size_t i = 0; i <= BINS_MAX; i++)
		s->low[i] = from * pow(to / from, (double)i / BINS_MAX);
	for (size_t i = 0; i < BINS_MAX; i++)
		s->bins[i] = (double)hist_count_between(h, (uint64_t)s->low[i], (uint64_t)ceil(s->low[i + 1]));
	for (size_t i = 0; i <= BINS_MAX; i++)
		s->low[i] /= 1e3;
	s->bins[BINS_MAX] = 0;
}

/* Reads a step; false if it has no histogram of round trips. */
static bool read_shown(struct page *p, const struct point *at, const json_t *step, struct shown *s)
{
	const struct hist *h = source_histogram(p->source, step, "response");

	*s = (struct shown) { .at = at,
			      .step = step,
			      .label = page_text(p, "%s%s", page_clients(p, at->clients), page_with_size(p, at->bytes)),
			      .response = page_numbers(p, SPECTRUM),
			      .service = page_numbers(p, SPECTRUM) };
	if (!h || hist_count(h) == 0)
		return false;
	s->count = (double)hist_count(h);
	s->max_us = (double)hist_max(h) / 1e3;
	for (int i = 0; i < LATENCY_PERCENTILES; i++)
		s->us[i] = percentile_us(h, latency_percentiles[i].percentile);
	read_spectrum(h, s->response);
	read_bins(h, s);
	h = source_histogram(p->source, step, "service");
	if (h && hist_count(h))
		read_spectrum(h, s->service);
	return true;
}

static bool has_service(const struct shown *s)
{
	return s->service && isfinite(s->service[0]);
}

static bool is_known_at(const struct shown *s, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++)
		if (s[k].response && isfinite(s[k].response[i]))
			return true;
	return false;
}

/* The spectrum of the baseline's step with as many clients and the same size; NULL: none. */
static double *read_baseline(struct page *p, size_t b, const struct shown *s)
{
	const struct point *at = points_find(p->baselines[b].points, s->at->clients, s->at->bytes);
	const struct hist *h = at ? source_histogram(p->baselines[b].source, at->steps[0], "response") : NULL;
	double *us = h ? page_numbers(p, SPECTRUM) : NULL;

	if (us)
		read_spectrum(h, us);
	return us;
}

static void add_curve(struct chart *c, const double *x, const char *label, const double *us, bool dim)
{
	page_series(c, (struct chart_series){ .label = label, .mark = CHART_LINE_PLAIN, .x = x, .y = us, .n = SPECTRUM,
		.dim = dim });
}

static void add_curves(struct page *p, struct chart *c, const double *x, const struct shown *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		add_curve(c, x, page_text(p, "response, %s", s[i].label), s[i].response, false);
		if (has_service(&s[i]))
			add_curve(c, x, page_text(p, "service, %s", s[i].label), s[i].service, false);
	}
	for (size_t b = 0; b < p->n_baselines; b++)
		add_curve(c, x, page_text(p, "response, %s, baseline %s", s[0].label, p->baselines[b].label),
			  read_baseline(p, b, &s[0]), true);
}

/* The table has a column for each curve of the chart. */
static void show_spectrum(struct page *p, const struct shown *s, size_t n)
{
	struct chart c = { .x_label = "percentile", .y_label = "round trip, us", .x_log = true, .y_log = true,
		.x_percentile = true };
	double *x = page_numbers(p, SPECTRUM);
	struct doc_table *t;

	for (size_t i = 0; x && i < SPECTRUM; i++)
		x[i] = 1 / (1 - spectrum[i] / 100);
	add_curves(p, &c, x, s, n);
	page_chart(p, "spectrum-chart", "Percentile spectrum", &c,
		   "The round trip at each percentile; the axis is stretched towards 100 %.");
	t = page_table(p, "spectrum", "Percentiles as far as the samples support them.", "percentile#%");
	for (size_t k = 0; k < c.n_series; k++)
		doc_column(t, c.series[k].label, "us", true);
	for (size_t i = 0; i < SPECTRUM; i++) {
		if (!is_known_at(s, n, i))
			continue;
		doc_row(t, DOC_PLAIN);
		doc_cell(t, "%g", spectrum[i]);
		for (size_t k = 0; k < c.n_series; k++)
			doc_number(t, c.series[k].y[i], 1);
	}
}

/* The percentiles within a row of the picture: "p50 p90". */
static const char *marks_of(struct page *p, const struct shown *s, double low, double high)
{
	const char *text = "";

	for (int i = 0; i < LATENCY_PERCENTILES; i++)
		if (s->us[i] >= low && s->us[i] < high)
			text = page_text(p, "%s p%g", text, latency_percentiles[i].percentile);
	return text;
}

/* Draws the histogram with characters; a row sums PICTURE_BINS of its bars. A row with
 * samples has at least a dot. */
static void draw_picture(struct page *p, const struct shown *s)
{
	const char bar[] = "########################################", *text;
	double rows[PICTURE_ROWS] = { 0 }, most = 0;

	_Static_assert(sizeof(bar) == PICTURE_BAR + 1, "a full bar");
	for (size_t i = 0; i < BINS_MAX; i++)
		rows[i / PICTURE_BINS] += s->bins[i];
	for (size_t i = 0; i < PICTURE_ROWS; i++)
		most = fmax(most, rows[i]);
	text = page_text(p, "%s: from us, messages, share", s->label);
	for (size_t i = 0; i < PICTURE_ROWS && most > 0; i++) {
		const double *low = &s->low[i * PICTURE_BINS];
		int n = (int)lround(PICTURE_BAR * rows[i] / most);

		text = page_text(p, "%s\n%12.1f |%-*.*s %7.3f %%%s", text, low[0], PICTURE_BAR, n ? n : 1,
				 n ? bar : rows[i] > 0 ? "." : "", 100 * rows[i] / s->count,
				 marks_of(p, s, low[0], low[PICTURE_BINS]));
	}
	doc_picture(p->doc, text);
}

static void show_bins(struct page *p, const struct shown *s)
{
	struct chart c = { .x_label = "round trip, us", .y_label = "messages", .x_log = true };
	struct doc_table *t;

	page_series(&c, (struct chart_series){ .label = s->label, .mark = CHART_BARS, .x = s->low, .y = s->bins,
		.n = BINS_MAX + 1 });
	for (int i = LATENCY_P50; i <= LATENCY_P99; i++)
		page_rule(&c, s->us[i], true, false, latency_percentiles[i].name);
	draw_picture(p, s);
	page_chart(p, "histogram-chart", page_text(p, "How often each round trip came, %s", s->label), &c,
		   "Messages by their round trip, with the percentiles marked.");
	t = page_table(p, "histogram", "Messages by round trip; each row counts from its time up to that of the next "
		       "row.", "from#us;messages#;share#%");
	for (size_t i = 0; i < BINS_MAX; i++)
		page_add(t, DOC_PLAIN, "103", s->low[i], s->bins[i], 100 * s->bins[i] / s->count);
}

/* Reads the last run of the most clients that has a histogram. */
static bool read_largest(struct page *p, double bytes, struct shown *out)
{
	const struct point *best = NULL;
	struct shown s;

	for (size_t i = 0; i < p->points->n; i++) {
		const struct point *at = &p->points->v[i];

		if (at->bytes == bytes && (!best || at->clients > best->clients) &&
		    read_shown(p, at, at->steps[at->n - 1], &s)) {
			best = at;
			*out = s;
		}
	}
	return best;
}

/* Reads the step at the capacity; false if there is none, or it is the largest step. */
static bool read_capacity(struct page *p, const struct shown *largest, struct shown *out)
{
	static const char *const which[] = { "slo_capacity", "knee" };

	for (size_t i = 0; i < 2; i++) {
		double clients = json_number_at(json_at(json_at(p->run, "analysis.capacity"), which[i]), "clients");
		const struct point *at = points_find(p->points, clients, largest->at->bytes);

		if (at && at != largest->at && read_shown(p, at, at->steps[at->n - 1], out))
			return true;
	}
	return false;
}

static void say_jitter(struct page *p, const struct shown *s)
{
	double jitter = s->us[LATENCY_P99] / s->us[LATENCY_P50];
	const char *tail = jitter >= JITTER_NOTABLE ?
			   "the tail is far from the median, as when messages now and then wait for something" :
			   "the tail is close to the median";

	if (isfinite(jitter))
		doc_text(p->doc, "jitter", "With %s half of the %s round trips took at most %s, 99 %% at most %s, the "
			 "slowest %s. The jitter ratio p99/p50 is %.2g: %s.", s->label, page_count(p, s->count),
			 page_ns(p, s->us[LATENCY_P50] * 1e3), page_ns(p, s->us[LATENCY_P99] * 1e3),
			 page_ns(p, s->max_us * 1e3), jitter, tail);
	else
		doc_text(p->doc, "jitter-unknown", "With %s there are too few round trips (%s) for a p99.", s->label,
			 page_count(p, s->count));
}

static void say_service(struct page *p, const struct shown *s)
{
	if (has_service(s))
		doc_text(p->doc, "service", "Response time counts from when a message was due, as its user experiences "
			 "it; service time counts from when it was sent. Where they differ, messages waited to be "
			 "sent.");
	else if (json_is_null(json_at(s->step, "schedule_lag_ns")))
		doc_text(p->doc, "service-same", "In a closed loop a message is due when it is sent, so response and "
			 "service time are the same.");
	else
		doc_text(p->doc, "service-none", "This run did not keep the distribution of the service time; its "
			 "percentiles are in run.json.");
}

void section_distribution(struct page *p)
{
	double bytes = p->points->n_sizes ? p->points->sizes[0] : NAN;
	struct shown *s = page_room(p, 2, sizeof(*s));
	size_t n = 1;

	doc_section(p->doc, "distribution", "How round trips are distributed");
	if (!s || !read_largest(p, bytes, &s[0])) {
		doc_text(p->doc, "distribution-none", "There is no distribution of round trips: the workload has none, "
			 "no step was measured, or the .hlog files are not beside run.json.");
		return;
	}
	n += read_capacity(p, &s[0], &s[1]);
	for (size_t k = 0; k < n; k++)
		say_jitter(p, &s[k]);
	say_service(p, &s[0]);
	if (p->points->n_sizes > 1)
		doc_text(p->doc, NULL, "The smallest of %zu message sizes is shown; the others are in the .hgrm files.",
			 p->points->n_sizes);
	show_spectrum(p, s, n);
	show_bins(p, &s[0]);
}

/* Names of the parts in run.json, and in words. */
static const struct {
	const char *path, *words;
} parts[] = {
	{ "streams.to_server", "to the server" }, { "streams.from_server", "from the server" },
	{ "kinds.write", "write" }, { "kinds.read", "read" }, { "kinds.atomic", "atomic" },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static bool has_part(const struct point *at, const char *path)
{
	for (size_t i = 0; i < at->n; i++)
		if (json_is_object(json_at(at->steps[i], path)))
			return true;
	return false;
}

static bool has_parts(const struct page *p)
{
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < PARTS; k++)
			if (has_part(&p->points->v[i], parts[k].path))
				return true;
	return false;
}

static void show_parts(struct page *p)
{
	static const struct page_column columns[] = {
		{ "rate#operations/s", "msgs_per_s", 1, 0 }, { "throughput#MB/s", "bytes_per_s", 1e-6, 1 },
		{ "p50#us", "response_ns.p50", 1e-3, 1 }, { "p95#us", "response_ns.p95", 1e-3, 1 },
		{ "p99#us", "response_ns.p99", 1e-3, 1 }, { "Jain's index#", "fairness.jain_index", 1, 3 },
		{ "behind earlier ones#%", "head_of_line_ratio", 100, 1 }, { 0 }
	};
	struct doc_table *t;

	if (!has_parts(p))
		return;
	doc_heading(p->doc, "By direction or kind");
	doc_text(p->doc, "parts",
		 "Operations of a client end in the order in which they began, so one waits for those before it. "
		 "The share of the time spent behind earlier operations of the same direction is head-of-line "
		 "blocking; with one operation in flight there is none. Jain's index is 1 if all clients got the "
		 "same.");
	t = page_table(p, "parts", "Operations by direction or kind.", PAGE_POINT ";operations");
	page_columns(p, t, columns);
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < PARTS; k++)
			if (has_part(&p->points->v[i], parts[k].path)) {
				page_row(p, t, DOC_PLAIN, p->points->v[i].clients, p->points->v[i].bytes);
				page_cells(t, "s", parts[k].words);
				page_cells_at(p, t, columns, &p->points->v[i], parts[k].path);
			}
}

static void show_one_way(struct page *p)
{
	static const struct page_column columns[] = {
		{ "min#us", "one_way_ns.min", 1e-3, 2 }, { "mean#us", "one_way_ns.mean", 1e-3, 2 },
		{ "p50#us", "one_way_ns.p50", 1e-3, 2 }, { "p95#us", "one_way_ns.p95", 1e-3, 2 },
		{ "p99#us", "one_way_ns.p99", 1e-3, 2 }, { "p99.9#us", "one_way_ns.p99_9", 1e-3, 2 },
		{ "max#us", "one_way_ns.max", 1e-3, 2 }, { 0 }
	};

	page_points(p, "one_way",
		    "One way: half of the round trips above, to compare with tools that print half of a round "
		    "trip, such as ib_send_lat. Nothing was measured one way.", columns);
}

void parts_add(struct page *p)
{
	show_one_way(p);
	show_parts(p);
}
