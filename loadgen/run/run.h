/* SPDX-License-Identifier: BSD-2-Clause */
/* One whole run: its results folder, the ramp, its reports. Owning thread: main. */
#ifndef RAMPART_LOADGEN_RUN_H
#define RAMPART_LOADGEN_RUN_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/config/config.h"

/* performance_test's exit statuses. */
enum run_exit {
	EXIT_OK = 0,		/* all criteria met */
	EXIT_CRITERION = 1,	/* a criterion failed */
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,	/* the run is not possible here */
	EXIT_INCONCLUSIVE = 4,
	EXIT_INTERRUPTED = 130,
};

/* The more serious of two runs' exit statuses, for a command with several runs: an interruption is the most serious,
 * then a run that was not possible. */
static inline enum run_exit run_exit_worse(enum run_exit a, enum run_exit b)
{
	static const enum run_exit order[] = { EXIT_OK, EXIT_INCONCLUSIVE, EXIT_CRITERION, EXIT_ENVIRONMENT,
					       EXIT_INTERRUPTED };
	size_t of_a = 0, of_b = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		of_a = order[i] == a ? i : of_a;
		of_b = order[i] == b ? i : of_b;
	}
	return of_a > of_b ? a : b;
}

/* Runs, writes the results, and if `print`, prints the summary. Returns an exit status. *out (`out` may be NULL) is set
 * to run.json, a reference that the caller owns, or to NULL if there is none. */
enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out);

#endif
