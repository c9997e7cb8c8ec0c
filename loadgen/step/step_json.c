/* What one step measured, as JSON: docs/results.md. See step.h. */
#include <math.h>
#include <stdio.h>

#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/hist/latency_json.h"
#include "loadgen/step/step.h"
#include "loadgen/transfer/stripe.h"

static bool has_messages(const struct step *s, const struct loadgen_config *cfg)
{
	return s->measured && !cfg->wl->idle;
}

static json_t *server_resources(const struct step *s)
{
	static const char *const gauges[] = { "rss_bytes", "fds", "threads", "qps", "cqs", "mrs", "pinned_bytes",
		"machine_kernel_bytes" };
	json_t *o = json_object();
	char path[64];

	json_object_set_new(o, "cpu_user_s", json_number(step_server_delta(s, "resources.cpu_user_s")));
	json_object_set_new(o, "cpu_system_s", json_number(step_server_delta(s, "resources.cpu_system_s")));
	json_object_set_new(o, "window_s", json_number(step_server_delta(s, "uptime_s")));
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		snprintf(path, sizeof(path), "resources.%s", gauges[i]);
		json_object_set_new(o, gauges[i], json_whole(json_number_at(s->end.server, path)));
	}
	json_object_set_new(o, "net_bytes", json_whole(step_server_delta(s, "resources.net_bytes")));
	json_object_set_new(o, "net_bytes_per_s", json_number(step_server_delta(s, "resources.net_bytes") /
							 step_server_delta(s, "uptime_s")));
	return o;
}

static json_t *gauge(const struct step *s, uint64_t v)
{
	return step_has_usage(&s->end) ? json_integer((json_int_t)v) : json_null();
}

static json_t *generator_resources(const struct step *s, struct worker *const *workers, uint32_t n)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;
	uint64_t qps = 0, cqs = 0, mrs = 0, pinned = 0;
	double bytes = s->measured ? (double)(s->end.net_bytes - s->begin.net_bytes) : NAN;
	bool known = step_has_usage(&s->begin) && step_has_usage(&s->end);

	for (uint32_t i = 0; i < n; i++) {
		const struct worker_stats *st = worker_stats(workers[i]);

		qps += counter_get(&st->qps);
		cqs += counter_get(&st->cqs);
		mrs += counter_get(&st->mrs);
		pinned += counter_get(&st->pinned_bytes);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o}",
			 "cpu_user_s", json_number(step_span_s(known, a->cpu_user_ns, b->cpu_user_ns)),
			 "cpu_system_s", json_number(step_span_s(known, a->cpu_system_ns, b->cpu_system_ns)),
			 "window_s", json_number(step_window_s(s)), "rss_bytes", gauge(s, b->rss_bytes), "fds",
			 gauge(s, b->fds), "threads", gauge(s, b->threads), "qps", (json_int_t)qps,
			 "cqs", (json_int_t)cqs, "mrs", (json_int_t)mrs, "pinned_bytes", (json_int_t)pinned,
			 "net_bytes", json_whole(bytes), "net_bytes_per_s", json_number(bytes / step_window_s(s)));
}

static json_t *machine_resources(const struct step *s)
{
	const struct res_machine_cpu *a = &s->begin.machine, *b = &s->end.machine;
	bool known = a->busy_ns > 0 && b->busy_ns > 0;

	return json_pack("{s:o, s:o, s:o, s:o}", "busy_s", json_number(step_span_s(known, a->busy_ns, b->busy_ns)),
			 "softirq_s", json_number(step_span_s(known, a->softirq_ns, b->softirq_ns)), "idle_s",
			 json_number(step_span_s(known, a->idle_ns, b->idle_ns)), "window_s", json_number(step_window_s(s)));
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
	if (s->replies_missing)
		json_array_append_new(a, json_string("replies_missing"));
	if (step_has_hole(s))
		json_array_append_new(a, json_string("clock_hole"));
	if (step_is_stalled(s))
		json_array_append_new(a, json_string("replies_stalled"));
	if (s->pools == POOLS_NOT_RESTORED)
		json_array_append_new(a, json_string("server_pools_not_restored"));
	if (s->pools == POOLS_UNKNOWN)
		json_array_append_new(a, json_string("server_pools_unknown"));
	if (!s->measured)
		json_array_append_new(a, json_string("not_measured"));
	if (fabs(step_littles_residual(s, cfg)) > 0.05)
		json_array_append_new(a, json_string("littles_law_violated"));
	if (cfg->churn_per_s)
		json_array_append_new(a, json_string("clients_come_and_go"));
	if (s->outages)
		json_array_append_new(a, json_string("outages"));
	/* With several rails it counts connections, and there may be several servers. */
	if (cfg->n_rails < 2 && s->server_connected >= 0 && s->server_connected != (int64_t)s->connected_peak)
		json_array_append_new(a, json_string("server_counts_differ"));
	if (s->rails_dropped)
		json_array_append_new(a, json_string("rails_dropped"));
	if (!cfg->server)
		json_array_append_new(a, json_string("server_and_generator_share_the_machine"));
	return a;
}

