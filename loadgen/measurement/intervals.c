/* SPDX-License-Identifier: BSD-2-Clause */
/* See intervals.h. */
#include "loadgen/measurement/intervals.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"

#define LENGTH_LEAST_NS (50 * NS_PER_MS)
#define CELLS_PER_OCTAVE 32
#define P99_SAMPLES 299			/* the minimum that hist_supports requires for a p99 */
#define P99_POINTS_LEAST 5
/* Limit of an interval's count of round trips: sums over all hosts and intervals then fit in 64 bits. */
#define COUNT_MOST (UINT64_C(1) << 44)
#define REAL_MOST 1e30		/* largest time or rate accepted from a host */
#define CELL_TEXT_BYTES sizeof("-895 17592186044416 ")

uint64_t intervals_length_ns(uint64_t measured_ns)
{
	if (!measured_ns)
		return LENGTH_LEAST_NS;
	return MAX(measured_ns / 20, MIN(LENGTH_LEAST_NS, measured_ns / 16));
}

/* The lowest value in a cell. A cell spans 32 buckets of a histogram (hist.h), whose first 2048 are 1 ns wide. */
static uint64_t cell_low(size_t cell)
{
	size_t octave = cell < 2 * CELLS_PER_OCTAVE ? 0 : cell / CELLS_PER_OCTAVE - 1;

	return (uint64_t)(cell - CELLS_PER_OCTAVE * octave) << (octave + 5);
}

static uint64_t count_of(const uint64_t *cells)
{
	uint64_t count = 0;

	for (size_t i = 0; i < INTERVAL_CELLS; i++)
		count += cells[i];
	return count;
}

static double p99_of(const uint64_t *cells)
{
	uint64_t count = count_of(cells), beyond = count / 100;

	if (count < P99_SAMPLES)
		return NAN;
	for (size_t i = INTERVAL_CELLS; i-- > 0;) {
		if (cells[i] > beyond)
			return (double)(cell_low(i + 1) - 1);
		beyond -= cells[i];
	}
	return NAN;
}

double interval_p99_ns(const struct interval *v)
{
	return p99_of(v->cells);
}

static void add_cells(uint64_t *to, const uint64_t *from)
{
	for (size_t i = 0; i < INTERVAL_CELLS; i++)
		to[i] += from[i];
}

/* Merges neighbouring intervals in pairs; an odd last interval is dropped. */
static void merge_neighbours(struct intervals *s)
{
	double begin_s = 0;

	s->n /= 2;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct interval *a = &s->v[2 * i], *b = a + 1;
		struct interval merged = *a;

		merged.messages_per_s = (a->messages_per_s * (a->t_s - begin_s) +
					 b->messages_per_s * (b->t_s - a->t_s)) / (b->t_s - begin_s);
		merged.t_s = begin_s = b->t_s;
		add_cells(merged.cells, b->cells);
		s->v[i] = merged;
	}
}

bool intervals_add(struct intervals *s, double t_s, double messages_per_s, const struct hist *response)
{
	struct interval *v = &s->v[s->n++];

	v->t_s = t_s;
	v->messages_per_s = messages_per_s;
	for (size_t i = 0; i < INTERVAL_CELLS; i++)
		v->cells[i] = hist_count_between(response, cell_low(i), cell_low(i + 1));
	if (s->n < INTERVALS_MAX)
		return false;
	merge_neighbours(s);
	return true;
}

static bool are_shorter(const struct intervals *a, const struct intervals *b)
{
	return a->n && b->n && 1.5 * a->v[a->n - 1].t_s / a->n < b->v[b->n - 1].t_s / b->n;
}

void intervals_merge(struct intervals *into, struct intervals *from)
{
	while (are_shorter(into, from))
		merge_neighbours(into);
	while (are_shorter(from, into))
		merge_neighbours(from);
	into->n = MIN(into->n, from->n);
	for (uint32_t i = 0; i < into->n; i++) {
		into->v[i].t_s = fmax(into->v[i].t_s, from->v[i].t_s);
		into->v[i].messages_per_s += from->v[i].messages_per_s;
		add_cells(into->v[i].cells, from->v[i].cells);
	}
}

/* Computes the p99 of each group of `group` neighbouring intervals that has enough samples. Returns their number. */
static size_t p99_of_groups(const struct intervals *s, uint32_t group, double *t, double *y)
{
	size_t n = 0;

	for (uint32_t i = 0; i + group <= s->n; i += group) {
		uint64_t cells[INTERVAL_CELLS] = { 0 };

		for (uint32_t k = i; k < i + group; k++)
			add_cells(cells, s->v[k].cells);
		t[n] = s->v[i + group - 1].t_s;
		y[n] = p99_of(cells);
		n += isfinite(y[n]);
	}
	return n;
}

