/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up one step's counters and derives its figures. See step.h and docs/results.md. */
#include "loadgen/measurement/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/rdma/pump.h"
#include "loadgen/worker/pulse.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"

#define SATURATED_CPUS 0.95
#define KEPT_UP 0.95		/* smallest share of the offered rate that counts as keeping up */

const char *const step_pools_names[] = { "unknown", "restored", "not_restored" };

int step_new(uint32_t target, uint64_t bytes, uint32_t repetition, struct step **out)
{
	struct step *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->target = s->senders = s->senders_of_all = target;
	s->bytes = bytes;
	s->repetition = repetition;
	s->server_connected = -1;
	ret = hists_new(s->hists.all, STEP_HISTS);
	if (!ret)
		ret = hists_new(s->stages, STAGE_TIMED);
	if (!ret)
		ret = hist_new(&s->total);
	if (ret) {
		step_free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	json_t *const kept[] = { s->begin.server, s->end.server, s->marked, s->baseline, s->held, s->after,
				 s->network_marked,
				 s->network_connected, s->begin.network, s->end.network, s->hosts.network,
				 s->hosts.connecting };

	hists_free(s->hists.all, STEP_HISTS);
	hists_free(s->stages, STAGE_TIMED);
	hist_free(s->total);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		json_decref(kept[i]);
	for (uint32_t i = 0; i < s->n_targets; i++) {
		hist_free(s->targets[i].total);
		hist_free(s->targets[i].response);
		for (int k = 0; k < STEP_REPORT_N; k++)
			json_decref(s->targets[i].reports[k]);
	}
	free(s->targets);
	free(s);
}

int step_make_targets(struct step *s, uint32_t n, const uint32_t *clients)
{
	int ret = 0;

	s->targets = calloc(n, sizeof(*s->targets));
	if (!s->targets)
		return -ENOMEM;
	for (s->n_targets = 0; s->n_targets < n && !ret; s->n_targets++) {
		struct step_target *t = &s->targets[s->n_targets];

		t->clients = clients[s->n_targets];
		ret = hist_new(&t->total);
		if (!ret)
			ret = hist_new(&t->response);
	}
	return ret;
}

void step_keep_report(struct step *s, uint32_t target, enum step_report which, json_t *report)
{
	if (target >= s->n_targets)
		return;
	json_decref(s->targets[target].reports[which]);
	s->targets[target].reports[which] = json_incref(report);
}

void step_judge_steadiness(struct step *s)
{
	enum steadiness is = s->idle ? STEADINESS_STEADY : intervals_judge(&s->intervals);

	s->steady = s->measured && is == STEADINESS_STEADY;
	s->too_short = s->measured && is == STEADINESS_UNKNOWN;
}

void step_add_fairness(struct step_fairness *to, const struct step_fairness *of)
{
	if (of->clients == 0)
		return;
	to->min = to->clients ? MIN(to->min, of->min) : of->min;
	to->max = MAX(to->max, of->max);
	to->clients += of->clients;
	to->sum += of->sum;
	to->squares += of->squares;
}

static void collect_fairness(struct step_fairness *f, const struct worker_fairness *of)
{
	step_add_fairness(f, &(struct step_fairness){
		.clients = counter_get(&of->n), .sum = (double)counter_get(&of->sum), .min = counter_get(&of->min),
		.max = counter_get(&of->max), .squares = atomic_load((_Atomic double *)&of->squares) });
}

static void collect_streams(struct step *s, const struct worker_stats *st)
{
	collect_fairness(&s->fairness, &st->fair);
	collect_fairness(&s->qp_times, &st->qp_times);
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++) {
		collect_fairness(&s->stream_fairness[i], &st->streams[i].fair);
		s->stream_took_ns[i] += (double)counter_get(&st->streams[i].took_ns);
		s->stream_waited_ns[i] += (double)counter_get(&st->streams[i].waited_ns);
	}
}

/* Each worker's rates are computed over its own window, because workers start and stop at slightly different times. */
static void collect_rates(struct step *s, const struct worker_stats *st, double window_s)
{
	s->messages_per_s += (double)counter_get(&st->messages_measured) / window_s;
	s->bytes_per_s = s->messages_per_s * (double)s->bytes;
	s->carried_in += (double)counter_get(&st->carried_in_ns) / 1e9 / window_s;
	s->carried_out += (double)counter_get(&st->carried_out_ns) / 1e9 / window_s;
	for (unsigned i = 0; i < WORKLOAD_KINDS_MAX; i++)
		s->kind_per_s[i] += (double)counter_get(&st->kind_measured[i]) / window_s;
	s->sends_per_s += (double)counter_get(&st->sends_measured) / window_s;
	s->measured_s = MAX(s->measured_s, window_s);
}

