/* SPDX-License-Identifier: BSD-2-Clause */
/* See capacity.h. The next probe follows from the history of probes alone: no other state can become inconsistent. */
#include "loadgen/search/capacity.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/param.h>

#define GAP 0.05		/* bisecting ends when passed and failed differ by this share of the passed number */
#define BREAK_TRIES 2		/* a hard failure is not a matter of chance, so two tries confirm it */
#define DOUBTFUL_TRIES 3	/* tries of a number that failed although a larger one passed */
#define INCONCLUSIVE_TRIES 2	/* more tries do not make a saturated generator faster */

const char *const capacity_boundary_names[] = { "slo_capacity", "first_hard_failure" };
const char *const capacity_purpose_names[] = { "double", "bisect", "confirm", "widen" };
static_assert(sizeof(capacity_purpose_names) / sizeof(capacity_purpose_names[0]) == CAPACITY_PURPOSE_N, "a name each");

void capacity_init(struct capacity *c, bool has_slo, uint32_t start, uint32_t max)
{
	memset(c, 0, sizeof(*c));
	c->has_slo = has_slo;
	c->max = max;
	c->start = start;
}

uint32_t capacity_tries(const struct capacity_row *row)
{
	const uint32_t *t = row->count[CAPACITY_SLO];

	return t[SLO_PASS] + t[SLO_FAIL] + t[SLO_INCONCLUSIVE];
}

static uint32_t passed(const struct capacity_row *row, enum capacity_boundary of)
{
	return row->count[of][SLO_PASS];
}

/* An inconclusive try counts as failed here: the search must not go beyond it as if it had passed. */
static bool has_failed(const struct capacity_row *row, enum capacity_boundary of)
{
	return capacity_tries(row) > passed(row, of);
}

/* Decides by majority; a tie is not a pass. */
static bool passes_mostly(const struct capacity_row *row, enum capacity_boundary of)
{
	return 2 * passed(row, of) > capacity_tries(row);
}

/* True if a number whose tries agree has enough of them to be an end of the interval, or has so many unsteady ones that
 * more tries would not help. */
static bool is_decided(const struct capacity_row *row, enum capacity_boundary of)
{
	const uint32_t *t = row->count[of];
	uint32_t steady = capacity_tries(row) - row->unsteady;

	if (of == CAPACITY_BREAK)
		return t[SLO_PASS] || capacity_tries(row) >= BREAK_TRIES;
	return steady >= CAPACITY_TRIES || row->unsteady >= CAPACITY_TRIES ||
	       (t[SLO_INCONCLUSIVE] >= INCONCLUSIVE_TRIES && t[SLO_INCONCLUSIVE] >= t[SLO_FAIL]);
}

/* Rows around the boundary; NULL: there is no such row. If `passed` is not below `failed`, tries disagree from `failed`
 * up to `passed`. */
struct around {
	const struct capacity_row *low;		/* the largest below `failed` of which all tries passed */
	const struct capacity_row *failed;	/* the smallest that failed, not counting numbers that mostly passed
						 * and lie below one that always passed */
	const struct capacity_row *passed;	/* the largest that ever passed */
	const struct capacity_row *high;	/* the smallest above `passed` */
};

static struct around look_around(const struct capacity *c, enum capacity_boundary of)
{
	struct around a = { .low = NULL };
	bool outvoted = false;

	for (const struct capacity_row *row = c->rows; row < c->rows + c->n; row++) {
		if (passed(row, of)) {
			a.passed = row;
			a.high = NULL;
		} else if (!a.high) {
			a.high = row;
		}
		if (has_failed(row, of)) {
			outvoted = passes_mostly(row, of) && (outvoted || !a.failed);
			a.failed = a.failed ? a.failed : row;
			continue;
		}
		if (outvoted)
			a.failed = NULL;
		if (!a.failed)
			a.low = row;
	}
	return a;
}

static bool ask_probe(struct capacity_probe *out, enum capacity_purpose purpose, uint64_t clients)
{
	out->purpose = purpose;
	out->clients = (uint32_t)clients;
	return true;
}

/* True if a larger number mostly passes: this failure may be bad luck and is tried again, until it has DOUBTFUL_TRIES
 * tries. */