static json_t *connect_json(struct hist *const *stages, const struct hist *total)
{
	json_t *o = json_object();

	for (int i = 0; i < STAGE_TIMED; i++)
		json_object_set_new(o, stage_names[i], latency_json(stages[i]));
	json_object_set_new(o, "total", latency_json(total));
	return o;
}

/* By kind of TLS handshake; null for a kind that did not happen. */
static json_t *kind_json(const struct step *s, enum handshake_kind kind)
{
	return hist_count(s->kind_total[kind]) ? connect_json(s->kind_stages[kind], s->kind_total[kind]) : json_null();
}

/* Wall time of each phase over the connections attempted in it. */
static json_t *phases_json(const struct step *s)
{
	json_t *o = json_object();

	for (int i = 0; i < STAGE_TIMED; i++)
		if (s->phase_ns[i] && s->attempted)
			json_object_set_new(o, stage_names[i],
					    json_real((double)s->phase_ns[i] / (double)s->attempted));
	return o;
}

static json_t *churn_json(const struct step *s, const struct loadgen_config *cfg)
{
	double hits = step_server_delta(s, "pools.qp.hits"), misses = step_server_delta(s, "pools.qp.misses");
	json_t *recycle = s->mark_lost ? NULL : json_at(s->end.server, "stages_ns.qp_recycle");

	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:O}",
		"rate_target_per_s", (json_int_t)cfg->churn_per_s, "cycles", (json_int_t)s->cycles,
		"cycles_failed", (json_int_t)s->cycles_failed,
		"cycles_per_s", json_number(s->measured_s > 0 ? (double)s->cycles / s->measured_s : NAN),
		"away_ns", latency_json(s->away_ns), "qp_pool_hits", json_whole(hits), "qp_pool_misses", json_whole(misses),
		"qp_pool_hit_ratio", json_number(hits / (hits + misses)),
		"qp_pool_exhausted", json_whole(step_server_delta(s, "pools.qp.exhausted")),
		"qp_recycle_ns", recycle ? recycle : json_null());
}

static json_t *outages_json(const struct step *s)
{
	return json_pack("{s:I, s:I, s:I, s:o}", "lost", (json_int_t)s->outages, "ended",
			 (json_int_t)hist_count(s->outage_ns), "repeated", (json_int_t)s->repeated, "outage_ns",
			 latency_json(s->outage_ns));
}

static json_t *fairness_json(const struct step *s)
{
	const struct step_fairness *f = &s->fairness;

	if (f->clients == 0 || s->measured_s <= 0)
		return json_null();
	return json_pack("{s:I, s:o, s:o, s:o}", "clients", (json_int_t)f->clients, "jain_index",
			 json_number(step_jain(s)), "slowest_msgs_per_s", json_number((double)f->min / s->measured_s),
			 "fastest_msgs_per_s", json_number((double)f->max / s->measured_s));
}

/* Each direction of a workload that has two; null for the others. */
static json_t *streams_json(const struct step *s, const struct loadgen_config *cfg)
{
	const struct workload *wl = cfg->wl;
	json_t *o;

	if (wl->streams < 2 || !s->measured)
		return json_null();
	o = json_object();
	for (unsigned i = 0; i < wl->streams; i++)
		json_object_set_new(o, wl->stream_names[i], json_pack("{s:f, s:f}", "msgs_per_s", s->stream_per_s[i],
			"bytes_per_s", s->stream_per_s[i] * (double)s->bytes));
	return o;
}

/* How operations of this size are striped; null where the workload does not stripe. */
static json_t *rails_json(const struct step *s, const struct loadgen_config *cfg)
{
	if (!cfg->wl->plan)
		return json_null();
	return json_pack("{s:i, s:i, s:I}", "available", cfg->n_rails, "used", stripe_rails(s->bytes, cfg->n_rails),
			 "dropped", (json_int_t)s->rails_dropped);
}

static json_t *verified_json(const struct step *s, const struct loadgen_config *cfg)
{
	if (!cfg->verify)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:o}", "checked", (json_int_t)s->checked, "corrupt", (json_int_t)s->corrupt,
			 "server_checked", json_whole(step_server_delta(s, "events.messages_checked")),
			 "server_corrupt", json_whole(step_server_delta(s, "events.messages_corrupt")));
}

static json_t *memory_json(const struct step *s)
{
	return json_pack("{s:o, s:o, s:o}", "server_rss_bytes_per_client", json_number(step_rss_per_client(s)),
			 "server_pinned_bytes_per_client", json_number(step_pinned_per_client(s)),
			 "machine_kernel_bytes_per_client", json_number(step_kernel_per_client(s)));
}

