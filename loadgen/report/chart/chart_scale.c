/* What the axes of a chart show. See chart_internal.h. */
#include "loadgen/report/chart/chart_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Beyond them an axis has no name for its ticks, and arithmetic with its ends may overflow. */
#define VALUE_MAX 1e20
#define LOG_MIN 1e-12

bool chart_drawable(double v, bool log)
{
	return isfinite(v) && fabs(v) <= VALUE_MAX && (!log || v >= LOG_MIN);
}

void chart_scale_widen(struct chart_scale *s, double v)
{
	if (!chart_drawable(v, s->log))
		return;
	s->lo = s->used ? fmin(s->lo, v) : v;
	s->hi = s->used ? fmax(s->hi, v) : v;
	s->used = true;
}

/* --- names of ticks --- */

/* "1.5 k"; as many digits as tell it from the next one, `step` away. */
static void name_tick(double v, double step, char *out, size_t size)
{
	static const struct { double unit; const char *prefix; } prefixes[] = {
		{ 1e18, " E" }, { 1e15, " P" }, { 1e12, " T" }, { 1e9, " G" }, { 1e6, " M" }, { 1e3, " k" },
		{ 1e-4, "" }, { 1e-6, " \xc2\xb5" }, { 1e-9, " n" }, { 0, " p" },
	};
	double unit;
	size_t i = 0, n;
	int decimals;

	if (fabs(v) < step * 1e-6) {
		snprintf(out, size, "0");
		return;
	}
	while (prefixes[i].unit > fabs(v) * (1 + 1e-9))
		i++;
	unit = !*prefixes[i].prefix ? 1 : prefixes[i].unit > 0 ? prefixes[i].unit : 1e-12;
	decimals = (int)ceil(-log10(step / unit) - 1e-9);
	decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
	n = (size_t)snprintf(out, size, "%.*f", decimals, v / unit);
	while (n < size && decimals && (out[n - 1] == '0' || out[n - 1] == '.'))
		if (out[--n] == '.')
			break;
	snprintf(out + n, size - n, "%s", prefixes[i].prefix);
}

static void add_tick(struct chart_scale *s, double v, double step)
{
	if (s->n_ticks == CHART_TICKS_MAX)
		return;
	s->ticks[s->n_ticks] = v;
	name_tick(v, step, s->labels[s->n_ticks++], sizeof(s->labels[0]));
}

/* --- ends and ticks --- */

/* The least of 1, 2, 5 and 10 times a power of ten that is no less than `v`. */
static double nice_above(double v)
{
	static const double nice[] = { 1, 2, 5 };
	double power = pow(10, floor(log10(v)));

	for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++)
		if (v <= nice[i] * power * (1 + 1e-9))
			return nice[i] * power;
	return 10 * power;
}

static void round_linear(struct chart_scale *s, bool from_zero, size_t ticks)
{
	double step, least = fmax(fabs(s->lo), fabs(s->hi)) * 1e-6;

	if (from_zero) {
		s->lo = fmin(s->lo, 0);
		s->hi = fmax(s->hi, 0);
	}
	if (s->hi - s->lo <= least) {
		double room = fabs(s->hi) > LOG_MIN ? fabs(s->hi) / 10 : 1;

		s->lo -= from_zero && s->lo >= 0 ? 0 : room;
		s->hi += room;
	}
	step = nice_above((s->hi - s->lo) / (double)ticks);
	s->lo = floor(s->lo / step + 1e-9) * step;
	s->hi = ceil(s->hi / step - 1e-9) * step;
	for (double i = 0; i < CHART_TICKS_MAX && s->lo + i * step <= s->hi + step / 2; i++)
		add_tick(s, s->lo + i * step, step);
}

/* Ticks at powers of ten, at each `every`th if there are many. */
static void ticks_at_decades(struct chart_scale *s, int first, int last, size_t ticks)
{
	int every = 1;

	while ((last - first) / every >= (int)ticks)
		every++;
	for (int e = first; e <= last; e += every)
		add_tick(s, pow(10, e), pow(10, e));
}

static void round_log(struct chart_scale *s, size_t ticks)
{
	static const double within[] = { 1, 2, 5 };
	int first, last;

	s->lo = fmax(s->lo / 1.1, LOG_MIN);
	s->hi *= 1.1;
	if (s->hi / s->lo < 10) {
		double middle = sqrt(s->lo * s->hi);

		s->lo = fmin(s->lo, middle / 3.3);
		s->hi = fmax(s->hi, middle * 3.3);
	}
	first = (int)ceil(log10(s->lo) - 1e-9);
	last = (int)floor(log10(s->hi) + 1e-9);
	if (last - first >= 2) {
		ticks_at_decades(s, first, last, ticks);
		return;
	}
	for (int e = first - 1; e <= last; e++)
		for (size_t i = 0; i < sizeof(within) / sizeof(within[0]); i++) {
			double v = within[i] * pow(10, e);

			if (v >= s->lo * (1 - 1e-9) && v <= s->hi * (1 + 1e-9))
				add_tick(s, v, v);
		}
}

void chart_scale_round(struct chart_scale *s, bool from_zero, size_t ticks)
{
	if (s->log)
		round_log(s, ticks);
	else
		round_linear(s, from_zero, ticks);
}

void chart_scale_round_percentile(struct chart_scale *s)
{
	int last, every;

	s->lo = 1;
	s->hi = fmax(s->hi, 10);
	last = (int)floor(log10(s->hi) + 1e-9);
	/* Their names get longer with each nine. */
	every = last > 5 ? (last + 3) / 4 : 1;
	for (int nines = 0; nines <= last; nines += every) {
		s->ticks[s->n_ticks] = pow(10, nines);
		snprintf(s->labels[s->n_ticks++], sizeof(s->labels[0]), "%.*f %%", nines > 2 ? nines - 2 : 0,
			 100 * (1 - pow(10, -nines)));
	}
}
