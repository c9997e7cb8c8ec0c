/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of several servers added up. Pure. */
#ifndef RAMPART_LOADGEN_REPORT_SUM_H
#define RAMPART_LOADGEN_REPORT_SUM_H

#include <stddef.h>

#include <jansson.h>

/* What adds in a STATS report (docs/protocol.md), as json_sum takes it. */
extern const char *const report_adds[];

/* The sum of `n` objects, with the members of all of them. `adds` names what adds, by its path from the outermost object and up
 * to a NULL: "a.b" is a number, which is added, or an array, which is joined to the others; "a." are all numbers in the
 * object `a`, of which one that an object lacks counts as 0. Everything else that is no object is null, because it does
 * not add (a percentile, a ratio, a time), and so is a number that is not in all of them. A new reference. NULL if `n` is
 * 0, one of them is NULL or no object, or memory ran out. */
json_t *json_sum(json_t *const *of, size_t n, const char *const *adds);

#endif