/* Computes the p99 over time, with the smallest groups of which enough have a p99. Returns their number; 0: too few. */
static size_t p99_points(const struct intervals *s, double *t, double *y)
{
	for (uint32_t group = 1; s->n / group >= P99_POINTS_LEAST; group *= 2) {
		size_t n = p99_of_groups(s, group, t, y);

		if (n >= MIN(INTERVALS_LEAST, s->n / group))
			return n;
	}
	return 0;
}

static size_t throughput_points(const struct intervals *s, double *t, double *y)
{
	for (uint32_t i = 0; i < s->n; i++) {
		t[i] = s->v[i].t_s;
		y[i] = s->v[i].messages_per_s;
	}
	return s->n;
}

struct estimate intervals_drift(const struct intervals *s, bool p99)
{
	double t[INTERVALS_MAX], y[INTERVALS_MAX], scale;
	struct estimate slope = { NAN, NAN, NAN };
	size_t n;

	if (s->n < INTERVALS_LEAST)
		return slope;
	n = p99 ? p99_points(s, t, y) : throughput_points(s, t, y);
	if (n == 0)
		return slope;
	slope = stats_series_line(t, y, n).slope;
	scale = (s->v[s->n - 1].t_s - s->v[0].t_s) / stats_mean(y, n).value;
	return isfinite(scale) ? (struct estimate){ slope.value * scale, slope.low * scale, slope.high * scale } :
				 (struct estimate){ NAN, NAN, NAN };
}

/* True if the drift exceeds the limit, and its whole confidence interval exceeds half of the limit. */
static bool exceeds(struct estimate drift, double limit)
{
	return fabs(drift.value) > limit && (drift.low > limit / 2 || drift.high < -limit / 2);
}

enum steadiness intervals_judge(const struct intervals *s)
{
	struct estimate throughput = intervals_drift(s, false);

	if (exceeds(throughput, INTERVALS_STEADY_THROUGHPUT) || exceeds(intervals_drift(s, true), INTERVALS_STEADY_P99))
		return STEADINESS_NOT_STEADY;
	return (throughput.high - throughput.low) / 2 <= INTERVALS_UNCERTAIN ? STEADINESS_STEADY : STEADINESS_UNKNOWN;
}

static json_t *cells_pack(const uint64_t *cells)
{
	char text[INTERVAL_CELLS * CELL_TEXT_BYTES] = "";
	size_t used = 0, empty = 0;

	for (size_t i = 0; i < INTERVAL_CELLS; i++) {
		if (!cells[i]) {
			empty++;
			continue;
		}
		if (empty)
			used += (size_t)snprintf(text + used, CELL_TEXT_BYTES, "-%zu ", empty);
		used += (size_t)snprintf(text + used, CELL_TEXT_BYTES, "%ju ", (uintmax_t)MIN(cells[i], COUNT_MOST));
		empty = 0;
	}
	return json_string(text);
}

json_t *intervals_pack(const struct intervals *s)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < s->n; i++)
		json_array_append_new(a, json_pack("[f, f, o]", s->v[i].t_s, s->v[i].messages_per_s,
						   cells_pack(s->v[i].cells)));
	return a;
}

/* Reads a number of digits only, up to `most`, and advances *text. */
static bool get_number(const char **text, uint64_t most, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*out = strtoull(*text, &end, 10);	/* ULLONG_MAX if it is too large */
	*text = end;
	return *out <= most;
}

static bool cells_unpack(const char *text, uint64_t *cells)
{
	uint64_t cell = 0, left = COUNT_MOST, n;

	memset(cells, 0, INTERVAL_CELLS * sizeof(*cells));
	for (; text && *text; text++) {
		bool are_empty = *text == '-';

		text += are_empty;
		if (cell == INTERVAL_CELLS || !get_number(&text, are_empty ? INTERVAL_CELLS - cell : left, &n) ||
		    *text != ' ')
			return false;
		if (are_empty) {
			cell += n;
		} else {
			cells[cell++] = n;
			left -= n;
		}
	}
	return text != NULL;
}

static bool is_amount(const json_t *v)
{
	return json_is_number(v) && json_number_value(v) >= 0 && json_number_value(v) <= REAL_MOST;
}

const char *intervals_unpack(const json_t *packed, struct intervals *s)
{
	double before_s = 0;

	if (!json_is_array(packed) || json_array_size(packed) > INTERVALS_MAX)
		return "is not an array, or has more intervals than a step can have";
	for (s->n = 0; s->n < json_array_size(packed); s->n++) {
		const json_t *one = json_array_get(packed, s->n), *t = json_array_get(one, 0),
			*rate = json_array_get(one, 1);
		struct interval *v = &s->v[s->n];

		if (json_array_size(one) != 3 || !is_amount(t) || !is_amount(rate) || json_number_value(t) <= before_s)
			return "has an interval that is not [t_s, messages_per_s, cells], or whose t_s does not rise";
		v->t_s = before_s = json_number_value(t);
		v->messages_per_s = json_number_value(rate);
		if (!cells_unpack(json_string_value(json_array_get(one, 2)), v->cells))
			return "has an interval whose cells are not counts, each followed by a space";
	}
	return NULL;
}
