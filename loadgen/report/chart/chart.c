/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a chart as SVG. See chart.h. One pass writes from the back to the front: grid, axes, series, rules, legend. */
#include "loadgen/report/chart/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/utf8.h"
#include "loadgen/report/chart/chart_layout.h"
#include "loadgen/report/chart/xml.h"

#define COLOURS 8
#define BAR_SHARE 0.7		/* of a category's width */
#define POINTS_SEEN 60		/* a line with more points has no marks */
#define BASELINE 6		/* distance of a text's baseline below its middle */

struct plot {
	const struct chart *c;
	struct chart_layout l;
	FILE *out;
};

/* Writes a text's start tag. `anchor` says which part of the text is at x: "start", "middle" or "end". */
static void text_begin(const struct plot *p, const char *class, const char *anchor, double x, double y)
{
	fprintf(p->out, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, anchor, x, y);
}

/* Writes the label, at most `max` characters of it, and the end tag. */
static void text_end(const struct plot *p, const char *label, size_t max, const char *after)
{
	char *clean = utf8_clean(label ? label : "", false);

	xml_write(p->out, clean ? clean : "", max);
	fprintf(p->out, "%s</text>\n", after);
	free(clean);
}

static void put_text(const struct plot *p, const char *class, const char *anchor, double x, double y, const char *label,
		     size_t max)
{
	if (!chart_chars(label, 1))
		return;
	text_begin(p, class, anchor, x, y);
	text_end(p, label, max, "");
}

static void put_grid(const struct plot *p)
{
	const struct chart_layout *l = &p->l;

	fputs("<path fill=\"none\" stroke=\"var(--grid)\" d=\"", p->out);
	for (size_t i = 0; i < l->x.n_ticks; i++)
		fprintf(p->out, "M%.1f %.1fV%.1f", chart_scale_place(&l->x, l->x.ticks[i].at), l->top, l->bottom);
	for (size_t i = 0; i < l->y.n_ticks; i++)
		fprintf(p->out, "M%.1f %.1fH%.1f", l->left, chart_scale_place(&l->y, l->y.ticks[i].at), l->right_edge);
	fprintf(p->out, "\"/>\n<path fill=\"none\" stroke=\"var(--axis)\" d=\"M%.1f %.1fH%.1f\"/>\n", l->left,
		l->bottom, l->right_edge);
}

static void put_categories(const struct plot *p)
{
	const struct chart_layout *l = &p->l;

	for (size_t i = 0; i < p->c->n_categories; i += l->each_category) {
		double x = chart_scale_place(&l->x, (double)i);

		if (l->angled)
			fprintf(p->out, "<g transform=\"rotate(-40 %.1f %.1f)\">", x, l->bottom + 16);
		put_text(p, "tick", l->angled ? "end" : "middle", x, l->bottom + (l->angled ? 20 : 30),
			 p->c->categories[i], CHART_CATEGORY_CHARS);
		if (l->angled)
			fputs("</g>", p->out);
	}
}

static void put_side(const struct plot *p, const struct chart_scale *s, const char *anchor, double x)
{
	for (size_t i = 0; i < s->n_ticks; i++)
		put_text(p, "tick", anchor, x, chart_scale_place(s, s->ticks[i].at) + BASELINE, s->ticks[i].label,
			 CHART_LABEL_CHARS);
}

static void put_axes(const struct plot *p)
{
	const struct chart_layout *l = &p->l;
	const struct chart *c = p->c;
	/* The labels of two axes share the width. */
	size_t chars = chart_chars(c->y_label, 1) && chart_chars(c->right_label, 1) ? CHART_LABEL_CHARS / 2 :
		       CHART_LABEL_CHARS;

	for (size_t i = 0; i < l->x.n_ticks; i++)
		put_text(p, "tick", "middle", chart_scale_place(&l->x, l->x.ticks[i].at), l->bottom + 30,
			 l->x.ticks[i].label, CHART_LABEL_CHARS);
	put_side(p, &l->y, "end", l->left - 10);
	put_side(p, &l->right, "start", l->right_edge + 10);
	put_categories(p);
	put_text(p, "word", "start", 2, 20, c->y_label, chars);
	put_text(p, "word", "end", CHART_WIDTH - 2, 20, c->right_label, chars);
	put_text(p, "word", "middle", (l->left + l->right_edge) / 2, l->legend_top - 8, c->x_label, CHART_LABEL_CHARS);
}

