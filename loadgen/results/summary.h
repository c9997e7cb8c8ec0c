/* What a run says to people at its end. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUMMARY_H
#define RAMPART_LOADGEN_SUMMARY_H

#include <stdio.h>

#include <jansson.h>

#include "loadgen/results/outcome.h"

/* Prints the tables of steps, the verdict, and where the results are. `run` is run.json, `where` describes the
 * environment of the verdict, `dir` is the results folder. */
void summary_print(const struct outcome *oc, const json_t *run, const char *where, const char *dir, FILE *out);

#endif
