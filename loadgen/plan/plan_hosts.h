/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of both hosts, and of the server, before a run: this machine and its devices; a server that runs, by its
 * reports. No client is connected. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_PLAN_HOSTS_H
#define RAMPART_LOADGEN_PLAN_HOSTS_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"
#include "loadgen/plan/estimate.h"

struct hosts {
	const struct loadgen_config *cfg;
	json_t *info, *stats;		/* the server's reports; NULL without --server */
	bool same_machine;
	struct estimate_host generator_host, server_host;
};

/* Looks at this machine and asks --server. `cfg` must outlive it. 0, or a negative error with a line in `err` that says
 * what could not be known and what to do; then nothing is to be freed. */
int hosts_look(const struct loadgen_config *cfg, struct hosts *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
void hosts_free(struct hosts *h);

/* An estimate_fill_fn; `arg` is a struct hosts. */
void hosts_fill(void *arg, uint64_t clients, struct estimate_in *out);

/* A host as its description says (environment of run.json); what is missing is NAN. Pure. */
void hosts_read(const json_t *environment, struct estimate_host *out);

#endif
