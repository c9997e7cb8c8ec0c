/* What one step measured: adding up, derived figures, JSON. See step.h and docs/results.md. */
#include "loadgen/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hist.h"
#include "common/latency_json.h"
#include "common/pump.h"
#include "loadgen/worker.h"

/* A step is steady if a straight line through its intervals rises or falls by no more than this over
 * the measured time. p99 of an interval rests on few samples, so it may move more. */
#define STEADY_THROUGHPUT 0.10
#define STEADY_P99 0.50
#define STEADY_INTERVALS_MIN 5
#define SATURATED_CPUS 0.95

int step_new(uint32_t target, uint32_t repetition, struct step **out)
{
	struct step *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->target = target;
	s->repetition = repetition;
	s->server_connected = -1;
	ret = hist_new(&s->total);
	if (!ret)
		ret = hist_new(&s->response);
	for (int i = 0; i < STAGE_TIMED && !ret; i++)
		ret = hist_new(&s->stages[i]);
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
	hist_free(s->total);
	hist_free(s->response);
	json_decref(s->begin.server);
	json_decref(s->end.server);
	json_decref(s->after);
	free(s);
}

/* Relative change over the whole range of a least-squares line through (t, y). Intervals without a
 * p99 (too few samples) do not count for it; 0 when fewer than STEADY_INTERVALS_MIN are left. */
static double drift(const struct step *s, bool p99)
{
	double n = 0, st = 0, sy = 0, stt = 0, sty = 0, slope, span;

	for (uint32_t i = 0; i < s->n_intervals; i++) {
		double t = s->intervals[i].t_s;
		double y = p99 ? s->intervals[i].p99_ns : s->intervals[i].messages_per_s;

		if (p99 && y <= 0)
			continue;
		n++;
		st += t;
		sy += y;
		stt += t * t;
		sty += t * y;
	}
	if (n < STEADY_INTERVALS_MIN || n * stt - st * st <= 0 || sy <= 0)
		return 0;
	slope = (n * sty - st * sy) / (n * stt - st * st);
	span = s->intervals[s->n_intervals - 1].t_s - s->intervals[0].t_s;
	return slope * span / (sy / n);
}

static bool is_steady(const struct step *s)
{
	return s->n_intervals >= STEADY_INTERVALS_MIN && fabs(drift(s, false)) <= STEADY_THROUGHPUT &&
	       fabs(drift(s, true)) <= STEADY_P99;
}

static void collect_worker(struct step *s, const struct worker_stats *st, const struct loadgen_config *cfg)
{
	uint64_t t0 = counter_get(&st->measure_start_ns), t1 = counter_get(&st->measure_end_ns);
	double messages = (double)counter_get(&st->messages_measured);

	for (int i = 0; i < STAGE_TIMED; i++)
		hist_add(s->stages[i], st->stages[i]);
	hist_add(s->total, st->total);
	hist_add(s->response, st->response);
	s->attempted += (uint32_t)counter_get(&st->started);
	s->failed += (uint32_t)counter_get(&st->failed);
	s->dropped += (uint32_t)counter_get(&st->dropped);
	s->psn_verified += counter_get(&st->psn_verified);
	fail_table_add(&s->failures, &st->failures);
	if (t0 == 0 || t1 <= t0)
		return;
	/* Each worker's rate over its own window: they start and stop a little apart. */
	s->measured = true;
	s->messages_per_s += messages / ((double)(t1 - t0) / 1e9);
	s->bytes_per_s = s->messages_per_s * (double)cfg->message_bytes;
	if ((double)(t1 - t0) / 1e9 > s->measured_s)
		s->measured_s = (double)(t1 - t0) / 1e9;
}

void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg)
{
	double window_s = (double)(s->end.now_ns - s->begin.now_ns) / 1e9;

	for (uint32_t i = 0; i < n_workers; i++)
		collect_worker(s, worker_stats(workers[i]), cfg);
	s->steady = s->measured && is_steady(s);
	for (uint32_t i = 0; i < n_workers && s->measured && window_s > 0 && cfg->poll == POLL_EVENT; i++)
		if ((double)(s->end.worker_cpu_ns[i] - s->begin.worker_cpu_ns[i]) / 1e9 / window_s >
		    SATURATED_CPUS)
			s->generator_saturated = true;
}

