/* SPDX-License-Identifier: BSD-2-Clause */
/* See worker_stats.h. */
#include "loadgen/traffic/worker_stats.h"

#include "common/hist/hist.h"

/* Lists the addresses of all histograms. Returns their number. */
static size_t hists_of(struct worker_stats *st, struct hist **out[WORKER_HISTS])
{
	size_t n = 0;

	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			out[n++] = &st->stages[k][i];
		out[n++] = &st->total[k];
	}
	for (int k = 0; k < WORKLOAD_KINDS_MAX; k++)
		out[n++] = &st->kinds[k].response;
	out[n++] = &st->psn_generate;
	out[n++] = &st->away_ns;
	out[n++] = &st->outage_ns;
	out[n++] = &st->response;
	out[n++] = &st->service;
	out[n++] = &st->lag;
	return n;
}

int worker_stats_init(struct worker_stats *st)
{
	struct hist **hists[WORKER_HISTS];
	size_t n = hists_of(st, hists);
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		*hists[i] = NULL;
	for (size_t i = 0; i < n && !ret; i++)
		ret = hist_new(hists[i]);
	return ret;
}

void worker_stats_release(struct worker_stats *st)
{
	struct hist **hists[WORKER_HISTS];

	for (size_t i = hists_of(st, hists); i--;)
		hist_free(*hists[i]);
}

static void reset_fairness(struct worker_fairness *f)
{
	counter_set(&f->n, 0);
	counter_set(&f->sum, 0);
	counter_set(&f->min, 0);
	counter_set(&f->max, 0);
	atomic_store(&f->squares, 0);
}

void worker_stats_reset(struct worker_stats *st)
{
	struct hist **hists[WORKER_HISTS];
#define X(type, name, rule, path) &st->name,
	counter *const of_step[] = { STEP_COUNTERS(X) &st->through, &st->unproved, &st->messages, &st->messages_measured,
		&st->measure_start_ns, &st->measure_end_ns, &st->carried_in_ns, &st->carried_out_ns, &st->iterations,
		&st->sends_measured };
#undef X

	for (size_t i = 0; i < sizeof(of_step) / sizeof(of_step[0]); i++)
		counter_set(of_step[i], 0);
	for (int k = 0; k < WORKLOAD_KINDS_MAX; k++)
		counter_set(&st->kinds[k].measured, 0);
	for (int k = 0; k < WORKLOAD_STREAMS_MAX; k++) {
		counter_set(&st->streams[k].took_ns, 0);
		counter_set(&st->streams[k].waited_ns, 0);
		reset_fairness(&st->streams[k].fair);
	}
	reset_fairness(&st->fair);
	fail_table_reset(&st->failures);
	fail_table_reset(&st->retried);
	for (size_t i = hists_of(st, hists); i--;)
		hist_reset(*hists[i]);
}
