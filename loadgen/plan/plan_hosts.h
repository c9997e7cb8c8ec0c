/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines both hosts before a run: this machine and its devices directly, a running server by its reports. Connects no
 * client. Owning thread: main. */
#ifndef RAMPART_LOADGEN_PLAN_HOSTS_H
#define RAMPART_LOADGEN_PLAN_HOSTS_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"
#include "loadgen/plan/estimate.h"
#include "loadgen/plan/measured.h"

struct hosts {
	const struct loadgen_config *cfg;
	json_t *info, *stats;		/* the server's reports; NULL without --server */
	bool same_machine;
	struct estimate_host generator_host, server_host;
	struct measured measured;	/* figures of the run of --from */
};

/* Examines this machine and, if `ask`, asks --server; otherwise hosts_take_reports must follow. `cfg` must outlive
 * `out`. Returns 0, or -errno with a line in `err` that says what failed and what to do; then there is nothing to
 * free. */
int hosts_look(const struct loadgen_config *cfg, bool ask, struct hosts *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Takes a running server's reports INFO and STATS, which may be NULL. */
void hosts_take_reports(struct hosts *h, json_t *info, json_t *stats);
void hosts_free(struct hosts *h);

/* An estimate_fill_fn; `arg` is a struct hosts. */
void hosts_fill(void *arg, uint64_t clients, struct estimate_in *out);

/* Reads the description of a host (environment in run.json); missing figures become NAN. No I/O. */
void hosts_read(const json_t *environment, struct estimate_host *out);

#endif