/* Series differ by dashes and shapes as well as by colour. When the colours repeat, dashes and shapes shift by one, so
 * that the combination is new. */
struct look {
	char colour[16];
	const char *dashes;
	size_t shape;
};

static struct look look_of(const struct plot *p, size_t i)
{
	static const char *const dashes[] = { "none", "14 5", "3 4", "14 4 3 4", "22 6", "7 4", "20 4 3 4 3 4", "2 8" };
	size_t nth = (i + i / COLOURS) % COLOURS;
	struct look look = { .colour = "var(--ghost)", .dashes = dashes[nth], .shape = nth };

	if (!p->c->series[i].dim)
		snprintf(look.colour, sizeof(look.colour), "var(--c%zu)", i % COLOURS);
	return look;
}

static void put_stroke(const struct plot *p, const struct look *look, const char *dashes)
{
	fprintf(p->out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
		look->colour, dashes);
}

static bool is_filled(const struct chart_series *s)
{
	return s->mark == CHART_BAND || s->mark == CHART_STACK || s->mark == CHART_BARS;
}

static void put_fill(const struct plot *p, const struct chart_series *s, const struct look *look)
{
	bool band = s->mark == CHART_BAND;

	fprintf(p->out, "<path fill=\"%s\" fill-opacity=\"%s\" stroke=\"%s\" d=\"", look->colour,
		band ? "0.18" : s->dim ? "0.4" : "1", band ? "none" : "var(--page)");
}

/* The last four shapes are open. They are filled with the page's colour, which hides the line behind them. */
static void put_marks(const struct plot *p, const struct look *look)
{
	fprintf(p->out, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\" d=\"",
		look->shape < 4 ? look->colour : "var(--page)", look->colour);
}

