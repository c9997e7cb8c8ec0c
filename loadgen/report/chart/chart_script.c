/* What gnuplot is told. See chart_internal.h. It gets numbers and placeholders only. */
#include "loadgen/report/chart/chart_internal.h"

#include <math.h>

#define BAR_SHARE 0.7
#define POINTS_SEEN 60		/* with more of them, a line has no marks */

/* In quotes. gnuplot sets columns of the legend by the length. */
static void placeholder(const struct chart *c, enum chart_word kind, size_t i, FILE *out)
{
	size_t n = chart_word_length(c, kind, i);
	int written = fprintf(out, "'%c%zu", kind, i) - 1;

	for (; n > 0 && written < (int)n; written++)
		putc('x', out);
	putc('\'', out);
}

/* --- the frame --- */

static double share_of_width(double x)
{
	return x / CHART_WIDTH;
}

/* gnuplot counts from below. */
static double share_of_height(const struct chart_layout *l, double y)
{
	return 1 - y / l->height;
}

static int rgb(int green, int blue)
{
	return CHART_RGB_RED << 16 | green << 8 | blue;
}

static int part(enum chart_part p)
{
	return rgb(CHART_RGB_PART, (int)p);
}

/* A tick's name is a format to gnuplot. */
static void write_scale(const struct chart_scale *s, FILE *out)
{
	fputs(" (", out);
	for (size_t i = 0; i < s->n_ticks; i++) {
		fputs(i ? ", '" : "'", out);
		for (const char *p = s->labels[i]; *p; p++)
			fputs(*p == '%' ? "%%" : (const char[]){ *p, '\0' }, out);
		fprintf(out, "' %.12g", s->ticks[i]);
	}
	fputs(")\n", out);
}

static void write_categories(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	fputs(l->angled ? " rotate by 40 right (" : " (", out);
	for (size_t i = 0; i < chart_categories(c); i += l->each_category) {
		fputs(i ? ", " : "", out);
		placeholder(c, CHART_WORD_CATEGORY, i, out);
		fprintf(out, " %zu", i);
	}
	fputs(")\n", out);
}

static void write_ticks(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	fputs("set xtics nomirror scale 0.6", out);
	if (chart_categories(c))
		write_categories(l, c, out);
	else
		write_scale(&l->x, out);
	fputs("set ytics nomirror scale 0", out);
	write_scale(&l->y, out);
	if (!l->right.used)
		return;
	fprintf(out, "set y2range [%.12g:%.12g]\nset y2tics nomirror scale 0", l->right.lo, l->right.hi);
	write_scale(&l->right, out);
}

static void write_labels(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	double below = l->top + CHART_PLOT_HEIGHT + l->bottom;

	if (chart_word_length(c, CHART_WORD_Y, 0)) {
		fputs("set label ", out);
		placeholder(c, CHART_WORD_Y, 0, out);
		fprintf(out, " at screen 0.003, %.6f left\n", share_of_height(l, 14));
	}
	if (chart_word_length(c, CHART_WORD_RIGHT, 0)) {
		fputs("set label ", out);
		placeholder(c, CHART_WORD_RIGHT, 0, out);
		fprintf(out, " at screen 0.997, %.6f right\n", share_of_height(l, 14));
	}
	if (chart_word_length(c, CHART_WORD_X, 0)) {
		fputs("set label ", out);
		placeholder(c, CHART_WORD_X, 0, out);
		fprintf(out, " at screen %.6f, %.6f center\n",
			share_of_width((l->left + CHART_WIDTH - l->right_edge) / 2), share_of_height(l, below - 12));
	}
	if (!l->legend)
		fputs("unset key\n", out);
	else
		fprintf(out, "set key at screen 0.003, %.6f left top Left reverse vertical maxrows %zu samplen 2 "
			"spacing 1.08 width 1\n", share_of_height(l, below + 6), l->legend_rows);
}

static void write_frame(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	fprintf(out, "reset\nset terminal svg size %d,%.0f fixed noenhanced font 'sans,16' linewidth 1 butt\n",
		CHART_WIDTH, l->height);
	fprintf(out, "set border 1 lw 1 lc rgb '#%06x'\nset grid xtics ytics back lt 1 lw 1 lc rgb '#%06x'\n",
		part(CHART_PART_AXIS), part(CHART_PART_GRID));
	fprintf(out, "set lmargin at screen %.6f\nset rmargin at screen %.6f\n", share_of_width(l->left),
		share_of_width(CHART_WIDTH - l->right_edge));
	fprintf(out, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n", share_of_height(l, l->top),
		share_of_height(l, l->top + CHART_PLOT_HEIGHT));
	fprintf(out, "%s%sset xrange [%.12g:%.12g]\nset yrange [%.12g:%.12g]\n", l->x.log ? "set logscale x\n" : "",
		l->y.log ? "set logscale y\n" : "", l->x.lo, l->x.hi, l->y.lo, l->y.hi);
	write_ticks(l, c, out);
	write_labels(l, c, out);
}