double step_littles_residual(const struct step *s, const struct loadgen_config *cfg)
{
	double population = (double)s->connected_held * (double)cfg->inflight;

	if (!s->measured || population <= 0 || hist_count(s->response) == 0)
		return NAN;
	return 1 - s->messages_per_s * hist_mean(s->response) / 1e9 / population;
}

static double window_s(const struct step *s)
{
	return s->measured ? (double)(s->end.now_ns - s->begin.now_ns) / 1e9 : NAN;
}

/* A moment that could not be read is all zero: reading takes a descriptor, and they may be used up. */
static bool has_usage(const struct step_moment *m)
{
	return m->generator.rss_bytes > 0;
}

static double span_s(bool known, uint64_t begin_ns, uint64_t end_ns)
{
	return known ? (double)(end_ns - begin_ns) / 1e9 : NAN;
}

double step_generator_cpus(const struct step *s)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;
	bool known = has_usage(&s->begin) && has_usage(&s->end);

	return span_s(known, a->cpu_user_ns + a->cpu_system_ns, b->cpu_user_ns + b->cpu_system_ns) / window_s(s);
}

double step_report_number(const json_t *report, const char *path)
{
	char key[64];
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		size_t n = (size_t)(dot - path);

		if (n >= sizeof(key))
			return NAN;
		memcpy(key, path, n);
		key[n] = '\0';
		report = json_object_get(report, key);
		path = dot + 1;
	}
	report = json_object_get(report, path);
	return json_is_number(report) ? json_number_value(report) : NAN;
}

static double server_delta(const struct step *s, const char *path)
{
	return step_report_number(s->end.server, path) - step_report_number(s->begin.server, path);
}

double step_server_cpus(const struct step *s)
{
	double span = server_delta(s, "uptime_s");

	return (server_delta(s, "resources.cpu_user_s") + server_delta(s, "resources.cpu_system_s")) / span;
}

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *whole(double v)
{
	return isfinite(v) ? json_integer((json_int_t)llround(v)) : json_null();
}

static json_t *server_resources(const struct step *s)
{
	static const char *const gauges[] = { "rss_bytes", "fds", "threads", "qps", "cqs", "mrs", "pinned_bytes" };
	json_t *o = json_object();
	char path[64];

	json_object_set_new(o, "cpu_user_s", number(server_delta(s, "resources.cpu_user_s")));
	json_object_set_new(o, "cpu_system_s", number(server_delta(s, "resources.cpu_system_s")));
	json_object_set_new(o, "window_s", number(server_delta(s, "uptime_s")));
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		snprintf(path, sizeof(path), "resources.%s", gauges[i]);
		json_object_set_new(o, gauges[i], whole(step_report_number(s->end.server, path)));
	}
	json_object_set_new(o, "net_bytes", whole(server_delta(s, "resources.net_bytes")));
	json_object_set_new(o, "net_bytes_per_s", number(server_delta(s, "resources.net_bytes") /
							 server_delta(s, "uptime_s")));
	return o;
}

static json_t *gauge(const struct step *s, uint64_t v)
{
	return has_usage(&s->end) ? json_integer((json_int_t)v) : json_null();
}

static json_t *generator_resources(const struct step *s, struct worker *const *workers, uint32_t n)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;
	uint64_t qps = 0, cqs = 0, mrs = 0, pinned = 0;
	double bytes = s->measured ? (double)(s->end.net_bytes - s->begin.net_bytes) : NAN;
	bool known = has_usage(&s->begin) && has_usage(&s->end);

	for (uint32_t i = 0; i < n; i++) {
		const struct worker_stats *st = worker_stats(workers[i]);

		qps += counter_get(&st->qps);
		cqs += counter_get(&st->cqs);
		mrs += counter_get(&st->mrs);
		pinned += counter_get(&st->pinned_bytes);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o}",
			 "cpu_user_s", number(span_s(known, a->cpu_user_ns, b->cpu_user_ns)),
			 "cpu_system_s", number(span_s(known, a->cpu_system_ns, b->cpu_system_ns)),
			 "window_s", number(window_s(s)), "rss_bytes", gauge(s, b->rss_bytes), "fds",
			 gauge(s, b->fds), "threads", gauge(s, b->threads), "qps", (json_int_t)qps,
			 "cqs", (json_int_t)cqs, "mrs", (json_int_t)mrs, "pinned_bytes", (json_int_t)pinned,
			 "net_bytes", whole(bytes), "net_bytes_per_s", number(bytes / window_s(s)));
}