static void collect_counters(struct step *s, const struct worker_stats *st)
{
#define STEP_ADD(a, b) ((a) + (b))
#define STEP_MAX(a, b) MAX(a, b)
#define X(type, name, rule, path) s->name = (type##_C)rule(s->name, counter_get(&st->name));
	STEP_COUNTERS(X)
#undef X
}

void step_add_hists(struct step *s, const union step_hists *of)
{
	hists_add(s->hists.all, of->all, STEP_HISTS);
	for (int k = 0; k < HANDSHAKE_N; k++) {
		hists_add(s->stages, of->stages[k], STAGE_TIMED);
		hist_add(s->total, of->total[k]);
	}
}

static void collect_worker(struct step *s, const struct worker_stats *st)
{
	uint64_t t0 = counter_get(&st->measure_start_ns), t1 = counter_get(&st->measure_end_ns);

	/* A worker whose device failed has not recorded when its measured time ended. */
	if (t1 == 0 && s->generator_failed)
		t1 = s->end.now_ns;
	step_add_hists(s, &st->hists);
	fail_table_add(&s->retried, &st->retried);
	collect_streams(s, st);
	collect_counters(s, st);
	s->messages_all += counter_get(&st->messages);
	for (int k = 0; k < HANDSHAKE_N; k++)
		s->messages_all += hist_count(st->hists.stages[k][STAGE_FIRST_REPLY]);
	s->qps += counter_get(&st->qps);
	s->cqs += counter_get(&st->cqs);
	s->mrs += counter_get(&st->mrs);
	s->pinned_bytes += counter_get(&st->pinned_bytes);
	/* A worker that started late measured less than the step's time. */
	if (s->begin.now_ns && t0 > s->begin.now_ns)
		s->clock_late_ns = MAX(s->clock_late_ns, t0 - s->begin.now_ns);
	fail_table_add(&s->failures, &st->failures);
	if (t0 == 0 || t1 <= t0)
		return;
	s->measured = true;
	collect_rates(s, st, (double)(t1 - t0) / 1e9);
}

static void collect_target(struct step_target *t, const struct worker_stats *st, uint64_t end_ns)
{
	uint64_t t0 = counter_get(&st->measure_start_ns), t1 = counter_get(&st->measure_end_ns);

	for (int k = 0; k < HANDSHAKE_N; k++)
		hist_add(t->total, st->hists.total[k]);
	hist_add(t->response, st->hists.response);
	t->attempted += (uint32_t)counter_get(&st->attempted);
	t->failed += (uint32_t)counter_get(&st->failed);
	t->dropped += (uint32_t)counter_get(&st->dropped);
	if (t1 == 0)
		t1 = end_ns;
	if (t0 && t1 > t0)
		t->messages_per_s += (double)counter_get(&st->messages_measured) * 1e9 / (double)(t1 - t0);
}

static void collect_targets(struct step *s, struct worker *const *workers, uint32_t n_workers)
{
	/* A worker whose device failed has not recorded when its measured time ended (collect_worker). */
	uint64_t end_ns = s->generator_failed ? s->end.now_ns : 0;

	for (uint32_t i = 0; i < n_workers && s->n_targets; i++)
		collect_target(&s->targets[i % s->n_targets], worker_stats(workers[i]), end_ns);
	for (uint32_t i = 0; i < s->n_targets; i++) {
		struct step_target *t = &s->targets[i];

		t->connected_held = MIN(t->connected_held, t->clients - MIN(t->failed + t->dropped, t->clients));
	}
}

/* True if one thread used up a CPU, or all threads together used up the CPUs they may run on (perhaps fewer). */
static bool is_saturated(const struct step *s, uint32_t n_workers, double window_s)
{
	double all_s = 0;

	for (uint32_t i = 0; i < n_workers; i++) {
		double used_s = (double)(s->end.worker_cpu_ns[i] - s->begin.worker_cpu_ns[i]) / 1e9;

		all_s += used_s;
		if (used_s / window_s > SATURATED_CPUS)
			return true;
	}
	return s->cpus > 0 && all_s / window_s > SATURATED_CPUS * s->cpus;
}

