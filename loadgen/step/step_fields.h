/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of a step that hosts add up, by name: for step_pack.c, which writes them, and step_merge.c, which reads and adds
 * them. */
#ifndef RAMPART_LOADGEN_STEP_FIELDS_H
#define RAMPART_LOADGEN_STEP_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/step/step.h"

enum step_type { STEP_U32, STEP_U64, STEP_REAL, STEP_FLAG, STEP_FLOOR };
enum step_rule { STEP_ADD, STEP_MAX };	/* flags: the greater is their OR */

struct step_field {
	const char *name;
	size_t offset;
	enum step_type type;
	enum step_rule rule;
	uint32_t n;		/* of an array; else 1 */
};

/* Of struct step; and of struct step_moment, as the difference between the measured time's end and begin, or as they were at
 * its end. The last one has no name. */
extern const struct step_field step_fields[], step_moment_fields[];
/* Of struct step_target: of each of several servers. */
extern const struct step_field step_target_fields[];

/* A value of a field, at `base` of its struct. Any whole number of them is exact. */
double step_field_get(const struct step_field *f, const void *base, uint32_t i);
uint64_t step_field_get_whole(const struct step_field *f, const void *base, uint32_t i);
void step_field_set(const struct step_field *f, void *base, uint32_t i, double real, uint64_t whole);
/* The greatest value that a field can have. */
uint64_t step_field_most(const struct step_field *f);

/* Whole numbers of a host are no greater, so that a run's hosts together do not overflow. */
#define STEP_WHOLE_MOST (UINT64_C(1) << 50)
#define STEP_REAL_MOST	1e30

#define STEP_PACK_HISTS (HANDSHAKE_N * (STAGE_TIMED + 1) + WORKLOAD_KINDS_MAX + 6)
struct step_hist {
	char name[48];
	struct hist *hist;
};
/* The step's histograms without those of all connections, which are the sums of full and resumed handshakes. */
void step_hists(const struct step *s, struct step_hist out[STEP_PACK_HISTS]);

#endif
