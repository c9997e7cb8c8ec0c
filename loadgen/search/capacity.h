/* SPDX-License-Identifier: BSD-2-Clause */
/* Search for capacity: decides which number of clients to probe next, and evaluates the probes. Pure.
 *
 * The search looks for two boundaries in turn, using one history of probes: the largest number of clients that meets
 * the SLO (slo_capacity), and the smallest with which something breaks (first_hard_failure). For each it doubles the
 * clients until the boundary is passed, halves the gap until it is at most 5 %, repeats the result until two of at most
 * three probes confirm it, and probes its neighbours. Several probes at one number are decided by majority.
 *
 * A search for a rate (--find-rate) looks for slo_capacity only, with operations per second in place of clients.
 */
#ifndef RAMPART_LOADGEN_CAPACITY_H
#define RAMPART_LOADGEN_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/verdict/slo_judge.h"

enum capacity_boundary { CAPACITY_SLO, CAPACITY_BREAK, CAPACITY_N };
extern const char *const capacity_boundary_names[CAPACITY_N];	/* slo_capacity, first_hard_failure */

enum capacity_purpose {
	CAPACITY_DOUBLE,	/* twice the largest number that passed */
	CAPACITY_BISECT,	/* halfway between the numbers that passed and failed */
	CAPACITY_CONFIRM,	/* the result, or the failed number next to it, once more */
	CAPACITY_BELOW,		/* 0.9 x the result, which should pass */
	CAPACITY_ABOVE,		/* 1.1 x the result, which should fail */
	CAPACITY_PURPOSE_N,
};
extern const char *const capacity_purpose_names[CAPACITY_PURPOSE_N];

/* One probe: a step and its outcome. */
struct capacity_probe {
	uint32_t clients;
	enum capacity_boundary of;	/* CAPACITY_N: a probe for the knee, which agenda.c looks for */
	enum capacity_purpose purpose;
	uint32_t repetition;		/* of this number of clients, from 1 */
	enum slo_result slo;		/* also inconclusive if the generator, not the server, missed the SLO */
	bool broke;			/* the step had a hard failure */
};

/* Maximum number of probes for one boundary; the search for it then ends. */
#define CAPACITY_PROBES_MAX 48
/* Maximum of distinct numbers of clients in a search, or in a ramp (OPT_LIST_MAX or fewer). */
#define CAPACITY_ROWS_MAX (CAPACITY_N * CAPACITY_PROBES_MAX)

struct capacity {
	bool has_slo;
	bool only_slo;			/* first_hard_failure is not looked for; set after capacity_init */
	uint32_t start, max;		/* the first number probed, and the largest allowed */
	struct capacity_row {
		uint32_t clients;
		uint32_t count[CAPACITY_N][3];	/* number of probes by outcome (enum slo_result) */
	} rows[CAPACITY_ROWS_MAX];
	uint32_t n;			/* rows in use */
	uint32_t probes[CAPACITY_N];	/* probes made for each boundary */
};

/* Knowledge about a boundary, as numbers of clients; 0: none. */
struct capacity_result {
	uint32_t clients;	/* slo_capacity: largest to pass; first_hard_failure: smallest to fail; 0: none */
	uint32_t passed;	/* largest number that passed, below all that failed */
	uint32_t failed;	/* smallest number that failed */
	bool at_least;		/* the boundary is at or above `passed`; how far above is not known */
	bool inconclusive;	/* `failed` proves nothing: the generator was the limit, or samples were missing */
	bool confirmed;
	uint32_t seen, tries;	/* probes at `clients` that agree with the result, and all probes there */
	bool exhausted;		/* the search ended at CAPACITY_PROBES_MAX */
	bool non_monotone;	/* 1.1 x the result passed, although a smaller number failed */
};

/* Begins with `start` clients and goes up to `max`; 1 <= start <= max. */
void capacity_init(struct capacity *c, bool has_slo, uint32_t start, uint32_t max);

/* Writes the next probe to `out`; the caller fills in its last two fields afterwards. False when both boundaries are
 * known as well as they can be. */
bool capacity_next(const struct capacity *c, struct capacity_probe *out);

/* Adds a probe with its outcome, or a step of a ramp, to the history. */
void capacity_tell(struct capacity *c, const struct capacity_probe *probe);

struct capacity_result capacity_result(const struct capacity *c, enum capacity_boundary of);

#endif