static json_t *machine_resources(const struct step *s)
{
	const struct res_machine_cpu *a = &s->begin.machine, *b = &s->end.machine;
	bool known = a->busy_ns > 0 && b->busy_ns > 0;

	return json_pack("{s:o, s:o, s:o, s:o}", "busy_s", number(span_s(known, a->busy_ns, b->busy_ns)),
			 "softirq_s", number(span_s(known, a->softirq_ns, b->softirq_ns)), "idle_s",
			 number(span_s(known, a->idle_ns, b->idle_ns)), "window_s", number(window_s(s)));
}

static json_t *validity(const struct step *s, const struct loadgen_config *cfg)
{
	json_t *a = json_array();

	if (s->measured && !s->steady)
		json_array_append_new(a, json_string("not_steady"));
	if (s->generator_saturated)
		json_array_append_new(a, json_string("generator_saturated"));
	if (s->step_timeout)
		json_array_append_new(a, json_string("step_timeout"));
	if (s->stuck)
		json_array_append_new(a, json_string("replies_missing"));
	if (s->leaked)
		json_array_append_new(a, json_string("server_pools_not_restored"));
	if (!s->measured)
		json_array_append_new(a, json_string("not_measured"));
	if (fabs(step_littles_residual(s, cfg)) > 0.05)
		json_array_append_new(a, json_string("littles_law_violated"));
	if (s->server_connected >= 0 && s->server_connected != (int64_t)s->connected_peak)
		json_array_append_new(a, json_string("server_counts_differ"));
	if (!cfg->server)
		json_array_append_new(a, json_string("server_and_generator_share_the_machine"));
	return a;
}

static json_t *connect_json(const struct step *s)
{
	json_t *o = json_object();

	for (int i = 0; i < STAGE_TIMED; i++)
		json_object_set_new(o, stage_names[i], latency_json(s->stages[i]));
	json_object_set_new(o, "total", latency_json(s->total));
	return o;
}

static json_t *intervals_json(const struct step *s)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < s->n_intervals; i++)
		json_array_append_new(a, json_pack("{s:f, s:f, s:o}", "t_s", s->intervals[i].t_s,
			"messages_per_s", s->intervals[i].messages_per_s, "p99_ns",
			s->intervals[i].p99_ns > 0 ? whole(s->intervals[i].p99_ns) : json_null()));
	return a;
}

json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers)
{
	json_t *stages = json_object_get(s->end.server ? s->end.server : s->after, "stages_ns");
	json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:f, s:b}",
		"target_clients", s->target, "repetition", s->repetition, "attempted", s->attempted,
		"connected_peak", s->connected_peak, "connected_held", s->connected_held, "failed", s->failed,
		"dropped", s->dropped, "server_connected",
		s->server_connected < 0 ? json_null() : json_integer(s->server_connected),
		"connect_wall_s", (double)s->connect_wall_ns / 1e9, "steady", s->steady);

	json_object_set_new(o, "connect_ns", connect_json(s));
	json_object_set(o, "server_stages_ns", stages ? stages : json_null());
	json_object_set_new(o, "response_ns", latency_json(s->response));
	/* Closed loop: a message is due when it is sent, so both are the same measurement. */
	json_object_set_new(o, "service_ns", latency_json(s->response));
	json_object_set_new(o, "schedule_lag_ns", json_null());
	json_object_set_new(o, "measured_s", number(s->measured ? s->measured_s : NAN));
	json_object_set_new(o, "throughput_msgs_per_s", number(s->measured ? s->messages_per_s : NAN));
	json_object_set_new(o, "throughput_bytes_per_s", number(s->measured ? s->bytes_per_s : NAN));
	json_object_set_new(o, "intervals", intervals_json(s));
	json_object_set_new(o, "resources", json_pack("{s:o, s:o, s:o}", "server", server_resources(s),
		"generator", generator_resources(s, workers, n_workers), "machine", machine_resources(s)));
	json_object_set_new(o, "psn_verified", json_integer((json_int_t)s->psn_verified));
	json_object_set(o, "server_after", s->after ? s->after : json_null());
	json_object_set_new(o, "failures", fail_table_json(&s->failures));
	json_object_set_new(o, "littles_law_residual", number(step_littles_residual(s, cfg)));
	json_object_set_new(o, "validity", validity(s, cfg));
	return o;
}
