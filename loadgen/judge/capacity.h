/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding capacity: which number of clients to probe next, and what the probes say. Pure.
 *
 * Two boundaries are looked for, one after the other, out of one history of probes: the most clients that meet the SLO
 * (slo_capacity), and the least with which something breaks (first_hard_failure). For each the clients are doubled until
 * the boundary is passed, the gap is halved to 5 %, the result is repeated until it was seen twice in at most three
 * probes, and its neighbours are probed too. What several probes at one number say is decided by the majority.
 *
 * A search for a rate (--find-rate) is one for slo_capacity alone, with operations a second in the place of clients.
 */
#ifndef RAMPART_LOADGEN_CAPACITY_H
#define RAMPART_LOADGEN_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/judge/slo_judge.h"

enum capacity_boundary { CAPACITY_SLO, CAPACITY_BREAK, CAPACITY_N };
extern const char *const capacity_boundary_names[CAPACITY_N];	/* slo_capacity, first_hard_failure */

enum capacity_purpose {
	CAPACITY_DOUBLE,	/* twice as many as ever passed */
	CAPACITY_BISECT,	/* between what passed and what failed */
	CAPACITY_CONFIRM,	/* the result, or what failed next to it, once more */
	CAPACITY_BELOW,		/* 0.9 of it, which is to pass */
	CAPACITY_ABOVE,		/* 1.1 of it, which is to fail */
	CAPACITY_PURPOSE_N,
};
extern const char *const capacity_purpose_names[CAPACITY_PURPOSE_N];

/* One probe: a step, and what came of it. */
struct capacity_probe {
	uint32_t clients;
	enum capacity_boundary of;	/* CAPACITY_N: the knee, which is not looked for here */
	enum capacity_purpose purpose;
	uint32_t repetition;		/* of this number of clients, from 1 */
	enum slo_result slo;		/* inconclusive too where the generator, not the server, missed it */
	bool broke;			/* a hard failure */
};

/* Of a search for one boundary; it ends after so many. */
#define CAPACITY_PROBES_MAX 48
/* Numbers of clients, of a search or of a ramp (OPT_LIST_MAX and fewer). */
#define CAPACITY_ROWS_MAX (CAPACITY_N * CAPACITY_PROBES_MAX)

struct capacity {
	bool has_slo;
	bool only_slo;			/* nothing is looked for that breaks; set after capacity_init */
	uint32_t start, max;		/* the first number probed, and the most */
	struct capacity_row {
		uint32_t clients;
		uint32_t count[CAPACITY_N][3];	/* probes, by what came of them (enum slo_result) */
	} rows[CAPACITY_ROWS_MAX];
	uint32_t n;			/* rows */
	uint32_t probes[CAPACITY_N];	/* made for each boundary */
};

/* What is known of a boundary: numbers of clients, 0 for none. */
struct capacity_result {
	uint32_t clients;	/* slo_capacity: most that pass; first_hard_failure: least that fail; 0: none found */
	uint32_t passed;	/* most that passed, and below all that failed */
	uint32_t failed;	/* least that failed */
	bool at_least;		/* the boundary is not below `passed`; how far above is not known */
	bool inconclusive;	/* `failed` did not really: the generator was the limit, or samples were missing */
	bool confirmed;
	uint32_t seen, tries;	/* probes at `clients` that said so, of how many */
	bool exhausted;		/* it took too many probes */
	bool non_monotone;	/* 1.1 of the result passed, though less failed */
};

/* Begins with `start` clients and goes up to `max`; 1 <= start <= max. */
void capacity_init(struct capacity *c, bool has_slo, uint32_t start, uint32_t max);

/* The next probe into `out` (its last two fields are for the caller to fill). False when both boundaries are known as
 * well as they can be. */
bool capacity_next(const struct capacity *c, struct capacity_probe *out);

/* Tells what came of it, or of a step of a ramp. */
void capacity_tell(struct capacity *c, const struct capacity_probe *probe);

struct capacity_result capacity_result(const struct capacity *c, enum capacity_boundary of);

#endif