/* --- rules --- */

/* Where on its axis, from 0 to 1. */
static double share_of_scale(const struct chart_scale *s, double v)
{
	if (s->log)
		return v <= 0 ? 0 : log(v / s->lo) / log(s->hi / s->lo);
	return (v - s->lo) / (s->hi - s->lo);
}

static void write_rule(const struct chart_layout *l, const struct chart *c, size_t i, FILE *out)
{
	const struct chart_rule *r = &c->rules[i];
	double at = share_of_scale(r->vertical ? &l->x : &l->y, r->at), along;
	bool seen = at >= 0 && at <= 1, far_half = at > 0.5;

	if (isnan(r->at))
		return;
	if (seen)
		fprintf(out, r->vertical ? "set arrow from graph %.6f, 0 to graph %.6f, 1" :
			"set arrow from graph 0, %.6f to graph 1, %.6f", at, at);
	if (seen)
		fprintf(out, " nohead front lw 1.5 dt (6,4) lc rgb '#%06x'\n",
			part(r->bad ? CHART_PART_BAD : CHART_PART_AXIS));
	if (!chart_word_length(c, CHART_WORD_RULE, i))
		return;
	/* One below the other, so that rules that stand close are told apart. */
	along = 1 - (12 + (double)i * (CHART_LINE_HEIGHT - 2)) / CHART_PLOT_HEIGHT;
	fputs("set label ", out);
	placeholder(c, seen ? CHART_WORD_RULE : at < 0 ? CHART_WORD_RULE_LESS : CHART_WORD_RULE_MORE, i, out);
	at = fmin(fmax(at, 0), 1);
	if (r->vertical)
		fprintf(out, " at graph %.6f, graph %.6f %s, 0 front\n", at, along,
			far_half ? "right offset -0.6" : "left offset 0.6");
	else
		fprintf(out, " at graph 0.99, graph %.6f right front\n",
			at + (at > 0.93 ? -12.0 : 12.0) / CHART_PLOT_HEIGHT);
}

/* --- data --- */

/* A point without an interval, or with a half, has none there. Below a log axis it ends at its lower end. */
static double bound(const struct chart_layout *l, const struct chart_series *s, const double *of, size_t i)
{
	const struct chart_scale *y = s->right ? &l->right : &l->y;
	double v = of ? of[i] : NAN;

	if (y->log && v < y->lo)
		return y->lo;
	return chart_drawable(v, y->log) ? v : s->y[i];
}

/* An empty line where there is a gap: nothing is drawn across it. */
static void write_points(const struct chart_layout *l, const struct chart_series *s, FILE *out)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!chart_point_at(l, s, i))
			fputs("\n", out);
		else
			fprintf(out, "%.12g %.12g %.12g %.12g\n", s->x[i], s->y[i], bound(l, s, s->low, i),
				bound(l, s, s->high, i));
	}
}

/* Boxes: middle, middle, left, right, bottom, top. */
static void write_box(double left, double right, double bottom, double top, FILE *out)
{
	fprintf(out, "%.12g %.12g %.12g %.12g %.12g %.12g\n", (left + right) / 2, bottom, left, right, bottom, top);
}

static void write_stack(const struct chart_layout *l, const struct chart_series *s, double sums[CHART_CATEGORIES_MAX],
			FILE *out)
{
	const struct chart_scale *y = s->right ? &l->right : &l->y;

	for (size_t i = 0; i < s->n; i++) {
		size_t at = chart_category_of(s->x[i]);

		if (at == CHART_CATEGORIES_MAX || !chart_drawable(s->y[i], false) || s->y[i] <= 0)
			continue;
		write_box((double)at - BAR_SHARE / 2, (double)at + BAR_SHARE / 2, fmax(sums[at], y->lo),
			  fmax(sums[at] + s->y[i], y->lo), out);
		sums[at] += s->y[i];
	}
}

static void write_bars(const struct chart_layout *l, const struct chart_series *s, FILE *out)
{
	const struct chart_scale *y = s->right ? &l->right : &l->y;
	double base = y->log ? y->lo : fmax(y->lo, 0);

	for (size_t i = 0; i + 1 < s->n; i++)
		if (chart_point_at(l, s, i) && chart_drawable(s->x[i + 1], l->x.log))
			write_box(s->x[i], s->x[i + 1], base, s->y[i], out);
}

