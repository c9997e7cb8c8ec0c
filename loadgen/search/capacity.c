/* SPDX-License-Identifier: BSD-2-Clause */
/* See capacity.h. The next probe follows from the history of probes alone: no other state can become inconsistent. */
#include "loadgen/search/capacity.h"

#include <assert.h>
#include <string.h>

#define GAP 0.05		/* between the passed and the failed number, as a share of the passed one */
#define TENTH 10
#define TRIES_MAX 3
#define SEEN_ENOUGH 2

const char *const capacity_boundary_names[] = { "slo_capacity", "first_hard_failure" };
const char *const capacity_purpose_names[] = { "double", "bisect", "confirm", "neighbour_below", "neighbour_above" };
static_assert(sizeof(capacity_purpose_names) / sizeof(capacity_purpose_names[0]) == CAPACITY_PURPOSE_N, "a name each");

enum side { SIDE_UNKNOWN, SIDE_PASS, SIDE_FAIL };

void capacity_init(struct capacity *c, bool has_slo, uint32_t start, uint32_t max)
{
	memset(c, 0, sizeof(*c));
	c->has_slo = has_slo;
	c->max = max;
	c->start = start;
}

/* A probe that broke also misses the SLO, whatever was measured. */
static enum slo_result outcome(const struct capacity_probe *p, enum capacity_boundary of)
{
	if (p->broke)
		return SLO_FAIL;
	return of == CAPACITY_BREAK ? SLO_PASS : p->slo;
}

/* Number of probes at one number of clients by outcome (enum slo_result); all 0 without probes. */
static const uint32_t *tally_at(const struct capacity *c, enum capacity_boundary of, uint32_t clients)
{
	static const uint32_t none[3];

	for (uint32_t i = 0; i < c->n; i++)
		if (c->rows[i].clients == clients)
			return c->rows[i].count[of];
	return none;
}

static uint32_t tries(const uint32_t *t)
{
	return t[SLO_PASS] + t[SLO_FAIL] + t[SLO_INCONCLUSIVE];
}

/* Decides by majority; a tie is not a pass, nor is an inconclusive probe. */
static enum side side_of(const uint32_t *t)
{
	if (tries(t) == 0)
		return SIDE_UNKNOWN;
	return 2 * t[SLO_PASS] > tries(t) ? SIDE_PASS : SIDE_FAIL;
}

/* Finds the smallest number that failed, and the largest below it that passed. */
static void bracket(const struct capacity *c, enum capacity_boundary of, uint32_t *passed, uint32_t *failed)
{
	*passed = 0;
	*failed = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t n = c->rows[i].clients;

		if (side_of(c->rows[i].count[of]) == SIDE_FAIL && (*failed == 0 || n < *failed))
			*failed = n;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t n = c->rows[i].clients;

		if (side_of(c->rows[i].count[of]) == SIDE_PASS && n > *passed && (*failed == 0 || n < *failed))
			*passed = n;
	}
}

/* True if the probes disagree and another one is still allowed to decide. */
static bool is_contested(const uint32_t *t)
{
	return t[SLO_PASS] && tries(t) > t[SLO_PASS] && tries(t) < TRIES_MAX;
}

static bool is_close(uint32_t passed, uint32_t failed)
{
	return failed - passed <= 1 || (double)(failed - passed) <= GAP * (double)passed;
}

static uint32_t between(uint32_t passed, uint32_t failed)
{
	return passed + (failed - passed) / 2;
}

/* The number of clients that is the result, and that must be confirmed. */
static uint32_t candidate(enum capacity_boundary of, uint32_t passed, uint32_t failed)
{
	return of == CAPACITY_BREAK && failed ? failed : passed;
}

/* Number of probes at the result that agree with it. */
static uint32_t seen_at(const struct capacity *c, enum capacity_boundary of, uint32_t passed, uint32_t failed)
{
	return tally_at(c, of, candidate(of, passed, failed))[of == CAPACITY_BREAK && failed ? SLO_FAIL : SLO_PASS];
}

static bool ask_probe(struct capacity_probe *out, enum capacity_purpose purpose, uint32_t clients)
{
	out->purpose = purpose;
	out->clients = clients;
	return true;
}

/* True if a number larger than the smallest failed one passed: the failure may have been bad luck and is tried
 * again. */
static bool is_doubtful(const struct capacity *c, enum capacity_boundary of, uint32_t failed)
{
	if (tries(tally_at(c, of, failed)) >= TRIES_MAX)
		return false;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->rows[i].clients > failed && side_of(c->rows[i].count[of]) == SIDE_PASS)
			return true;
	return false;
}

static uint32_t below_of(uint32_t clients)
{
	return clients - (clients + TENTH - 1) / TENTH;
}

