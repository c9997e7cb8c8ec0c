/* What of a chart is to be seen, and where. See chart_internal.h. */
#include "loadgen/report/chart/chart_internal.h"

#include <math.h>
#include <string.h>

#include "common/base/utf8.h"

#define LETTER 11		/* the width of one */
#define SIDE_MIN 22		/* half a tick's name */
#define SAMPLE 50		/* of a series in the legend */
#define ANGLED_CHARS 14		/* of a category's name, at most */

/* --- words --- */

static const char *raw_word(const struct chart *c, enum chart_word kind, size_t i)
{
	switch (kind) {
	case CHART_WORD_SERIES: return i < c->n_series ? c->series[i].label : NULL;
	case CHART_WORD_RULE: case CHART_WORD_RULE_LESS: case CHART_WORD_RULE_MORE:
		return i < c->n_rules ? c->rules[i].label : NULL;
	case CHART_WORD_CATEGORY: return i < c->n_categories ? c->categories[i] : NULL;
	case CHART_WORD_X: return c->x_label;
	case CHART_WORD_Y: return c->y_label;
	case CHART_WORD_RIGHT: return c->right_label;
	}
	return NULL;
}

const char *chart_word(const struct chart *c, enum chart_word kind, size_t i, size_t *shown)
{
	const char *word = raw_word(c, kind, i);
	bool both = c->right_label && *c->right_label && c->y_label && *c->y_label;
	size_t max = kind == CHART_WORD_CATEGORY ? ANGLED_CHARS : kind == CHART_WORD_RULE ? 36 : 50;

	if ((kind == CHART_WORD_Y || kind == CHART_WORD_RIGHT) && both)
		max = 26;
	*shown = word ? utf8_count(word) : 0;
	*shown = *shown < max ? *shown : max;
	return word ? word : "";
}

size_t chart_word_length(const struct chart *c, enum chart_word kind, size_t i)
{
	size_t n;

	chart_word(c, kind, i, &n);
	if (n > 0 && kind == CHART_WORD_SERIES && c->series[i].right)
		n += sizeof(CHART_ON_THE_RIGHT) - 1;
	return n;
}

/* --- what is to be seen --- */

bool chart_point_at(const struct chart_layout *l, const struct chart_series *s, size_t i)
{
	return chart_drawable(s->x[i], l->x.log) && chart_drawable(s->y[i], s->right ? l->right.log : l->y.log);
}

size_t chart_points(const struct chart_layout *l, const struct chart_series *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += chart_point_at(l, s, i);
	return n;
}

bool chart_is_boxes(const struct chart_series *s)
{
	return s->mark == CHART_STACK || (s->mark == CHART_BARS && s->n > 1);
}

size_t chart_category_of(double x)
{
	return x > -0.5 && x < CHART_CATEGORIES_MAX - 0.5 ? (size_t)(x + 0.5) : CHART_CATEGORIES_MAX;
}

static void widen_by_stack(struct chart_scale *y, const struct chart_series *s, double sums[CHART_CATEGORIES_MAX])
{
	for (size_t i = 0; i < s->n; i++) {
		size_t at = chart_category_of(s->x[i]);

		if (at == CHART_CATEGORIES_MAX || !chart_drawable(s->y[i], false) || s->y[i] < 0)
			continue;
		sums[at] += s->y[i];
		chart_scale_widen(y, sums[at]);
	}
}

static void widen_by_series(struct chart_layout *l, const struct chart_series *s, double sums[CHART_CATEGORIES_MAX])
{
	struct chart_scale *y = s->right ? &l->right : &l->y;

	for (size_t i = 0; i < s->n; i++) {
		if (!chart_point_at(l, s, i))
			continue;
		chart_scale_widen(&l->x, s->x[i]);
		/* A stack is at its highest where all of it stands; a histogram's last point only ends it. */
		if (s->mark != CHART_STACK)
			chart_scale_widen(y, s->y[i]);
		if (s->low)
			chart_scale_widen(y, s->low[i]);
		if (s->high)
			chart_scale_widen(y, s->high[i]);
	}
	if (s->mark == CHART_STACK)
		widen_by_stack(y, s, sums);
}

/* A rule far off would leave nothing of the rest: it is named at the edge instead. */
static bool rule_is_far(const struct chart_scale *s, double at)
{
	double room = fmax(s->hi - s->lo, fmax(fabs(s->lo), fabs(s->hi)));

	return s->log ? at > s->hi * 1e3 || at < s->lo / 1e3 : at > s->hi + 2 * room || at < s->lo - 2 * room;
}

