/* Points side by side as bars. See bars.h. */
#include "loadgen/report/sections/bars.h"

#include <math.h>

void bars_choose(const struct points *points, struct bars *out)
{
	size_t n = points->n < BARS_MAX ? points->n : BARS_MAX;

	out->n = n;
	for (size_t i = 0; i < n; i++)
		out->v[i] = &points->v[n > 1 ? i * (points->n - 1) / (n - 1) : 0];
}

static const char *label_of(struct page *p, const struct point *at)
{
	if (p->points->n_sizes > 1)
		return page_text(p, "%s x %s", page_count(p, at->clients), page_bytes(p, at->bytes));
	return page_count(p, at->clients);
}

void bars_name(struct page *p, const struct bars *bars, struct chart *c)
{
	for (size_t i = 0; i < bars->n; i++)
		c->categories[i] = label_of(p, bars->v[i]);
	c->n_categories = bars->n;
}

bool bars_add(struct page *p, const struct bars *bars, struct chart *c, const char *label, bars_value_fn *value,
	      const void *arg)
{
	double *x = page_numbers(p, bars->n + 1), *y = page_numbers(p, bars->n + 1);
	bool any = false;

	for (size_t i = 0; x && y && i < bars->n; i++) {
		x[i] = (double)i;
		y[i] = value(bars->v[i], arg);
		any |= isfinite(y[i]);
	}
	page_series(c, (struct chart_series){ .label = label, .mark = CHART_STACK, .x = x, .y = y, .n = bars->n });
	return any;
}
