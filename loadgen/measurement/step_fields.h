/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of a step's figures that are added over the load hosts: step_pack.c writes them by name, step_merge.c reads and
 * adds them. */
#ifndef RAMPART_LOADGEN_STEP_FIELDS_H
#define RAMPART_LOADGEN_STEP_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/measurement/step.h"

enum step_type { STEP_U32, STEP_U64, STEP_REAL, STEP_FLAG, STEP_FLOOR };
enum step_rule { STEP_ADD, STEP_MAX };	/* the maximum of flags is their OR */

struct step_field {
	const char *name;
	size_t offset;
	enum step_type type;
	enum step_rule rule;
	uint32_t n;		/* elements of an array; else 1 */
};

/* Fields of struct step, and of struct step_moment: the growth of counters over the measured time, and gauges at its
 * end. The last entry of each table has no name. */
extern const struct step_field step_fields[], step_moment_fields[];
/* Fields of struct step_target, the part of a step that belongs to one of several servers. */
extern const struct step_field step_target_fields[];
/* Fields of struct step_fairness, which step_add_fairness adds. */
extern const struct step_field step_fairness_fields[];

/* Element `i` of a field in the struct at `base`. The `_whole` variant is exact for whole numbers of any size. */
double step_field_get(const struct step_field *f, const void *base, uint32_t i);
uint64_t step_field_get_whole(const struct step_field *f, const void *base, uint32_t i);
void step_field_set(const struct step_field *f, void *base, uint32_t i, double real, uint64_t whole);
/* The greatest value that a field can have. */
uint64_t step_field_most(const struct step_field *f);

/* Largest whole number accepted from a host, so that the sum over all hosts of a run cannot overflow. */
#define STEP_WHOLE_MOST (UINT64_C(1) << 50)
#define STEP_REAL_MOST	1e30

/* Writes the name of an element of the array `all` of union step_hists. Returns `name`. */
#define STEP_HIST_NAME 48
const char *step_hist_name(size_t i, char name[STEP_HIST_NAME]);

#endif
