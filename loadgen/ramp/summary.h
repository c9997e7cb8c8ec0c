/* What a run says to people at its end. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUMMARY_H
#define RAMPART_LOADGEN_SUMMARY_H

#include <stdio.h>

#include <jansson.h>

#include "loadgen/ramp/ramp.h"

/* The tables of steps, the verdict with its environment, and where the results are. */
void summary_print(const struct ramp *r, const json_t *run, FILE *out);

#endif
