/* What one step measured: adding up, derived figures. See step.h and docs/results.md. */
#include "loadgen/step/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/rdma/pump.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/worker/pulse.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"

/* A step is steady if a straight line through its intervals rises or falls by no more than this over
 * the measured time. p99 of an interval rests on few samples, so it may move more. */
#define STEADY_THROUGHPUT 0.10
#define STEADY_P99 0.50
#define STEADY_INTERVALS_MIN 5
#define SATURATED_CPUS 0.95

const char *const step_pools_names[] = { "unknown", "restored", "not_restored" };

static int make_histograms(struct step *s)
{
	int ret = hist_new(&s->total);

	if (!ret)
		ret = hist_new(&s->response);
	if (!ret)
		ret = hist_new(&s->service);
	if (!ret)
		ret = hist_new(&s->lag);
	if (!ret)
		ret = hist_new(&s->away_ns);
	if (!ret)
		ret = hist_new(&s->outage_ns);
	for (int i = 0; i < STAGE_TIMED && !ret; i++)
		ret = hist_new(&s->stages[i]);
	for (int k = 0; k < HANDSHAKE_N && !ret; k++) {
		ret = hist_new(&s->kind_total[k]);
		for (int i = 0; i < STAGE_TIMED && !ret; i++)
			ret = hist_new(&s->kind_stages[k][i]);
	}
	return ret;
}

int step_new(uint32_t target, uint64_t bytes, uint32_t repetition, struct step **out)
{
	struct step *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->target = target;
	s->bytes = bytes;
	s->repetition = repetition;
	s->server_connected = -1;
	ret = make_histograms(s);
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
	for (int i = 0; i < STAGE_TIMED; i++)
		hist_free(s->stages[i]);
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			hist_free(s->kind_stages[k][i]);
		hist_free(s->kind_total[k]);
	}
	hist_free(s->total);
	hist_free(s->response);
	hist_free(s->service);
	hist_free(s->lag);
	hist_free(s->away_ns);
	hist_free(s->outage_ns);
	json_decref(s->begin.server);
	json_decref(s->end.server);
	json_decref(s->baseline);
	json_decref(s->held);
	json_decref(s->after);
	free(s);
}

/* Relative change over the whole range of a straight line through the intervals. Those without a p99 (too few samples)
 * do not count for it; 0 when fewer than STEADY_INTERVALS_MIN are left. */
static double drift(const struct step *s, bool p99)
{
	double t[STEP_INTERVALS_MAX], y[STEP_INTERVALS_MAX], change;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_intervals; i++) {
		t[n] = s->intervals[i].t_s;
		y[n] = p99 ? s->intervals[i].p99_ns : s->intervals[i].messages_per_s;
		n += !p99 || y[n] > 0;
	}
	if (n < STEADY_INTERVALS_MIN)
		return 0;
	change = stats_line(t, y, n).slope.value * (s->intervals[s->n_intervals - 1].t_s - s->intervals[0].t_s);
	change /= stats_mean(y, n).value;
	return isfinite(change) ? change : 0;
}

static bool is_steady(const struct step *s)
{
	return s->n_intervals >= STEADY_INTERVALS_MIN && fabs(drift(s, false)) <= STEADY_THROUGHPUT &&
	       fabs(drift(s, true)) <= STEADY_P99;
}

static void collect_fairness(struct step_fairness *f, const struct worker_stats *st)
{
	uint64_t n = counter_get(&st->fair_n), min = counter_get(&st->fair_min), max = counter_get(&st->fair_max);

	if (n == 0)
		return;
	f->min = f->clients == 0 || min < f->min ? min : f->min;
	f->max = max > f->max ? max : f->max;
	f->clients += n;
	f->sum += (double)counter_get(&st->fair_sum);
	f->squares += atomic_load((_Atomic double *)&st->fair_squares);
}

static void collect_worker(struct step *s, const struct worker_stats *st)
{
	uint64_t t0 = counter_get(&st->measure_start_ns), t1 = counter_get(&st->measure_end_ns);
	double messages = (double)counter_get(&st->messages_measured);

	/* A worker whose device failed did not say when its measured time ended. */
	if (t1 == 0 && s->generator_failed)
		t1 = s->end.now_ns;
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++) {
			hist_add(s->kind_stages[k][i], st->stages[k][i]);
			hist_add(s->stages[i], st->stages[k][i]);
		}
		hist_add(s->kind_total[k], st->total[k]);
		hist_add(s->total, st->total[k]);
	}
	hist_add(s->response, st->response);
	hist_add(s->service, st->service);
	hist_add(s->lag, st->lag);
	s->late += counter_get(&st->late);
	hist_add(s->away_ns, st->away_ns);
	hist_add(s->outage_ns, st->outage_ns);
	s->outages += counter_get(&st->outages);
	s->repeated += counter_get(&st->repeated);
	s->retries += counter_get(&st->retries);
	s->rails_dropped += counter_get(&st->rails_dropped);
	fail_table_add(&s->retried, &st->retried);
	s->cycles += counter_get(&st->cycles);
	s->cycles_failed += counter_get(&st->cycles_failed);
	collect_fairness(&s->fairness, st);
	s->attempted += (uint32_t)counter_get(&st->started);
	s->failed += (uint32_t)counter_get(&st->failed);
	s->dropped += (uint32_t)counter_get(&st->dropped);
	s->psn_verified += counter_get(&st->psn_verified);
	s->clock_late_ns = MAX(s->clock_late_ns, counter_get(&st->clock_late_ns));
	/* It measured less than the step was given. */
	if (s->begin.now_ns && t0 > s->begin.now_ns)
		s->clock_late_ns = MAX(s->clock_late_ns, t0 - s->begin.now_ns);
	s->reply_stall_ns = MAX(s->reply_stall_ns, counter_get(&st->reply_stall_ns));
	s->checked += counter_get(&st->checked);
	s->corrupt += counter_get(&st->corrupt);
	fail_table_add(&s->failures, &st->failures);
	if (t0 == 0 || t1 <= t0)
		return;
	/* Each worker's rate over its own window: they start and stop a little apart. */
	s->measured = true;
	s->messages_per_s += messages / ((double)(t1 - t0) / 1e9);
	s->bytes_per_s = s->messages_per_s * (double)s->bytes;
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++)
		s->stream_per_s[i] += (double)counter_get(&st->stream_measured[i]) / ((double)(t1 - t0) / 1e9);
	s->sends_per_s += (double)counter_get(&st->sends_measured) / ((double)(t1 - t0) / 1e9);
	if ((double)(t1 - t0) / 1e9 > s->measured_s)
		s->measured_s = (double)(t1 - t0) / 1e9;
}

