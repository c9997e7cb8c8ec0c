/* The files of a step: its distributions, and its raw times with --trace. Owning thread: main. */
#ifndef RAMPART_LOADGEN_STEP_FILES_H
#define RAMPART_LOADGEN_STEP_FILES_H

#include <jansson.h>

#include "loadgen/ramp/ramp.h"

/* Writes the histograms of the running step, which was collected. Returns `histograms` of run.json: the names of the
 * files without their endings; null for what there was none of, or could not be written (which is logged). */
json_t *step_files_histograms(struct ramp *r);

/* With --trace: adds the step's operations to the file. What goes wrong is logged. */
void step_files_trace(struct ramp *r);

#endif