/* A circle, square, triangle or diamond. */
static void put_mark(const struct plot *p, size_t shape, double x, double y)
{
	switch (shape % 4) {
	case 0: fprintf(p->out, "M%.1f %.1fa4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x - 4, y); break;
	case 1: fprintf(p->out, "M%.1f %.1fh8v8h-8z", x - 4, y - 4); break;
	case 2: fprintf(p->out, "M%.1f %.1fl5 8h-10z", x, y - 5); break;
	case 3: fprintf(p->out, "M%.1f %.1fl5 5l-5 5l-5-5z", x, y - 5); break;
	}
}

static double place_x(const struct plot *p, const struct chart_series *s, size_t i)
{
	return chart_scale_place(&p->l.x, s->x[i]);
}

static double place_y(const struct plot *p, const struct chart_series *s, double y)
{
	return chart_scale_place(chart_scale_of(&p->l, s), y);
}

/* The place of a bound of a point's interval; if it has none, of the point. On a log axis 0 is at the lower end. */
static double place_bound(const struct plot *p, const struct chart_series *s, const double *of, size_t i)
{
	return place_y(p, s, of && chart_drawable(of[i], false) ? of[i] : s->y[i]);
}

/* The line ends at a gap and begins again after it. */
static void put_line(const struct plot *p, const struct chart_series *s)
{
	bool begun = false;

	for (size_t i = 0; i < s->n; i++) {
		bool is_point = chart_point_at(&p->l, s, i);

		if (is_point && begun && s->mark == CHART_STEPS)
			fprintf(p->out, "H%.1fV%.1f", place_x(p, s, i), place_y(p, s, s->y[i]));
		else if (is_point)
			fprintf(p->out, "%c%.1f %.1f", begun ? 'L' : 'M', place_x(p, s, i), place_y(p, s, s->y[i]));
		begun = is_point;
	}
}

static void put_whiskers(const struct plot *p, const struct chart_series *s)
{
	for (size_t i = 0; i < s->n; i++) {
		double x, low, high;

		if (!chart_point_at(&p->l, s, i))
			continue;
		x = place_x(p, s, i);
		low = place_bound(p, s, s->low, i);
		high = place_bound(p, s, s->high, i);
		if (low != high)
			fprintf(p->out, "M%.1f %.1fh8m-4 0V%.1fm-4 0h8", x - 4, low, high);
	}
}

static void put_band(const struct plot *p, const struct chart_series *s)
{
	for (size_t i = 0, end; i < s->n; i = end + 1) {
		for (end = i; end < s->n && chart_point_at(&p->l, s, end); end++)
			fprintf(p->out, "%c%.1f %.1f", end == i ? 'M' : 'L', place_x(p, s, end),
				place_bound(p, s, s->high, end));
		for (size_t k = end; k > i; k--)
			fprintf(p->out, "L%.1f %.1f", place_x(p, s, k - 1), place_bound(p, s, s->low, k - 1));
		fputs(end > i ? "z" : "", p->out);
	}
}

static void put_box(const struct plot *p, const struct chart_series *s, double from, double to, double bottom,
		    double top)
{
	const struct chart_scale *y = chart_scale_of(&p->l, s);

	fprintf(p->out, "M%.1f %.1fH%.1fV%.1fH%.1fz", chart_scale_place(&p->l.x, from), chart_scale_place(y, bottom),
		chart_scale_place(&p->l.x, to), chart_scale_place(y, top), chart_scale_place(&p->l.x, from));
}

static void put_boxes(const struct plot *p, const struct chart_series *s, double sums[CHART_CATEGORIES_MAX])
{
	double bottom;

	for (size_t i = 0; i < s->n; i++) {
		if (!chart_point_at(&p->l, s, i) || s->y[i] == 0)
			continue;
		if (s->mark == CHART_STACK && chart_stack_next(s, i, sums, &bottom))
			put_box(p, s, s->x[i] - BAR_SHARE / 2, s->x[i] + BAR_SHARE / 2, bottom, bottom + s->y[i]);
		else if (s->mark == CHART_BARS && i + 1 < s->n && chart_drawable(s->x[i + 1], p->l.x.log))
			put_box(p, s, s->x[i], s->x[i + 1], 0, s->y[i]);
	}
}

static void put_points(const struct plot *p, const struct chart_series *s, const struct look *look)
{
	put_marks(p, look);
	for (size_t i = 0; i < s->n; i++)
		if (chart_point_at(&p->l, s, i))
			put_mark(p, look->shape, place_x(p, s, i), place_y(p, s, s->y[i]));
	fputs("\"/>\n", p->out);
}

/* A single point has no line, so it needs a mark. */
static bool has_points(const struct plot *p, const struct chart_series *s)
{
	return (s->mark == CHART_LINE && s->n <= POINTS_SEEN) || chart_points(&p->l, s) == 1;
}

static void put_series(const struct plot *p, size_t i, double sums[CHART_CATEGORIES_MAX])
{
	const struct chart_series *s = &p->c->series[i];
	struct look look = look_of(p, i);

	if (is_filled(s)) {
		put_fill(p, s, &look);
		if (s->mark == CHART_BAND)
			put_band(p, s);
		else
			put_boxes(p, s, sums);
		fputs("\"/>\n", p->out);
		return;
	}
	put_stroke(p, &look, look.dashes);
	put_line(p, s);
	fputs("\"/>\n", p->out);
	if (s->low || s->high) {
		put_stroke(p, &look, "none");
		put_whiskers(p, s);
		fputs("\"/>\n", p->out);
	}
	if (has_points(p, s))
		put_points(p, s, &look);
}

/* Draws bands first (at the back), then dim series, then the others. */
static void put_all_series(const struct plot *p)
{
	double sums[2][CHART_CATEGORIES_MAX] = { { 0 } };

	for (int layer = 0; layer <= 2; layer++)
		for (size_t i = 0; i < p->c->n_series; i++) {
			const struct chart_series *s = &p->c->series[i];

			if ((s->mark == CHART_BAND ? 0 : s->dim ? 1 : 2) == layer && chart_points(&p->l, s))
				put_series(p, i, sums[s->right]);
		}
}

static void put_sample(const struct plot *p, size_t i, double x, double y)
{
	const struct chart_series *s = &p->c->series[i];
	struct look look = look_of(p, i);

	if (is_filled(s)) {
		put_fill(p, s, &look);
		fprintf(p->out, "M%.1f %.1fh%dv14h-%dz\"/>\n", x, y - 7, CHART_SAMPLE, CHART_SAMPLE);
		return;
	}
	put_stroke(p, &look, look.dashes);
	fprintf(p->out, "M%.1f %.1fh%d\"/>\n", x, y, CHART_SAMPLE);
	if (has_points(p, s)) {
		put_marks(p, &look);
		put_mark(p, look.shape, x + CHART_SAMPLE / 2.0, y);
		fputs("\"/>\n", p->out);
	}
}

static void put_legend(const struct plot *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->c->n_series; i++) {
		const struct chart_series *s = &p->c->series[i];
		double x, y;

		if (!chart_is_named(&p->l, s))
			continue;
		x = 2 + (double)(n / p->l.legend_rows) * p->l.legend_width;
		y = p->l.legend_top + 10 + ((double)(n % p->l.legend_rows) + 0.5) * CHART_LINE_HEIGHT;
		put_sample(p, i, x, y);
		text_begin(p, "word", "start", x + CHART_SAMPLE + 8, y + BASELINE);
		text_end(p, s->label, CHART_LABEL_CHARS, s->right ? CHART_ON_THE_RIGHT : "");
		n++;
	}
}

