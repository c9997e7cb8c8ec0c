/* SPDX-License-Identifier: BSD-2-Clause */
/* Search for capacity: decides which number of clients to probe next, and evaluates the probes. Pure.
 *
 * The search looks for two boundaries in turn, using one history of probes: where the SLO is no longer met
 * (slo_capacity), and where something breaks (first_hard_failure). Each is an interval. Its lower end is the largest
 * number of clients that passed in all of its tries, its upper end the smallest number above that failed in all of
 * them. Near the boundary of the SLO chance decides a single probe, so both ends take CAPACITY_TRIES tries
 * (docs/capacity.md, "The search", says why that many). Numbers whose tries disagree lie inside the interval.
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
	CAPACITY_CONFIRM,	/* an end of the interval, or a doubtful failure, once more */
	CAPACITY_WIDEN,		/* beyond the numbers whose tries disagree, by as much as these are apart */
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
	bool unsteady;			/* not measured steadily, or disturbed: it confirms nothing */
};

/* Steady tries of an end of slo_capacity that must agree: Wald's sequential test of "passes in 95 % of tries" against
 * "in half of them", with errors of 5 % both ways, ends after this many without an exception. */
#define CAPACITY_TRIES 5
/* Maximum number of probes for one boundary; the search for it then ends. */
#define CAPACITY_PROBES_MAX 48
/* Maximum number of rows, one for each number of clients of a search or ramp (a ramp has OPT_LIST_MAX or fewer). */
#define CAPACITY_ROWS_MAX (CAPACITY_N * CAPACITY_PROBES_MAX)

struct capacity {
	bool has_slo;
	bool only_slo;			/* first_hard_failure is not looked for; set after capacity_init */
	uint32_t start, max;		/* the first number probed, and the largest allowed */
	struct capacity_row {
		uint32_t clients;
		uint32_t count[CAPACITY_N][3];	/* number of tries by outcome (enum slo_result) */
		uint32_t unsteady;		/* number of tries that confirm nothing */
	} rows[CAPACITY_ROWS_MAX];		/* by rising number of clients */
	uint32_t n;			/* rows in use */
	uint32_t probes[CAPACITY_N];	/* probes made for each boundary */
};

/* An end of an interval: a number of clients, 0 if there is none, with its tries. */
struct capacity_end {
	uint32_t clients;
	uint32_t agree;			/* tries that passed at the lower end, that failed at the upper one */
	uint32_t tries, unsteady;
};

/* Where a boundary lies, as far as the probes tell. */
struct capacity_result {
	struct capacity_end lower;	/* the largest number of which every try passed */
	struct capacity_end upper;	/* the smallest number above it of which no try passed */
	bool at_least;		/* the boundary is at or above `lower`; how far above is not known */
	bool inconclusive;	/* `upper` proves nothing: the generator was the limit, or samples were missing */
	bool scatters;		/* between the ends a number failed although it, or a larger one, also passed */
	bool confirmed;
	bool exhausted;		/* the search ended at CAPACITY_PROBES_MAX */
};

/* Begins with `start` clients and goes up to `max`; 1 <= start <= max. */
void capacity_init(struct capacity *c, bool has_slo, uint32_t start, uint32_t max);

/* Writes the next probe to `out`; the caller fills in slo, broke and unsteady after the probe. False when both
 * boundaries are known as well as they can be. */
bool capacity_next(const struct capacity *c, struct capacity_probe *out);

/* Adds a probe with its outcome, or a step of a ramp, to the history. */
void capacity_tell(struct capacity *c, const struct capacity_probe *probe);

struct capacity_result capacity_result(const struct capacity *c, enum capacity_boundary of);

/* Number of all tries of a row, whatever their outcome. */
uint32_t capacity_tries(const struct capacity_row *row);

#endif
