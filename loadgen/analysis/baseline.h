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

/* What keeps two runs from being compared: [{field, base, run}], of their environments (CPU model, cores, memory by
 * more than a tenth, hypervisor, accelerator, RDMA driver, software or not, link, MTU; both sides) and configurations
 * (workload, sizes, inflight, coalesce, poll, rates, verify, message_auth, threads, churn, rails, the other options
 * that the workload and connecting depend on, and whether the run started the server; the server's threads and poll).
 * Empty if nothing does. Kernel, libraries, commit and duration may differ and are not in it; neither is a field that
 * one of the runs lacks. NULL when out of memory. */
json_t *baseline_differences(const json_t *base, const json_t *run);

#define BASELINE_MIN_EFFECT 0.05
#define BASELINE_ROUNDS 5	/* fewer have no verdict */

struct baseline_options {
	double min_effect;		/* a change of at most this share of the figure counts as none */
	bool rounds;			/* repetitions of the same number ran side by side: their ratios are judged */
};

/* {regression (bool), rows: [{clients, message_bytes, metric, unit, better ("higher", "lower"), base: {value, low,
 * high}, run: {value, low, high}, change_ratio (run / base - 1), round_ratio ({value, low, high}; null without rounds),
 * verdict ("regression", "improvement", "same", "unknown")}], missing: [{clients, message_bytes, in ("base", "run"):
 * the run that lacks it}]}. A step is matched by clients and size (null where older runs do not say it). Metrics, in
 * this order: throughput_msgs_per_s, response_p50_ns, response_p95_ns, response_p99_ns, response_p99_9_ns,
 * connect_p50_ns, connect_p99_ns, held_ratio, server_cpu_ns_per_message, server_rss_bytes, and with `rounds`
 * throughput_bytes_per_s, generator_cpu_ns_per_message. A metric that neither run has gets no row. Units: per_s, ns,
 * ratio, bytes, bytes_per_s.
 *
 * The interval is that of the repetitions (3 and more), else of the intervals of one run (throughput), the order
 * statistics of its histogram (percentiles) or the proportion (held ratio). Without an interval the verdict is
 * "unknown". It is "regression" if the intervals do not overlap and the run is worse by more than `min_effect`.
 *
 * With `rounds`, base and run are the medians over the rounds with their range, and round_ratio is that of the rounds'
 * ratios, above 1 where the run is better: of run / base, or base / run of a metric whose lower figures are better. The
 * range of BASELINE_ROUNDS ratios and more is the interval: an improvement or a regression needs one without 1 in it.
 * With fewer the verdict is "unknown".
 *
 * NULL when out of memory. */
json_t *baseline_compare(const struct baseline_side *base, const struct baseline_side *run,
			 const struct baseline_options *options);

#endif
