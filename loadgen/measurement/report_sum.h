/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up the reports of several servers. Pure. */
#ifndef RAMPART_LOADGEN_REPORT_SUM_H
#define RAMPART_LOADGEN_REPORT_SUM_H

#include <stddef.h>

#include <jansson.h>

/* The members of a STATS report (docs/protocol.md) that can be added, in the form json_sum takes. */
extern const char *const report_adds[];

/* The sum of `n` objects, with the union of their members. `adds` is a NULL-terminated list of the paths, from the
 * outermost object, that can be added: "a.b" is a number, which is added, or an array, which is concatenated; "a."
 * stands for all numbers in the object `a`, a missing one counting as 0. Every other value that is not an object
 * becomes null because it cannot be added (a percentile, a ratio, a time). A listed number also becomes null if one of
 * the objects lacks it. A new reference. NULL if `n` is 0, if one of them is no object, or when out of memory. */
json_t *json_sum(json_t *const *of, size_t n, const char *const *adds);

#endif