static bool is_doubtful(const struct capacity *c, enum capacity_boundary of, const struct capacity_row *failed)
{
	if (passes_mostly(failed, of) || capacity_tries(failed) >= DOUBTFUL_TRIES)
		return false;
	for (const struct capacity_row *row = failed + 1; row < c->rows + c->n; row++)
		if (passes_mostly(row, of))
			return true;
	return false;
}

/* Width of the range of numbers whose tries disagree; 0 if none do. */
static uint32_t scatter(const struct around *a)
{
	if (!a->passed || a->passed < a->failed)
		return 0;
	return MAX(a->passed->clients - a->failed->clients, MAX((uint32_t)ceil(GAP * a->failed->clients), 1));
}

/* Looks for the lower end between `low` and `failed`, then repeats it until it is decided. The gap between them need
 * not become smaller than the range in which tries disagree. False when the lower end is decided. */
static bool next_lower(const struct around *a, enum capacity_boundary of, struct capacity_probe *out)
{
	uint32_t low = a->low ? a->low->clients : 0, failed = a->failed->clients, gap = failed - low;
	uint64_t width = scatter(a);

	if (low && width && is_decided(a->low, of))
		return false;
	if (gap > 1 && (!low || (gap > 2 * width && gap > GAP * low)))
		return width && gap > 2 * width ? ask_probe(out, CAPACITY_WIDEN, failed - width) :
						  ask_probe(out, CAPACITY_BISECT, low + gap / 2);
	return low && !is_decided(a->low, of) && ask_probe(out, CAPACITY_CONFIRM, low);
}

/* Looks for the upper end in the same way, above every number that ever passed. */
static bool next_upper(const struct capacity *c, const struct around *a, enum capacity_boundary of,
		       struct capacity_probe *out)
{
	uint64_t width = scatter(a), highest = a->passed ? a->passed->clients : 0;

	if (width && (!a->high || a->high->clients - highest > MAX(2 * width, GAP * highest)))
		return highest < c->max && ask_probe(out, CAPACITY_WIDEN, MIN(c->max, highest + width));
	return !is_decided(a->high, of) && ask_probe(out, CAPACITY_CONFIRM, a->high->clients);
}

/* Decides both ends in turn, so that the tries of each are spread over a longer time: a machine that is slow for a few
 * seconds must not decide all of them. */
static bool next_end(const struct capacity *c, const struct around *a, enum capacity_boundary of,
		     struct capacity_probe *out)
{
	struct capacity_probe upper = *out;
	bool has_lower = next_lower(a, of, out), has_upper = next_upper(c, a, of, &upper);

	if (has_lower && !(has_upper && out->purpose == CAPACITY_CONFIRM && upper.purpose == CAPACITY_CONFIRM &&
			   capacity_tries(a->high) < capacity_tries(a->low)))
		return true;
	*out = upper;
	return has_upper;
}

/* Sets the next probe for a boundary. False when the boundary is known. */
static bool next_for(const struct capacity *c, enum capacity_boundary of, struct capacity_probe *out)
{
	struct around a;

	out->of = of;
	if (c->probes[of] >= CAPACITY_PROBES_MAX)
		return false;
	if (c->n == 0)
		return ask_probe(out, CAPACITY_DOUBLE, c->start);
	a = look_around(c, of);
	if (!a.failed && a.passed->clients < c->max)
		return ask_probe(out, CAPACITY_DOUBLE, MIN(c->max, 2 * (uint64_t)a.passed->clients));
	if (!a.failed)
		return !is_decided(a.low, of) && ask_probe(out, CAPACITY_CONFIRM, a.low->clients);
	if (is_doubtful(c, of, a.failed))
		return ask_probe(out, CAPACITY_CONFIRM, a.failed->clients);
	return next_end(c, &a, of, out);
}

static const struct capacity_row *row_of(const struct capacity *c, uint32_t clients)
{
	const struct capacity_row *row = c->rows;

	while (row < c->rows + c->n && row->clients < clients)
		row++;
	return row;
}

bool capacity_next(const struct capacity *c, struct capacity_probe *out)
{
	const struct capacity_row *row;

	memset(out, 0, sizeof(*out));
	if (!(c->has_slo && next_for(c, CAPACITY_SLO, out)) && (c->only_slo || !next_for(c, CAPACITY_BREAK, out)))
		return false;
	row = row_of(c, out->clients);
	out->repetition = 1;
	if (row < c->rows + c->n && row->clients == out->clients)
		out->repetition += capacity_tries(row);
	return true;
}

