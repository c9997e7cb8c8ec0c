/* SPDX-License-Identifier: BSD-2-Clause */
/* The scale of a chart's axis. See chart_scale.h. */
#include "loadgen/report/chart/chart_scale.h"

#include <math.h>
#include <stdio.h>

/* Values outside these bounds are not drawn: they have no labels, and arithmetic with them may overflow. */
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

double chart_scale_place(const struct chart_scale *s, double v)
{
	double share;

	if (s->log)
		share = log(fmax(v, s->lo) / s->lo) / log(s->hi / s->lo);
	else
		share = (v - s->lo) / (s->hi - s->lo);
	return s->from + (s->to - s->from) * fmin(fmax(share, 0), 1);
}

/* Adds a tick with a label like "1.5 k", which has enough digits to differ from that of the next tick, `step` away. */
static void add_tick(struct chart_scale *s, double v, double step)
{
	static const struct { double unit; const char *prefix; } prefixes[] = {
		{ 1e18, " E" }, { 1e15, " P" }, { 1e12, " T" }, { 1e9, " G" }, { 1e6, " M" }, { 1e3, " k" },
		{ 1e-4, "" }, { 1e-6, " \xc2\xb5" }, { 1e-9, " n" }, { 0, " p" },
	};
	struct chart_tick *t = &s->ticks[s->n_ticks];
	bool is_zero = fabs(v) < step * 1e-6;
	double unit = 1;
	size_t i = 0;
	int decimals;

	if (s->n_ticks == CHART_TICKS_MAX)
		return;
	s->n_ticks++;
	t->at = v;
	while (!is_zero && prefixes[i].unit > fabs(v) * (1 + 1e-9))
		i++;
	if (!is_zero && *prefixes[i].prefix)
		unit = prefixes[i].unit > 0 ? prefixes[i].unit : 1e-12;
	decimals = (int)fmin(fmax(ceil(-log10(step / unit) - 1e-9), 0), 6);
	/* This tick may need fewer digits than the step: 0, 0.5, 1. */
	while (decimals && fabs(v / unit * pow(10, decimals - 1) - round(v / unit * pow(10, decimals - 1))) < 1e-6)
		decimals--;
	snprintf(t->label, sizeof(t->label), "%.*f%s", decimals, is_zero ? 0 : v / unit,
		 is_zero ? "" : prefixes[i].prefix);
}

/* The smallest number of the form 1, 2 or 5 times a power of ten that is at least `v`. */
static double nice_above(double v)
{
	double power = pow(10, floor(log10(v))), times = v / power - 1e-9;

	return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
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
	for (double i = 0; s->lo + i * step <= s->hi + step / 2; i++)
		add_tick(s, s->lo + i * step, step);
}

/* Adds as many ticks as there is room for: within decades, at each decade, or at every n-th. `ratio` in parts[] is the
 * smallest ratio between neighbours in `at`. */
static void ticks_of_decades(struct chart_scale *s, size_t ticks)
{
	static const struct { double ratio; double at[6]; } parts[] = {
		{ 1.33, { 1, 1.5, 2, 3, 5, 7 } }, { 1.4, { 1, 2, 3, 5, 7 } }, { 1.5, { 1, 2, 3, 5 } },
		{ 2, { 1, 2, 5 } }, { 3, { 1, 3 } }, { INFINITY, { 1 } },
	};
	int first = (int)ceil(log10(s->lo) - 1e-9), last = (int)floor(log10(s->hi) + 1e-9), every = 1;
	double ratio = pow(s->hi / s->lo, 1 / (double)ticks);
	size_t p = 0;

	while (parts[p].ratio < ratio)
		p++;
	while ((last - first) / every >= (int)ticks)
		every++;
	for (int e = every > 1 ? first : first - 1; e <= last; e += every)
		for (size_t i = 0; i < 6 && parts[p].at[i] > 0; i++) {
			double v = parts[p].at[i] * pow(10, e);

			if (v >= s->lo * (1 - 1e-9) && v <= s->hi * (1 + 1e-9))
				add_tick(s, v, v / 10);
		}
}

static void round_log(struct chart_scale *s, size_t ticks)
{
	s->lo = fmax(s->lo / 1.1, LOG_MIN);
	s->hi *= 1.1;
	if (s->hi / s->lo < 10) {
		double middle = sqrt(s->lo * s->hi);

		s->lo = fmin(s->lo, middle / 3.3);
		s->hi = fmax(s->hi, middle * 3.3);
	}
	ticks_of_decades(s, ticks);
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
	/* Labels grow with each nine, so with many nines only every n-th gets a tick. */
	every = last > 5 ? (last + 3) / 4 : 1;
	for (int nines = 0; nines <= last; nines += every) {
		struct chart_tick *t = &s->ticks[s->n_ticks++];

		t->at = pow(10, nines);
		snprintf(t->label, sizeof(t->label), "%.*f %%", nines > 2 ? nines - 2 : 0, 100 * (1 - pow(10, -nines)));
	}
}