static void widen_by_rules(struct chart_layout *l, const struct chart *c)
{
	struct chart_scale x = l->x, y = l->y;

	for (size_t i = 0; i < c->n_rules; i++) {
		const struct chart_rule *r = &c->rules[i];

		if (!rule_is_far(r->vertical ? &x : &y, r->at))
			chart_scale_widen(r->vertical ? &l->x : &l->y, r->at);
	}
}

size_t chart_categories(const struct chart *c)
{
	return c->n_categories < CHART_CATEGORIES_MAX ? c->n_categories : CHART_CATEGORIES_MAX;
}

/* False where there is nothing to see. */
static bool set_scales(struct chart_layout *l, const struct chart *c)
{
	double sums[2][CHART_CATEGORIES_MAX] = { { 0 } };

	l->x.log = (c->x_log || c->x_percentile) && !chart_categories(c);
	l->y.log = c->y_log;
	for (size_t i = 0; i < c->n_series; i++)
		widen_by_series(l, &c->series[i], sums[c->series[i].right]);
	if (!l->x.used || (!l->y.used && !l->right.used))
		return false;
	if (!l->y.used)
		chart_scale_widen(&l->y, 1);
	widen_by_rules(l, c);
	if (c->x_percentile)
		chart_scale_round_percentile(&l->x);
	else
		chart_scale_round(&l->x, false, 6);
	chart_scale_round(&l->y, true, 5);
	if (l->right.used)
		chart_scale_round(&l->right, true, 5);
	return true;
}

/* --- where it stands --- */

static double width_of_ticks(const struct chart_scale *s)
{
	size_t longest = 0;

	for (size_t i = 0; i < s->n_ticks; i++)
		longest = utf8_count(s->labels[i]) > longest ? utf8_count(s->labels[i]) : longest;
	return (double)longest * LETTER + 20;
}

static void set_categories(struct chart_layout *l, const struct chart *c)
{
	size_t n = chart_categories(c), longest = 0;
	double slot;

	for (size_t i = 0; i < n; i++) {
		size_t length = chart_word_length(c, CHART_WORD_CATEGORY, i);

		longest = length > longest ? length : longest;
	}
	slot = (CHART_WIDTH - l->left - l->right_edge) / (double)n;
	l->x.lo = -0.6;
	l->x.hi = (double)n - 0.4;
	l->angled = (double)(longest + 1) * LETTER > slot;
	l->each_category = l->angled && slot < CHART_LINE_HEIGHT ? (size_t)ceil(CHART_LINE_HEIGHT / slot) : 1;
	if (!l->angled)
		return;
	/* So that the first one does not begin outside. */
	l->left = fmax(l->left, (double)longest * LETTER * 0.77 - slot / 2);
	l->bottom += (double)longest * LETTER * 0.65 - CHART_LINE_HEIGHT / 2.0;
}

static void set_legend(struct chart_layout *l, const struct chart *c)
{
	size_t longest = 0, n;

	for (size_t i = 0; i < c->n_series; i++) {
		n = chart_word_length(c, CHART_WORD_SERIES, i);
		if (n == 0 || !chart_points(l, &c->series[i]))
			continue;
		l->legend++;
		longest = n > longest ? n : longest;
	}
	n = (size_t)(CHART_WIDTH / (double)(longest * LETTER + SAMPLE + 2 * LETTER));
	n = n < 1 ? 1 : n > 3 ? 3 : n;
	l->legend_rows = (l->legend + n - 1) / n;
}

bool chart_layout_set(struct chart_layout *l, const struct chart *c)
{
	bool named;

	memset(l, 0, sizeof(*l));
	if (!set_scales(l, c))
		return false;
	named = chart_word_length(c, CHART_WORD_Y, 0) || chart_word_length(c, CHART_WORD_RIGHT, 0);
	l->left = fmax(width_of_ticks(&l->y), SIDE_MIN);
	l->right_edge = l->right.used ? fmax(width_of_ticks(&l->right), SIDE_MIN) : 2 * SIDE_MIN;
	l->top = named ? CHART_LINE_HEIGHT + 12 : 14;
	l->bottom = CHART_LINE_HEIGHT + 8;
	if (chart_categories(c))
		set_categories(l, c);
	if (chart_word_length(c, CHART_WORD_X, 0))
		l->bottom += CHART_LINE_HEIGHT;
	set_legend(l, c);
	l->height = l->top + CHART_PLOT_HEIGHT + l->bottom;
	if (l->legend)
		l->height += 10 + (double)l->legend_rows * CHART_LINE_HEIGHT;
	return true;
}
