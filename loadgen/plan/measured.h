/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time of messages and connections in an earlier run, for a plan (`plan --from DIR`). Reads run.json, which may be
 * damaged. */
#ifndef RAMPART_LOADGEN_MEASURED_H
#define RAMPART_LOADGEN_MEASURED_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"

/* NAN: not known. CPU time of the processes, without kernel work that is charged to no process. */
struct measured {
	double messages_per_s;
	struct measured_side { double s_per_message, s_per_connection; } server, generator;
};

/* Sets all figures to NAN. */
void measured_init(struct measured *m);

/* Takes the figures of the step with the most clients of a run with the workload, transport and message size of the
 * plan. Returns 0, or -EINVAL with a line in `err` that begins with "--from". */
int measured_read(const json_t *run, const struct loadgen_config *cfg, struct measured *out, char *err,
		  size_t err_size) __attribute__((warn_unused_result));

/* As measured_read, for the run in folder `dir`. Also returns the errors of source_open. */
int measured_open(const char *dir, const struct loadgen_config *cfg, struct measured *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* CPUs that a side needs for `messages_per_s` and `churn_per_s` new connections a second; NAN: not known. */
double measured_cpus(const struct measured_side *s, double messages_per_s, double churn_per_s);

#endif
