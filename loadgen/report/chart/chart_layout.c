/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a chart. See chart_layout.h. */
#include "loadgen/report/chart/chart_layout.h"

#include <math.h>
#include <string.h>

#include "common/base/utf8.h"

#define PLOT_HEIGHT 270
#define LETTER 11		/* width of a letter */
#define SIDE_MIN 22		/* half a tick's label */

size_t chart_chars(const char *label, size_t max)
{
	size_t n = label ? utf8_count(label) : 0;

	return n < max ? n : max;
}

const struct chart_scale *chart_scale_of(const struct chart_layout *l, const struct chart_series *s)
{
	return s->right ? &l->right : &l->y;
}

bool chart_point_at(const struct chart_layout *l, const struct chart_series *s, size_t i)
{
	return chart_drawable(s->x[i], l->x.log) && chart_drawable(s->y[i], chart_scale_of(l, s)->log);
}

size_t chart_points(const struct chart_layout *l, const struct chart_series *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += chart_point_at(l, s, i);
	return n;
}

bool chart_is_named(const struct chart_layout *l, const struct chart_series *s)
{
	return chart_chars(s->label, 1) && chart_points(l, s);
}

bool chart_stack_next(const struct chart_series *s, size_t i, double sums[CHART_CATEGORIES_MAX], double *bottom)
{
	double x = s->x[i];

	if (!(x > -0.5 && x < CHART_CATEGORIES_MAX - 0.5) || !chart_drawable(s->y[i], false) || s->y[i] < 0)
		return false;
	*bottom = sums[(size_t)(x + 0.5)];
	sums[(size_t)(x + 0.5)] += s->y[i];
	return true;
}

static void widen_by_series(struct chart_layout *l, const struct chart_series *s, double sums[CHART_CATEGORIES_MAX])
{
	struct chart_scale *y = s->right ? &l->right : &l->y;
	double bottom;

	for (size_t i = 0; i < s->n; i++) {
		if (!chart_point_at(l, s, i))
			continue;
		chart_scale_widen(&l->x, s->x[i]);
		if (s->mark != CHART_STACK)
			chart_scale_widen(y, s->y[i]);
		else if (chart_stack_next(s, i, sums, &bottom))
			chart_scale_widen(y, bottom + s->y[i]);
		chart_scale_widen(y, s->low ? s->low[i] : NAN);
		chart_scale_widen(y, s->high ? s->high[i] : NAN);
	}
}

/* Widens the scale to a rule that is near the data. A far one would squeeze the data, so its label is at the edge. */
static void widen_by_rule(struct chart_scale *s, const struct chart_scale *data, double at)
{
	double room = 2 * fmax(data->hi - data->lo, fmax(fabs(data->lo), fabs(data->hi)));

	if (data->log ? at <= data->hi * 1e3 && at >= data->lo / 1e3 : at <= data->hi + room && at >= data->lo - room)
		chart_scale_widen(s, at);
}

/* False if there is no point. */
static bool set_scales(struct chart_layout *l, const struct chart *c)
{
	double sums[2][CHART_CATEGORIES_MAX] = { { 0 } };
	struct chart_scale x, y;

	l->x.log = (c->x_log || c->x_percentile) && !c->n_categories;
	l->y.log = c->y_log;
	for (size_t i = 0; i < c->n_series; i++)
		widen_by_series(l, &c->series[i], sums[c->series[i].right]);
	if (!l->x.used || (!l->y.used && !l->right.used))
		return false;
	if (!l->y.used)
		chart_scale_widen(&l->y, 1);
	x = l->x;
	y = l->y;
	for (size_t i = 0; i < c->n_rules; i++)
		widen_by_rule(c->rules[i].vertical ? &l->x : &l->y, c->rules[i].vertical ? &x : &y, c->rules[i].at);
	if (c->n_categories) {
		l->x.lo = -0.6;
		l->x.hi = (double)c->n_categories - 0.4;
	} else if (c->x_percentile) {
		chart_scale_round_percentile(&l->x);
	} else {
		chart_scale_round(&l->x, false, l->x.log ? 9 : 6);
	}
	chart_scale_round(&l->y, true, l->y.log ? 9 : 5);
	if (l->right.used)
		chart_scale_round(&l->right, true, 5);
	return true;
}