void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg)
{
	double window_s = (double)(s->end.now_ns - s->begin.now_ns) / 1e9;

	for (uint32_t i = 0; i < n_workers; i++)
		collect_worker(s, worker_stats(workers[i]));
	collect_targets(s, workers, n_workers);
	s->connected_held = MIN(s->connected_held, s->target - MIN(s->failed + s->dropped, s->target));
	s->offered_per_s = s->senders_of_all ? (double)s->rate * s->senders / s->senders_of_all : (double)s->rate;
	if (!s->rate && cfg->rate_per_client)
		s->offered_per_s = (double)cfg->rate_per_client * step_active(s, cfg);
	s->idle = cfg->wl->idle;
	step_judge_steadiness(s);
	if (s->measured && window_s > 0 && cfg->poll == POLL_EVENT && is_saturated(s, n_workers, window_s))
		s->generator_saturated = true;
}

static void count_failures(struct step *s, enum stage stage, int err, uint64_t n)
{
	struct fail f = { .stage = stage, .kind = FAIL_ERRNO, .code = err };

	while (n--)
		fail_table_count(&s->failures, &f);
}

void step_count_gone(struct step *s, uint32_t worker, const struct worker_stats *st)
{
	uint64_t held = counter_get(&st->live) + counter_get(&st->away);
	uint64_t known = held + counter_get(&st->failed) + counter_get(&st->dropped),
		started = counter_get(&st->attempted);
	/* Clients without a known end may have left normally. A client that reconnects is in `away`, so it is known. */
	uint64_t unknown = started - MIN(known, started);
	uint64_t coming = MIN(unknown, counter_get(&st->connecting) + counter_get(&st->parked) +
			      counter_get(&st->waiting));

	s->dropped += (uint32_t)held;
	count_failures(s, STAGE_TRAFFIC, ENODEV, held);
	s->failed += (uint32_t)coming;
	count_failures(s, STAGE_RDMA_CONNECT, ENODEV, coming);
	if (!s->n_targets)
		return;
	s->targets[worker % s->n_targets].dropped += (uint32_t)held;
	s->targets[worker % s->n_targets].failed += (uint32_t)coming;
}

bool step_is_stable(const struct step *s)
{
	return s->connected_held == s->target && s->measured && !s->replies_missing && s->failed == 0 &&
		s->dropped == 0;
}

bool step_has_hole(const struct step *s)
{
	return s->clock_late_ns > PULSE_HOLE_NS;
}

bool step_is_stalled(const struct step *s)
{
	return s->reply_stall_ns > MAX(STEP_STALL_NS, STEP_STALL_MEDIANS * hist_percentile(s->hists.response, 50));
}

uint32_t step_active(const struct step *s, const struct loadgen_config *cfg)
{
	return cfg->wl->idle ? 0 : MIN(s->senders, s->connected_held);
}

bool step_lacks_iterations(const struct step *s, const struct loadgen_config *cfg)
{
	return s->measured && hist_count(s->hists.response) < cfg->iterations * cfg->wl->streams * step_active(s, cfg);
}

bool step_is_behind(const struct step *s)
{
	return s->measured && s->messages_per_s < KEPT_UP * s->offered_per_s;
}

double step_littles_residual(const struct step *s, const struct loadgen_config *cfg)
{
	double population = (double)step_active(s, cfg) * (double)cfg->inflight * cfg->wl->streams;

	/* The parts of fewer operations than two for each thread may have been raised to 1. */
	if (cfg->total_inflight && cfg->total_inflight < 2 * cfg->threads * cfg->hosts)
		return NAN;
	if (cfg->total_inflight && s->senders_of_all)
		population = fmin(population, (double)cfg->total_inflight * s->senders / s->senders_of_all);
	if (!s->measured || population <= 0 || cfg->iterations || cfg->churn_per_s || s->outages ||
	    loadgen_is_open_loop(cfg) || hist_count(s->hists.response) == 0)
		return NAN;
	return 1 - (s->messages_per_s * hist_mean(s->hists.response) / 1e9 - s->carried_in +
		    s->carried_out) / population;
}

double step_window_s(const struct step *s)
{
	return s->measured ? (double)(s->end.now_ns - s->begin.now_ns) / 1e9 : NAN;
}

/* The usage is all zero if it could not be read: reading needs a file descriptor, and none may be left. */
bool step_has_usage(const struct step_moment *m)
{
	return m->generator.rss_bytes > 0;
}

double step_span_s(bool known, uint64_t begin_ns, uint64_t end_ns)
{
	return known ? (double)(end_ns - begin_ns) / 1e9 : NAN;
}

