/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the steps: their distributions, and with --trace their raw times. A file that cannot be written is lost
 * (results_lost). Owning thread: main. */
#ifndef RAMPART_LOADGEN_STEP_FILES_H
#define RAMPART_LOADGEN_STEP_FILES_H

#include <stdint.h>

#include <jansson.h>

#include "loadgen/config/config.h"

struct results;
struct step;
struct worker;

struct step_files {
	const struct loadgen_config *cfg;
	struct results *results;
	uint64_t run_start_ns;		/* times in the files count from then */
	uint32_t traced_steps;		/* steps in the file of --trace */
};

/* Writes the histograms of a step, after step_collect; its clients began to connect at `connect_start_ns`. Returns
 * `histograms` of run.json: the names of the files without their endings, null for a histogram that is empty or could
 * not be written. */
json_t *step_files_histograms(const struct step_files *f, const struct step *s, uint64_t connect_start_ns);

/* With --trace: adds the step's operations to the file. */
void step_files_trace(struct step_files *f, const struct step *s, struct worker *const *workers, uint32_t n_workers);

#endif
