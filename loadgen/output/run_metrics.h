/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's metrics (docs/metrics.md), for --metrics and --metrics-textfile. Owning thread: main. */
#ifndef RAMPART_LOADGEN_RUN_METRICS_H
#define RAMPART_LOADGEN_RUN_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct ev_loop;
struct loadgen_config;
struct run_metrics;

/* The state of the run, as a new reference; NULL when out of memory:
 *   phase, step, target, connecting, live, failed, dropped, offered_per_s
 *   interval{messages_per_s, p50_ns, p99_ns}   of the newest interval of the measured time, null outside it
 *   cpus{server, generator}                    CPUs in use between the newest two samples
 *   steps_done, last                           last: the newest element of run.json's steps
 *   criteria{pass, fail, ...}                  how many criteria of the verdict have each result so far */
typedef json_t *run_metrics_state(const void *arg);

/* Opens the port of --metrics. *out is NULL if neither option was given. 0 or -errno, with a line in `err`. */
int run_metrics_new(const struct loadgen_config *cfg, struct ev_loop *loop, run_metrics_state *state, const void *arg,
		    struct run_metrics **out, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Writes the file of --metrics-textfile if it is older than a few seconds, or if `now`. After a failure, which is
 * logged, the file is no longer written. `m` may be NULL. */
void run_metrics_write(struct run_metrics *m, bool now);
void run_metrics_free(struct run_metrics *m);	/* NULL-safe */

/* The text of a state, which the caller frees; NULL when out of memory. */
char *run_metrics_text(const json_t *state, bool openmetrics, size_t *len) __attribute__((warn_unused_result));

#endif
