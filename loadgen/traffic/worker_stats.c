/* SPDX-License-Identifier: BSD-2-Clause */
/* See worker_stats.h. */
#include "loadgen/traffic/worker_stats.h"

#include <sys/param.h>

#include "common/hist/hist.h"

int worker_stats_init(struct worker_stats *st)
{
	return hists_new(st->hists.all, STEP_HISTS);
}

void worker_stats_release(struct worker_stats *st)
{
	hists_free(st->hists.all, STEP_HISTS);
}

void fairness_add(struct fairness_sum *f, uint64_t x)
{
	f->min = f->n ? MIN(f->min, x) : x;
	f->max = MAX(f->max, x);
	f->n++;
	f->sum += x;
	f->squares += (double)x * (double)x;
}

void fairness_publish(const struct fairness_sum *f, struct worker_fairness *out)
{
	counter_set(&out->n, f->n);
	counter_set(&out->sum, f->sum);
	counter_set(&out->min, f->min);
	counter_set(&out->max, f->max);
	atomic_store(&out->squares, f->squares);
}

void worker_stats_reset(struct worker_stats *st)
{
	static const struct fairness_sum none;
#define X(type, name, rule, path) &st->name,
	counter *const of_step[] = { STEP_COUNTERS(X) &st->through, &st->unproved, &st->messages,
				     &st->messages_measured,
		&st->measure_start_ns, &st->measure_end_ns, &st->carried_in_ns, &st->carried_out_ns, &st->iterations,
		&st->sends_measured };
#undef X

	for (size_t i = 0; i < sizeof(of_step) / sizeof(of_step[0]); i++)
		counter_set(of_step[i], 0);
	for (int k = 0; k < WORKLOAD_KINDS_MAX; k++)
		counter_set(&st->kind_measured[k], 0);
	for (int k = 0; k < WORKLOAD_STREAMS_MAX; k++) {
		counter_set(&st->streams[k].took_ns, 0);
		counter_set(&st->streams[k].waited_ns, 0);
		fairness_publish(&none, &st->streams[k].fair);
	}
	fairness_publish(&none, &st->fair);
	fairness_publish(&none, &st->qp_times);
	fail_table_reset(&st->failures);
	fail_table_reset(&st->retried);
	for (size_t i = 0; i < STEP_HISTS; i++)
		hist_reset(st->hists.all[i]);
}
