/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two runs: what changed, and whether the change is more than noise. Pure but for reading histograms. */
#ifndef RAMPART_LOADGEN_ANALYSIS_BASELINE_H
#define RAMPART_LOADGEN_ANALYSIS_BASELINE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/analysis/points.h"

struct baseline_side {
	const json_t *run;
	point_hist_fn *hist;		/* NULL: intervals come from repetitions only */
	void *arg;
};

/* The differences that make two runs incomparable: [{field, base, run}]; empty if there are none. Compared are the
 * environments of both sides (CPU model, cores, memory by more than a tenth, hypervisor, accelerator, RDMA driver,
 * software or not, link, MTU) and the configurations (workload, sizes, inflight, coalesce, poll, rates, verify,
 * message_auth, threads, churn, rails, the other options that the workload and connecting depend on, whether the run
 * started the server, and the server's threads and poll). Kernel, libraries, commit and duration may differ. A field
 * that one of the runs lacks is left out. NULL when out of memory. */
json_t *baseline_differences(const json_t *base, const json_t *run);

#define BASELINE_MIN_EFFECT 0.05
#define BASELINE_ROUNDS 5	/* with fewer rounds there is no verdict */

struct baseline_options {
	double min_effect;		/* a change of at most this share of the figure counts as none */
	bool rounds;			/* the two runs took turns: judge the ratio of each pair of repetitions */
};

/* {regression (bool), rows: [{clients, message_bytes, metric, unit, better ("higher", "lower"), base: {value, low,
 * high}, run: {value, low, high}, change_ratio (run / base - 1), round_ratio ({value, low, high}; null without rounds),
 * verdict ("regression", "improvement", "same", "unknown")}], missing: [{clients, message_bytes, in ("base", "run"):
 * the run that lacks it}]}. Steps are matched by clients and size (null if an old run lacks it). Metrics, in
 * this order: throughput_msgs_per_s, response_p50_ns, response_p95_ns, response_p99_ns, response_p99_9_ns,
 * connect_p50_ns, connect_p99_ns, held_ratio, server_cpu_ns_per_message, server_rss_bytes, and with `rounds` also
 * throughput_bytes_per_s, connects_per_s, server_cpu_ns_per_connection, generator_cpu_ns_per_connection (these three
 * only where no messages were measured) and generator_cpu_ns_per_message. A metric that both runs lack gets no row.
 * Units: per_s, ns, ratio, bytes, bytes_per_s.
 *
 * With 3 repetitions or more, the interval comes from them; else from the intervals of one run (throughput), the order
 * statistics of its histogram (percentiles) or the proportion (held ratio). Without an interval the verdict is
 * "unknown". It is "regression" if the intervals do not overlap and the run is worse by more than `min_effect`.
 *
 * With `rounds`, base and run are medians and ranges over the rounds. round_ratio is the median and range of the
 * rounds' ratios, above 1 where the run is better: run / base, or base / run if lower figures are better. With
 * BASELINE_ROUNDS ratios or more, an improvement or a regression needs a range that excludes 1. With fewer the verdict
 * is "unknown".
 *
 * NULL when out of memory. */
json_t *baseline_compare(const struct baseline_side *base, const struct baseline_side *run,
			 const struct baseline_options *options);

#endif