static uint32_t above_of(uint32_t clients)
{
	return clients + (clients + TENTH - 1) / TENTH;
}

/* Probes the neighbours of a confirmed result; one above a break, or above `max`, would tell nothing. */
static bool next_neighbour(const struct capacity *c, enum capacity_boundary of, uint32_t result,
			   struct capacity_probe *out)
{
	uint32_t below = below_of(result), above = above_of(result);
	const uint32_t *t = tally_at(c, of, below);

	if (below >= 1 && (tries(t) == 0 || is_contested(t)))
		return ask_probe(out, CAPACITY_BELOW, below);
	if (of == CAPACITY_BREAK || above > c->max)
		return false;
	t = tally_at(c, of, above);
	return (tries(t) == 0 || is_contested(t)) && ask_probe(out, CAPACITY_ABOVE, above);
}

/* Sets the next probe for a boundary. False when the boundary is known. */
static bool next_for(const struct capacity *c, enum capacity_boundary of, struct capacity_probe *out)
{
	uint32_t passed, failed, result;

	out->of = of;
	if (c->probes[of] >= CAPACITY_PROBES_MAX)
		return false;
	if (c->n == 0)
		return ask_probe(out, CAPACITY_DOUBLE, c->start);
	bracket(c, of, &passed, &failed);
	if (failed && (is_doubtful(c, of, failed) || is_contested(tally_at(c, of, failed))))
		return ask_probe(out, CAPACITY_CONFIRM, failed);
	if (failed == 0 && passed < c->max)
		return ask_probe(out, CAPACITY_DOUBLE, passed > c->max / 2 ? c->max : 2 * passed);
	if (failed > 1 && !is_close(passed, failed))
		return ask_probe(out, CAPACITY_BISECT, between(passed, failed));
	/* If nothing breaks up to `max`, there is nothing to confirm. */
	result = candidate(of, passed, failed);
	if (result == 0 || (of == CAPACITY_BREAK && failed == 0))
		return false;
	if (tries(tally_at(c, of, result)) < TRIES_MAX && seen_at(c, of, passed, failed) < SEEN_ENOUGH)
		return ask_probe(out, CAPACITY_CONFIRM, result);
	/* A latency can miss its limit by chance, so that failure is confirmed too; a hard failure is not by chance. */
	if (of == CAPACITY_SLO && failed && tries(tally_at(c, of, failed)) < SEEN_ENOUGH)
		return ask_probe(out, CAPACITY_CONFIRM, failed);
	return next_neighbour(c, of, result, out);
}

bool capacity_next(const struct capacity *c, struct capacity_probe *out)
{
	memset(out, 0, sizeof(*out));
	if (!(c->has_slo && next_for(c, CAPACITY_SLO, out)) && (c->only_slo || !next_for(c, CAPACITY_BREAK, out)))
		return false;
	out->repetition = 1 + tries(tally_at(c, CAPACITY_BREAK, out->clients));
	return true;
}

void capacity_tell(struct capacity *c, const struct capacity_probe *probe)
{
	uint32_t i = 0;

	while (i < c->n && c->rows[i].clients != probe->clients)
		i++;
	if (i == CAPACITY_ROWS_MAX)
		return;
	if (i == c->n)
		c->rows[c->n++].clients = probe->clients;
	for (int of = 0; of < CAPACITY_N; of++)
		c->rows[i].count[of][outcome(probe, (enum capacity_boundary)of)]++;
	c->probes[probe->of]++;
}

struct capacity_result capacity_result(const struct capacity *c, enum capacity_boundary of)
{
	struct capacity_result r = { 0 };
	struct capacity_probe next;
	const uint32_t *t;

	if (c->n == 0 || (of == CAPACITY_SLO && !c->has_slo))
		return r;
	bracket(c, of, &r.passed, &r.failed);
	r.clients = of == CAPACITY_BREAK ? r.failed : r.passed;
	t = tally_at(c, of, r.failed);
	r.inconclusive = r.failed && t[SLO_INCONCLUSIVE] >= t[SLO_FAIL];
	r.at_least = r.passed && (r.failed == 0 || r.inconclusive);
	r.exhausted = c->probes[of] >= CAPACITY_PROBES_MAX;
	if (r.clients == 0)
		return r;
	r.tries = tries(tally_at(c, of, r.clients));
	r.seen = seen_at(c, of, r.passed, r.failed);
	r.non_monotone = of == CAPACITY_SLO && r.failed &&
			 side_of(tally_at(c, of, above_of(r.clients))) == SIDE_PASS;
	r.confirmed = r.seen >= SEEN_ENOUGH && !r.exhausted && !r.non_monotone && !next_for(c, of, &next) &&
		      side_of(tally_at(c, of, below_of(r.clients))) != SIDE_FAIL;
	return r;
}