void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg)
{
	double window_s = (double)(s->end.now_ns - s->begin.now_ns) / 1e9;

	for (uint32_t i = 0; i < n_workers; i++)
		collect_worker(s, worker_stats(workers[i]));
	s->connected_held = MIN(s->connected_held, s->target - MIN(s->failed + s->dropped, s->target));
	s->steady = s->measured && (cfg->wl->idle || is_steady(s));
	for (uint32_t i = 0; i < n_workers && s->measured && window_s > 0 && cfg->poll == POLL_EVENT; i++)
		if ((double)(s->end.worker_cpu_ns[i] - s->begin.worker_cpu_ns[i]) / 1e9 / window_s >
		    SATURATED_CPUS)
			s->generator_saturated = true;
}

static void count_failures(struct step *s, enum stage stage, int err, uint64_t n)
{
	struct fail f = { .stage = stage, .kind = FAIL_ERRNO, .code = err };

	while (n--)
		fail_table_count(&s->failures, &f);
}

void step_count_gone(struct step *s, const struct worker_stats *st)
{
	uint64_t held = counter_get(&st->live) + counter_get(&st->away);
	uint64_t known = held + counter_get(&st->failed) + counter_get(&st->dropped), started = counter_get(&st->started);
	/* What is not known may have left in order; and who is on its way may be away, and so among the known. */
	uint64_t unknown = started - MIN(known, started);
	uint64_t coming = MIN(unknown, counter_get(&st->connecting) + counter_get(&st->parked) + counter_get(&st->waiting));

	s->dropped += (uint32_t)held;
	count_failures(s, STAGE_TRAFFIC, ENODEV, held);
	s->failed += (uint32_t)coming;
	count_failures(s, STAGE_RDMA_CONNECT, ENODEV, coming);
}

bool step_has_hole(const struct step *s)
{
	return s->clock_late_ns > PULSE_HOLE_NS;
}

bool step_is_stalled(const struct step *s)
{
	return s->reply_stall_ns > MAX(STEP_STALL_NS, STEP_STALL_MEDIANS * hist_percentile(s->response, 50));
}

uint32_t step_active(const struct step *s, const struct loadgen_config *cfg)
{
	if (cfg->wl->idle)
		return 0;
	return cfg->active && cfg->active < s->connected_held ? (uint32_t)cfg->active : s->connected_held;
}

double step_littles_residual(const struct step *s, const struct loadgen_config *cfg)
{
	double population = (double)step_active(s, cfg) * (double)cfg->inflight * cfg->wl->streams;

	if (!s->measured || population <= 0 || cfg->churn_per_s || s->outages || loadgen_is_open_loop(cfg) || hist_count(s->response) == 0)
		return NAN;
	return 1 - s->messages_per_s * hist_mean(s->response) / 1e9 / population;
}

double step_window_s(const struct step *s)
{
	return s->measured ? (double)(s->end.now_ns - s->begin.now_ns) / 1e9 : NAN;
}

/* A moment that could not be read is all zero: reading takes a descriptor, and they may be used up. */
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

	return step_span_s(known, a->cpu_user_ns + a->cpu_system_ns, b->cpu_user_ns + b->cpu_system_ns) / step_window_s(s);
}

double step_server_delta(const struct step *s, const char *path)
{
	return json_number_at(s->end.server, path) - json_number_at(s->begin.server, path);
}

double step_server_cpus(const struct step *s)
{
	double span = step_server_delta(s, "uptime_s");

	return (step_server_delta(s, "resources.cpu_user_s") + step_server_delta(s, "resources.cpu_system_s")) / span;
}

/* The report at the measurement's end, else the one before it. */
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

double step_jain(const struct step *s)
{
	const struct step_fairness *f = &s->fairness;

	return f->squares > 0 ? f->sum * f->sum / ((double)f->clients * f->squares) : NAN;
}