static double width_of_ticks(const struct chart_scale *s)
{
	size_t longest = 0;

	for (size_t i = 0; i < s->n_ticks; i++)
		longest = utf8_count(s->ticks[i].label) > longest ? utf8_count(s->ticks[i].label) : longest;
	return fmax((double)longest * LETTER + 20, SIDE_MIN);
}

/* Puts category labels at an angle if they are too long for their slots, and leaves some out if there are still too
 * many. Returns how much more height they need than one line. */
static double set_categories(struct chart_layout *l, const struct chart *c)
{
	double slot = (l->right_edge - l->left) / (double)c->n_categories, width;
	size_t longest = 0;

	for (size_t i = 0; i < c->n_categories; i++) {
		size_t n = chart_chars(c->categories[i], CHART_CATEGORY_CHARS);

		longest = n > longest ? n : longest;
	}
	width = (double)longest * LETTER;
	l->angled = width + LETTER > slot;
	l->each_category = l->angled ? (size_t)ceil(CHART_LINE_HEIGHT / slot) : 1;
	if (!l->angled)
		return 0;
	/* The first label must not begin outside of the chart. */
	l->left = fmax(l->left, width * 0.77 - slot / 2);
	return width * 0.65 - CHART_LINE_HEIGHT / 2.0;
}

/* Would a label from `from` to `to` overlap one of the first n labels in the row? */
static bool is_taken(const struct chart_layout *l, size_t n, size_t row, double from, double to)
{
	for (size_t i = 0; i < n; i++)
		if (l->rules[i].row == row && l->rules[i].to > from && l->rules[i].from < to)
			return true;
	return false;
}

/* Places the labels of vertical rules above the plot: each begins or ends at its line, in the lowest row with room for
 * it. Returns the number of rows. */
static size_t set_rules(struct chart_layout *l, const struct chart *c)
{
	size_t rows = 0;

	for (size_t i = 0; i < c->n_rules; i++) {
		const struct chart_rule *r = &c->rules[i];
		struct chart_rule_label *label = &l->rules[i];
		double at = chart_scale_place(&l->x, r->at);
		double width = (double)(chart_chars(r->label, CHART_RULE_CHARS) + 1) * LETTER;

		if (!r->vertical || isnan(r->at))
			continue;
		label->from = at > CHART_WIDTH / 2 ? at - width : at;
		label->to = label->from + width;
		while (is_taken(l, i, label->row, label->from, label->to))
			label->row++;
		rows = label->row >= rows ? label->row + 1 : rows;
	}
	return rows;
}

static void set_legend(struct chart_layout *l, const struct chart *c)
{
	size_t longest = 0;

	for (size_t i = 0; i < c->n_series; i++) {
		size_t n = chart_chars(c->series[i].label, CHART_LABEL_CHARS) +
			   (c->series[i].right ? strlen(CHART_ON_THE_RIGHT) : 0);

		if (!chart_is_named(l, &c->series[i]))
			continue;
		l->legend++;
		longest = n > longest ? n : longest;
	}
	l->legend_width = CHART_SAMPLE + (double)(longest + 2) * LETTER;
	l->legend_rows = (size_t)ceil((double)l->legend / fmin(fmax(floor(CHART_WIDTH / l->legend_width), 1), 3));
}

bool chart_layout_set(struct chart_layout *l, const struct chart *c)
{
	double below = CHART_LINE_HEIGHT + 10;

	memset(l, 0, sizeof(*l));
	if (!set_scales(l, c))
		return false;
	l->left = width_of_ticks(&l->y);
	l->right_edge = CHART_WIDTH - (l->right.used ? width_of_ticks(&l->right) : 2 * SIDE_MIN);
	if (c->n_categories)
		below += set_categories(l, c);
	if (chart_chars(c->x_label, 1))
		below += CHART_LINE_HEIGHT;
	l->x.from = l->left;
	l->x.to = l->right_edge;
	l->top = 14 + CHART_LINE_HEIGHT * (double)set_rules(l, c);
	if (chart_chars(c->y_label, 1) || chart_chars(c->right_label, 1))
		l->top += CHART_LINE_HEIGHT;
	l->bottom = l->top + PLOT_HEIGHT;
	l->y.from = l->right.from = l->bottom;
	l->y.to = l->right.to = l->top;
	set_legend(l, c);
	l->legend_top = l->bottom + below;
	l->height = l->legend_top + (l->legend ? 10 + (double)l->legend_rows * CHART_LINE_HEIGHT : 0);
	return true;
}