/* A probe that broke also misses the SLO, whatever was measured. */
static enum slo_result outcome(const struct capacity_probe *p, enum capacity_boundary of)
{
	if (p->broke)
		return SLO_FAIL;
	return of == CAPACITY_BREAK ? SLO_PASS : p->slo;
}

void capacity_tell(struct capacity *c, const struct capacity_probe *probe)
{
	size_t i = (size_t)(row_of(c, probe->clients) - c->rows);

	if (i == c->n || c->rows[i].clients != probe->clients) {
		if (c->n == CAPACITY_ROWS_MAX)
			return;
		memmove(c->rows + i + 1, c->rows + i, (c->n++ - i) * sizeof(c->rows[0]));
		c->rows[i] = (struct capacity_row){ .clients = probe->clients };
	}
	for (int of = 0; of < CAPACITY_N; of++)
		c->rows[i].count[of][outcome(probe, (enum capacity_boundary)of)]++;
	c->rows[i].unsteady += probe->unsteady;
	c->probes[probe->of]++;
}

static struct capacity_end end_at(const struct capacity_row *row, enum capacity_boundary of, bool is_lower)
{
	if (!row)
		return (struct capacity_end){ 0 };
	return (struct capacity_end){
		.clients = row->clients, .tries = capacity_tries(row), .unsteady = row->unsteady,
		.agree = is_lower ? passed(row, of) : capacity_tries(row) - passed(row, of),
	};
}

/* The largest number of which all tries passed: a decided one, or else the one below the first failure. Breaking is not
 * a matter of chance, so for CAPACITY_BREAK nothing above the first failure counts. */
static const struct capacity_row *lower_end(const struct capacity *c, enum capacity_boundary of)
{
	const struct capacity_row *low = look_around(c, of).low;

	for (const struct capacity_row *row = c->rows; of == CAPACITY_SLO && row < c->rows + c->n; row++)
		if (!has_failed(row, of) && is_decided(row, of))
			low = row;
	return low;
}

/* The smallest number above `low` that never passed, a decided one if there is any; NULL: there is none. */
static const struct capacity_row *upper_end(const struct capacity *c, enum capacity_boundary of,
					    const struct capacity_row *low)
{
	const struct capacity_row *any = NULL;

	for (const struct capacity_row *row = low ? low + 1 : c->rows; row < c->rows + c->n; row++) {
		if (passed(row, of))
			continue;
		if (is_decided(row, of))
			return row;
		any = any ? any : row;
	}
	return any;
}

static bool has_scatter(const struct capacity *c, enum capacity_boundary of, const struct capacity_row *low,
			const struct capacity_row *high)
{
	bool failed = false;

	for (const struct capacity_row *row = low ? low + 1 : c->rows; row < (high ? high : c->rows + c->n); row++) {
		failed |= has_failed(row, of);
		if (failed && passed(row, of))
			return true;
	}
	return false;
}

static bool is_steady(const struct capacity_end *e)
{
	return e->tries - e->unsteady >= CAPACITY_TRIES;
}

struct capacity_result capacity_result(const struct capacity *c, enum capacity_boundary of)
{
	struct capacity_result r = { .exhausted = c->probes[of] >= CAPACITY_PROBES_MAX };
	const struct capacity_row *low, *high;
	struct capacity_probe next;
	bool is_known;

	if (c->n == 0 || (of == CAPACITY_SLO && !c->has_slo))
		return r;
	low = lower_end(c, of);
	high = upper_end(c, of, low);
	r.lower = end_at(low, of, true);
	r.upper = end_at(high, of, false);
	r.inconclusive = high && high->count[of][SLO_INCONCLUSIVE] >= MAX(high->count[of][SLO_FAIL], 1);
	r.at_least = low && (!high || r.inconclusive);
	r.scatters = has_scatter(c, of, low, high);
	is_known = !r.exhausted && !r.inconclusive && !next_for(c, of, &next);
	if (of == CAPACITY_BREAK)
		r.confirmed = is_known && high && r.upper.tries >= BREAK_TRIES;
	else
		r.confirmed = is_known && low && is_steady(&r.lower) &&
			      (high ? is_steady(&r.upper) : !r.scatters);
	return r;
}
