/* SPDX-License-Identifier: BSD-2-Clause */
/* What people need to know to read the tables on the terminal: a line each, in words. */
#ifndef RAMPART_LOADGEN_REMARKS_H
#define RAMPART_LOADGEN_REMARKS_H

#include <stdio.h>

#include <jansson.h>

/* Of each step of run.json: where a "-" stands in the tables and why; why it is not steady; and what else makes its
 * figures questionable (`validity`). */
void remarks_print(const json_t *run, FILE *out);

#endif