static void write_data(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	double sums[2][CHART_CATEGORIES_MAX] = { { 0 } };

	for (size_t i = 0; i < c->n_series; i++) {
		const struct chart_series *s = &c->series[i];

		fprintf(out, "$data%zu << END\n", i);
		if (s->mark == CHART_STACK)
			write_stack(l, s, sums[s->right], out);
		else if (chart_is_boxes(s))
			write_bars(l, s, out);
		else
			write_points(l, s, out);
		fputs("END\n", out);
	}
}

/* --- series --- */

/* Told apart by more than colour: one in each of the lists after the other. */
static void write_style(const struct chart_layout *l, const struct chart *c, size_t i, bool in_legend, FILE *out)
{
	static const char *const dashes[] = { "1", "(14,5)", "(3,4)", "(14,4,3,4)", "(22,6)", "(7,4)", "(20,4,3,4,3,4)",
					      "(2,8)" };
	static const int shapes[] = { 7, 5, 9, 13, 6, 4, 8, 12 };
	const struct chart_series *s = &c->series[i];
	int colour = s->dim ? part(CHART_PART_GHOST) : rgb(CHART_RGB_SERIES, (int)(i % CHART_COLOURS));
	/* By the second series of a colour, dashes and shapes have moved on. */
	size_t nth = (i + i / CHART_COLOURS) % CHART_COLOURS;
	bool bars = (s->low || s->high) && !in_legend, alone = chart_points(l, s) == 1;
	bool with_points = alone || (s->mark == CHART_LINE && s->n <= POINTS_SEEN);

	if (chart_is_boxes(s))
		fprintf(out, "with %s fs solid %s border lc rgb '#%06x' lw 1 fc rgb '#%06x'",
			in_legend ? "boxes" : "boxxyerror", s->dim ? "0.4" : "1.0", part(CHART_PART_PAGE), colour);
	else if (s->mark == CHART_BAND)
		fprintf(out, "with filledcurves fs solid 0.18 noborder lc rgb '#%06x'", colour);
	else if (s->mark == CHART_POINTS || s->mark == CHART_BARS || (s->mark == CHART_STEPS && alone))
		fprintf(out, "with %s pt %d ps 0.9 lw 1.5 lc rgb '#%06x'", bars ? "yerrorbars" : "points", shapes[nth],
			colour);
	else if (s->mark == CHART_STEPS && !in_legend)
		fprintf(out, "with steps dt %s lw 2 lc rgb '#%06x'", dashes[nth], colour);
	else
		fprintf(out, "with %s dt %s lw %s pt %d ps %s lc rgb '#%06x'",
			bars ? "yerrorlines" : with_points ? "linespoints" : "lines", dashes[nth], s->dim ? "1.5" : "2",
			shapes[nth], with_points ? "0.8" : "0", colour);
}

static const char *columns_of(const struct chart_series *s)
{
	if (chart_is_boxes(s))
		return "1:2:3:4:5:6";
	if (s->mark == CHART_BAND)
		return "1:3:4";
	return s->low || s->high ? "1:2:3:4" : "1:2";
}

/* What lies behind comes first: bands, then what is dim. */
static int layer(const struct chart_series *s)
{
	return s->mark == CHART_BAND ? 0 : s->dim ? 1 : 2;
}

static void write_plot(const struct chart_layout *l, const struct chart *c, FILE *out)
{
	const char *before = "plot ";

	for (int at = 0; at <= 2; at++) {
		for (size_t i = 0; i < c->n_series; i++) {
			const struct chart_series *s = &c->series[i];

			if (layer(s) != at || !chart_points(l, s))
				continue;
			fprintf(out, "%s$data%zu using %s axes x1y%d ", before, i, columns_of(s), s->right ? 2 : 1);
			write_style(l, c, i, false, out);
			fputs(" notitle", out);
			before = ", \\\n";
		}
	}
	/* The legend is in the order of the series. */
	for (size_t i = 0; i < c->n_series; i++) {
		if (!chart_word_length(c, CHART_WORD_SERIES, i) || !chart_points(l, &c->series[i]))
			continue;
		fputs(", \\\nkeyentry ", out);
		write_style(l, c, i, true, out);
		fputs(" title ", out);
		placeholder(c, CHART_WORD_SERIES, i, out);
	}
	fputs("\n", out);
}

bool chart_script_write(const struct chart *c, FILE *out)
{
	struct chart_layout l;

	if (!chart_layout_set(&l, c))
		return false;
	write_frame(&l, c, out);
	for (size_t i = 0; i < c->n_rules; i++)
		write_rule(&l, c, i, out);
	write_data(&l, c, out);
	write_plot(&l, c, out);
	return true;
}