/* The direction in which a rule off the chart lies; "" for one on it. */
static const char *arrow_of(const struct chart_scale *s, const struct chart_rule *r)
{
	if (r->at < s->lo)
		return r->vertical ? "\xe2\x86\x90 " : "\xe2\x86\x93 ";
	if (r->at > s->hi)
		return r->vertical ? "\xe2\x86\x92 " : "\xe2\x86\x91 ";
	return "";
}

static void put_rule_label(const struct plot *p, const struct chart_rule *r, const struct chart_scale *s,
			   const char *anchor, double x, double y)
{
	if (!chart_chars(r->label, 1))
		return;
	text_begin(p, r->bad ? "mark bad" : "mark", anchor, x, y);
	fputs(arrow_of(s, r), p->out);
	text_end(p, r->label, CHART_RULE_CHARS, "");
}

static void put_rule_line(const struct plot *p, const struct chart_rule *r, double at)
{
	const struct chart_layout *l = &p->l;

	fprintf(p->out, "<path fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\" d=\"",
		r->bad ? "bad" : "axis");
	if (r->vertical)
		fprintf(p->out, "M%.1f %.1fV%.1f\"/>\n", at, l->bottom, l->top);
	else
		fprintf(p->out, "M%.1f %.1fH%.1f\"/>\n", l->left, at, l->right_edge);
}

static void put_rules(const struct plot *p)
{
	const struct chart_layout *l = &p->l;
	double above = INFINITY;	/* y of the last horizontal rule's label */

	for (size_t i = 0; i < p->c->n_rules; i++) {
		const struct chart_rule *r = &p->c->rules[i];
		const struct chart_scale *s = r->vertical ? &l->x : &l->y;
		double at = chart_scale_place(s, r->at), y = at - BASELINE;

		if (isnan(r->at))
			continue;
		if (!*arrow_of(s, r))
			put_rule_line(p, r, at);
		if (r->vertical) {
			put_rule_label(p, r, s, at > CHART_WIDTH / 2 ? "end" : "start", at,
				       l->top - 8 - (double)l->rules[i].row * CHART_LINE_HEIGHT);
			continue;
		}
		/* The label is above its line; without room there, below. */
		if (y < l->top + 2 * BASELINE || fabs(y - above) < CHART_LINE_HEIGHT)
			y = at + 3 * BASELINE;
		put_rule_label(p, r, s, "end", l->right_edge - 4, y);
		above = y;
	}
}

int chart_draw(const struct chart *c, char **svg)
{
	struct plot p = { .c = c };
	char *text = NULL;
	size_t n;

	*svg = NULL;
	if (!chart_layout_set(&p.l, c))
		return 0;
	p.out = open_memstream(&text, &n);
	if (!p.out)
		return -ENOMEM;
	fprintf(p.out, "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\">\n", CHART_WIDTH, p.l.height);
	put_grid(&p);
	put_axes(&p);
	put_all_series(&p);
	put_rules(&p);
	put_legend(&p);
	fputs("</svg>\n", p.out);
	if (ferror(p.out) | fclose(p.out)) {
		free(text);
		return -ENOMEM;
	}
	*svg = text;
	return 0;
}
