/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run says to people at its end. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUMMARY_H
#define RAMPART_LOADGEN_SUMMARY_H

#include <stdio.h>

#include <jansson.h>

#include "loadgen/results/outcome.h"

/* Prints the tables of steps, the verdict, and why the run stopped. `run` is run.json, `where` describes the environment of
 * the verdict. What a server said is shown as utf8_print does. */
void summary_print(const struct outcome *oc, const json_t *run, const char *where, FILE *out);

#endif
