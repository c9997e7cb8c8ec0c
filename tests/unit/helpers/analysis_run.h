/* SPDX-License-Identifier: BSD-2-Clause */
/* A run.json as analyses read it, with figures on straight lines. */
#ifndef RAMPART_TESTS_UNIT_ANALYSIS_RUN_H
#define RAMPART_TESTS_UNIT_ANALYSIS_RUN_H

#include <jansson.h>

/* Three steps of 10, 50 and 100 clients on one machine, with a server of its own for 126. Server: 200 + N queue
 * pairs, 20e6 + 40000 N bytes resident, 21 descriptors; generator: 100 + N queue pairs, 10e6 + 30000 N bytes; the
 * kernel grew by 20000 N. The caller owns it. */
json_t *analysis_run(void);

/* A further step of it, at the end; `messages_per_s` throughout. */
void analysis_run_add(json_t *run, int clients, double messages_per_s);

/* The k-th step, borrowed. */
json_t *analysis_run_step(const json_t *run, size_t k);

/* Sets the value at a dotted path whose objects are there; takes over `v`. */
void analysis_run_set(json_t *o, const char *path, json_t *v);

/* The element of an array of objects whose `name` is `text`, and, unless `side` is NULL, whose "side" is that. */
json_t *analysis_run_find(const json_t *a, const char *name, const char *text, const char *side);

#endif