static json_t *intervals_json(const struct step *s)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < s->n_intervals; i++)
		json_array_append_new(a, json_pack("{s:f, s:f, s:o}", "t_s", s->intervals[i].t_s,
			"messages_per_s", s->intervals[i].messages_per_s, "p99_ns",
			s->intervals[i].p99_ns > 0 ? json_whole(s->intervals[i].p99_ns) : json_null()));
	return a;
}

json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers)
{
	json_t *stages = s->mark_lost ? NULL :
			 json_object_get(s->end.server ? s->end.server : s->after, "stages_ns");
	json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:f, s:b}",
		"target_clients", s->target, "repetition", s->repetition, "attempted", s->attempted,
		"connected_peak", s->connected_peak, "connected_held", s->connected_held, "failed", s->failed,
		"dropped", s->dropped, "server_connected",
		s->server_connected < 0 ? json_null() : json_integer(s->server_connected),
		"connect_wall_s", (double)s->connect_wall_ns / 1e9, "steady", s->steady);

	json_object_set_new(o, "connect_ns", connect_json(s->stages, s->total));
	json_object_set_new(o, "connect_full_ns", kind_json(s, HANDSHAKE_FULL));
	json_object_set_new(o, "connect_resumed_ns", kind_json(s, HANDSHAKE_RESUMED));
	json_object_set_new(o, "handshakes", json_pack("{s:I, s:I}",
		"full", (json_int_t)hist_count(s->kind_total[HANDSHAKE_FULL]),
		"resumed", (json_int_t)hist_count(s->kind_total[HANDSHAKE_RESUMED])));
	json_object_set_new(o, "phase_ns_per_connection", cfg->phased ? phases_json(s) : json_null());
	json_object_set_new(o, "retries", json_integer((json_int_t)s->retries));
	json_object_set_new(o, "retried", fail_table_json(&s->retried));
	json_object_set_new(o, "churn", cfg->churn_per_s ? churn_json(s, cfg) : json_null());
	json_object_set_new(o, "outages", cfg->reconnect_ns ? outages_json(s) : json_null());
	json_object_set_new(o, "active", json_integer(step_active(s, cfg)));
	json_object_set_new(o, "fairness", fairness_json(s));
	json_object_set_new(o, "memory", memory_json(s));
	json_object_set(o, "server_stages_ns", stages ? stages : json_null());
	json_object_set_new(o, "response_ns", latency_json(s->response));
	/* Closed loop: a message is due when it is sent, so both are the same measurement. */
	json_object_set_new(o, "service_ns", latency_json(loadgen_is_open_loop(cfg) ? s->service : s->response));
	json_object_set_new(o, "schedule_lag_ns", loadgen_is_open_loop(cfg) ? latency_json(s->lag) : json_null());
	json_object_set_new(o, "sent_late", loadgen_is_open_loop(cfg) ? json_integer((json_int_t)s->late) : json_null());
	json_object_set_new(o, "measured_s", json_number(s->measured ? s->measured_s : NAN));
	json_object_set_new(o, "throughput_msgs_per_s", json_number(has_messages(s, cfg) ? s->messages_per_s : NAN));
	json_object_set_new(o, "throughput_bytes_per_s", json_number(has_messages(s, cfg) ? s->bytes_per_s : NAN));
	json_object_set_new(o, "sends_per_s", json_number(has_messages(s, cfg) && cfg->wl->joins ? s->sends_per_s : NAN));
	json_object_set_new(o, "message_bytes", json_integer((json_int_t)s->bytes));
	json_object_set_new(o, "streams", streams_json(s, cfg));
	json_object_set_new(o, "rails", rails_json(s, cfg));
	json_object_set_new(o, "verified", verified_json(s, cfg));
	json_object_set_new(o, "intervals", intervals_json(s));
	json_object_set_new(o, "resources", json_pack("{s:o, s:o, s:o}", "server", server_resources(s),
		"generator", generator_resources(s, workers, n_workers), "machine", machine_resources(s)));
	json_object_set_new(o, "psn_verified", json_integer((json_int_t)s->psn_verified));
	json_object_set(o, "server_before", s->baseline ? s->baseline : json_null());
	json_object_set(o, "server_after", s->after ? s->after : json_null());
	json_object_set_new(o, "clock_late_ns", json_integer((json_int_t)s->clock_late_ns));
	json_object_set_new(o, "reply_stall_ns", json_integer((json_int_t)s->reply_stall_ns));
	json_object_set_new(o, "server_pools", json_string(step_pools_names[s->pools]));
	json_object_set_new(o, "failures", fail_table_json(&s->failures));
	json_object_set_new(o, "littles_law_residual", json_number(step_littles_residual(s, cfg)));
	json_object_set_new(o, "validity", validity(s, cfg));
	return o;
}