double step_generator_cpus(const struct step *s)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;
	bool known = step_has_usage(&s->begin) && step_has_usage(&s->end);

	return step_span_s(known, a->cpu_user_ns + a->cpu_system_ns, b->cpu_user_ns + b->cpu_system_ns) /
	       step_window_s(s);
}

double step_server_delta(const struct step *s, const char *path)
{
	return json_number_at(s->end.server, path) - json_number_at(s->begin.server, path);
}

double step_server_since_mark(const struct step *s, const char *path)
{
	double n = json_number_at(s->after, path) - json_number_at(s->marked, path);

	return s->mark_lost || n < 0 ? NAN : n;
}

/* Growth per second of the sum of two numbers in a server's reports. */
static double growth_per_s(const json_t *begin, const json_t *end, const char *a, const char *b)
{
	double span_s = json_number_at(end, "uptime_s") - json_number_at(begin, "uptime_s");
	double grown = json_number_at(end, a) + json_number_at(end, b) - json_number_at(begin, a) -
		       json_number_at(begin, b);

	return grown / span_s;
}

/* The sum of growth_per_s over all servers: each server's growth is divided by the time between its own reports. */
static double server_growth_per_s(const struct step *s, const char *a, const char *b)
{
	double sum = 0;

	if (!s->n_targets)
		return growth_per_s(s->begin.server, s->end.server, a, b);
	for (uint32_t i = 0; i < s->n_targets; i++)
		sum += growth_per_s(s->targets[i].reports[STEP_REPORT_BEGIN], s->targets[i].reports[STEP_REPORT_END], a,
				    b);
	return sum;
}

double step_server_cpus(const struct step *s)
{
	return server_growth_per_s(s, "resources.cpu_user_s", "resources.cpu_system_s");
}

static double cpu_s_of(const json_t *report)
{
	return json_number_at(report, "resources.cpu_user_s") + json_number_at(report, "resources.cpu_system_s");
}

double step_connect_cpu_ns(const struct step *s, enum series_side side)
{
	double server_s = s->mark_lost ? NAN : cpu_s_of(s->held) - cpu_s_of(s->marked);
	double ns = side == SIDE_SERVER ? server_s * 1e9 : (double)s->connect_cpu_ns;

	return s->connected_peak && ns >= 0 ? ns / s->connected_peak : NAN;
}

static double per_op(const struct step *s, double per_s)
{
	return s->messages_per_s > 0 ? per_s / s->messages_per_s : NAN;
}

double step_cpu_per_op_ns(const struct step *s, enum series_side side)
{
	return per_op(s, 1e9 * (side == SIDE_SERVER ? step_server_cpus(s) : step_generator_cpus(s)));
}

double step_switches(const struct step *s, enum series_side side, bool voluntary)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;

	if (side == SIDE_SERVER)
		return step_server_delta(s, voluntary ? "resources.switches_voluntary" :
					 "resources.switches_involuntary");
	if (!step_has_usage(&s->begin) || !step_has_usage(&s->end))
		return NAN;
	return voluntary ? (double)(b->switches_voluntary - a->switches_voluntary) :
	       (double)(b->switches_involuntary - a->switches_involuntary);
}

double step_switches_per_op(const struct step *s, enum series_side side)
{
	if (side == SIDE_SERVER)
		return per_op(s, server_growth_per_s(s, "resources.switches_voluntary",
						     "resources.switches_involuntary"));
	return per_op(s, (step_switches(s, side, true) + step_switches(s, side, false)) / step_window_s(s));
}

/* The report from the end of measuring; without it, the one from before the workload. */
static const json_t *held_report(const struct step *s)
{
	return s->end.server ? s->end.server : s->held;
}

double step_rss_per_client(const struct step *s)
{
	return s->connected_held ? json_number_at(held_report(s), "resources.rss_bytes") / s->connected_held :
	       NAN;
}

double step_pinned_per_client(const struct step *s)
{
	return s->connected_held ? json_number_at(held_report(s), "resources.pinned_bytes") / s->connected_held :
	       NAN;
}

double step_kernel_per_client(const struct step *s)
{
	static const char path[] = "resources.machine_kernel_bytes";

	return s->connected_held ? (json_number_at(held_report(s), path) -
				    json_number_at(s->baseline, path)) / s->connected_held : NAN;
}

double step_head_of_line(const struct step *s, unsigned stream)
{
	return s->stream_took_ns[stream] > 0 ? s->stream_waited_ns[stream] / s->stream_took_ns[stream] : NAN;
}

double step_jain(const struct step_fairness *f)
{
	return f->squares > 0 ? f->sum * f->sum / ((double)f->clients * f->squares) : NAN;
}
