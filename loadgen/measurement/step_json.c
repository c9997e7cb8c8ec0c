/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the results of one step as JSON (docs/results.md). See step.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/hist/latency_json.h"
#include "loadgen/measurement/network.h"
#include "loadgen/measurement/connect_json.h"
#include "loadgen/measurement/rates.h"
#include "loadgen/analysis/validity.h"
#include "loadgen/measurement/step.h"
#include "loadgen/striping/stripe.h"

static bool has_messages(const struct step *s, const struct loadgen_config *cfg)
{
	return s->measured && !cfg->wl->idle;
}

/* Adds the figures that both sides have. Takes over `o` and returns it. */
static json_t *with_work(json_t *o, const struct step *s, enum series_side side)
{
	json_object_set_new(o, "switches_voluntary", json_whole(step_switches(s, side, true)));
	json_object_set_new(o, "switches_involuntary", json_whole(step_switches(s, side, false)));
	json_object_set_new(o, "cpu_ns_per_op", json_number(step_cpu_per_op_ns(s, side)));
	json_object_set_new(o, "switches_per_op", json_number(step_switches_per_op(s, side)));
	json_object_set_new(o, "peak", series_peak_json(&s->peak[side]));
	return o;
}

/* Adds the bytes that the side's ports sent and received; `network` is the side's object of `network`. */
static void add_net_bytes(json_t *o, const json_t *network)
{
	double bytes = json_number_at(network, "bytes_out") + json_number_at(network, "bytes_in");

	json_object_set_new(o, "net_bytes", json_whole(bytes));
	json_object_set_new(o, "net_bytes_per_s", json_number(bytes / json_number_at(network, "window_s")));
}

/* The server does not see the clients' READs and WRITEs, so their bytes come from the generator's counters. */
static double server_payload(const struct step *s)
{
	double one_sided = s->measured ? (double)(s->end.one_sided_bytes - s->begin.one_sided_bytes) : NAN;

	return step_server_delta(s, "resources.net_bytes") + one_sided;
}

static json_t *server_resources(const struct step *s, const json_t *network)
{
	json_t *o = step_server_resources(s->begin.server, s->end.server);

	json_object_set_new(o, "cpus", json_number(step_server_cpus(s)));
	json_object_set_new(o, "payload_bytes", json_whole(server_payload(s)));
	add_net_bytes(o, network);
	return o;
}

static json_t *gauge(const struct step *s, uint64_t v)
{
	return step_has_usage(&s->end) ? json_integer((json_int_t)v) : json_null();
}

static json_t *generator_resources(const struct step *s, const json_t *network)
{
	const struct res_usage *a = &s->begin.generator, *b = &s->end.generator;
	double bytes = s->measured ? (double)(s->end.payload_bytes - s->begin.payload_bytes) : NAN;
	bool known = step_has_usage(&s->begin) && step_has_usage(&s->end);
	json_t *o;

	o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o}",
			 "cpu_user_s", json_number(step_span_s(known, a->cpu_user_ns, b->cpu_user_ns)),
			 "cpu_system_s", json_number(step_span_s(known, a->cpu_system_ns, b->cpu_system_ns)),
			 "window_s", json_number(step_window_s(s)), "rss_bytes", gauge(s, b->rss_bytes), "fds",
			 gauge(s, b->fds), "threads", gauge(s, b->threads), "qps", (json_int_t)s->qps,
			 "cqs", (json_int_t)s->cqs, "mrs", (json_int_t)s->mrs, "pinned_bytes",
			 (json_int_t)s->pinned_bytes, "payload_bytes", json_whole(bytes));
	step_add_lost(o, step_lost_here(s));
	add_net_bytes(o, network);
	return o;
}

static json_t *machine_resources(const struct step *s)
{
	const struct res_machine_cpu *a = &s->begin.machine, *b = &s->end.machine;
	bool known = a->busy_ns > 0 && b->busy_ns > 0;

	return json_pack("{s:o, s:o, s:o, s:o}", "busy_s", json_number(step_span_s(known, a->busy_ns, b->busy_ns)),
			 "softirq_s", json_number(step_span_s(known, a->softirq_ns, b->softirq_ns)), "idle_s",
			 json_number(step_span_s(known, a->idle_ns, b->idle_ns)), "window_s",
			 json_number(step_window_s(s)));
}

static json_t *validity_json(const struct step *s, const struct loadgen_config *cfg)
{
	json_t *a = json_array();

#define X(name, condition, badge, meaning) \
	if (condition) \
		json_array_append_new(a, json_string(#name));
	VALIDITY_ROWS(X)
#undef X
	return a;
}

/* Connection times of one kind of TLS handshake; null if no handshake was of this kind. */
static json_t *kind_json(const struct step *s, enum handshake_kind kind)
{
	return hist_count(s->hists.total[kind]) ? connect_json(s->hists.stages[kind], s->hists.total[kind], NULL) :
		json_null();
}

/* Wall time of each phase divided by the number of connections attempted. */
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
	json_t *recycle = s->mark_lost || s->n_targets ? NULL : json_at(s->end.server, "stages_ns.qp_recycle");

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:O}", "rate_target_per_s", (json_int_t)cfg->churn_per_s,
		"cycles_per_s", json_number(s->measured_s > 0 ? (double)s->cycles / s->measured_s : NAN),
		"away_ns", latency_json(s->hists.away_ns), "qp_pool_hits", json_whole(hits), "qp_pool_misses",
		json_whole(misses), "qp_pool_hit_ratio", json_number(hits / (hits + misses)),
		"qp_pool_exhausted", json_whole(step_server_delta(s, "pools.qp.exhausted")),
		"qp_recycle_ns", recycle ? recycle : json_null());
}

static json_t *outages_json(const struct step *s)
{
	return json_pack("{s:I, s:o}", "ended", (json_int_t)hist_count(s->hists.outage_ns), "outage_ns",
			 latency_json(s->hists.outage_ns));
}

static json_t *fairness_json(const struct step *s, const struct step_fairness *f)
{
	if (f->clients == 0 || s->measured_s <= 0)
		return json_null();
	return json_pack("{s:I, s:o, s:o, s:o}", "clients", (json_int_t)f->clients, "jain_index",
			 json_number(step_jain(f)), "slowest_msgs_per_s", json_number((double)f->min / s->measured_s),
			 "fastest_msgs_per_s", json_number((double)f->max / s->measured_s));
}

/* The mean times of single queue pairs; null unless clients have several. */
static json_t *queue_pairs_json(const struct step *s, const struct loadgen_config *cfg)
{
	const struct step_fairness *f = &s->qp_times;

	if (cfg->qps < 2 || !f->clients)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:I, s:I}", "per_client", (json_int_t)cfg->qps, "measured",
			 (json_int_t)f->clients, "mean_ns", json_number(f->sum / (double)f->clients),
			 "fastest_mean_ns", (json_int_t)f->min, "slowest_mean_ns", (json_int_t)f->max);
}

static json_t *kind_figures(const struct step *s, const struct workload *wl, unsigned kind)
{
	double bytes = wl->kind_bytes[kind] ? wl->kind_bytes[kind] : (double)s->bytes;

	return json_pack("{s:f, s:f, s:o}", "msgs_per_s", s->kind_per_s[kind], "bytes_per_s",
			 s->kind_per_s[kind] * bytes, "response_ns", latency_json(s->hists.kind_response[kind]));
}

/* Figures of each direction of a workload with two; null for other workloads. */
static json_t *streams_json(const struct step *s, const struct loadgen_config *cfg)
{
	const struct workload *wl = cfg->wl;
	json_t *o;

	if (wl->streams < 2 || !s->measured)
		return json_null();
	o = json_object();
	for (unsigned i = 0; i < wl->streams; i++) {
		json_t *stream = kind_figures(s, wl, i);

		json_object_set_new(stream, "fairness", fairness_json(s, &s->stream_fairness[i]));
		json_object_set_new(stream, "head_of_line_ratio", json_number(step_head_of_line(s, i)));
		json_object_set_new(o, wl->kind_names[i], stream);
	}
	return o;
}

/* Figures of each kind of operation, for a workload whose stream mixes several; null for other workloads. */
static json_t *kinds_json(const struct step *s, const struct loadgen_config *cfg)
{
	const struct workload *wl = cfg->wl;
	json_t *o;

	if (!wl->kind_of || !s->measured)
		return json_null();
	o = json_object();
	for (unsigned i = 0; i < WORKLOAD_KINDS_MAX && wl->kind_names[i]; i++)
		json_object_set_new(o, wl->kind_names[i], kind_figures(s, wl, i));
	return o;
}

/* Half of each round-trip time. Null in the open loop, where the response time includes waiting since the due time. */
static json_t *one_way_json(const struct step *s, const struct loadgen_config *cfg)
{
	json_t *o, *v;
	const char *key;
	void *next;

	if (!cfg->wl->round_trip || !s->measured || loadgen_is_open_loop(cfg))
		return json_null();
	o = latency_json(s->hists.response);
	json_object_foreach_safe(o, next, key, v) {
		if (strcmp(key, "count") == 0 || strcmp(key, "jitter") == 0)
			continue;
		if (json_is_integer(v))
			json_integer_set(v, json_integer_value(v) / 2);
		else if (json_is_real(v))
			json_real_set(v, json_real_value(v) / 2);
	}
	return o;
}

/* How many rails operations of this size are striped over; null if the workload does not stripe. */
static json_t *rails_json(const struct step *s, const struct loadgen_config *cfg)
{
	if (!cfg->wl->plan)
		return json_null();
	return json_pack("{s:i, s:i}", "available", cfg->n_rails, "used",
			 stripe_rails(s->bytes, cfg->n_rails, cfg->stripe_min_bytes));
}

static json_t *verified_json(const struct step *s, const struct loadgen_config *cfg)
{
	if (!cfg->verify)
		return json_null();
	return json_pack("{s:o, s:o}", "server_checked", json_whole(step_server_delta(s, "events.messages_checked")),
			 "server_corrupt", json_whole(step_server_delta(s, "events.messages_corrupt")));
}

static json_t *psns_json(const struct step *s, const struct loadgen_config *cfg)
{
	if (cfg->transport != TRANSPORT_RDMA)
		return json_null();
	return json_pack("{s:I, s:o, s:o, s:o}", "distinct",
			 (json_int_t)(s->psns_exchanged - MIN(s->psns_shared, s->psns_exchanged)),
			 "server_redrawn", json_whole(step_server_since_mark(s, "events.psn_redraws")),
			 "server_verified", json_whole(step_server_since_mark(s, "events.psn_verified")),
			 "server_mismatches", json_whole(step_server_since_mark(s, "events.psn_mismatches")));
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

	for (uint32_t i = 0; i < s->intervals.n; i++) {
		const struct interval *v = &s->intervals.v[i];

		json_array_append_new(a, json_pack("{s:f, s:f, s:o}", "t_s", v->t_s, "messages_per_s",
						   v->messages_per_s, "p99_ns", json_whole(interval_p99_ns(v))));
	}
	return a;
}

/* The generator's side of `network`; with several hosts, their sum. */
static json_t *generator_network(const struct step *s, bool connecting)
{
	if (s->hosts.n)
		return json_incref(connecting ? s->hosts.connecting : s->hosts.network);
	return connecting ? network_side_json(s->network_marked, s->network_connected, s->loopback) :
	       network_side_json(s->begin.network, s->end.network, s->loopback);
}

/* The port counters in a server's report; NULL with several servers, whose ports may be those of one machine. */
static const json_t *ports_in(const struct step *s, const json_t *report)
{
	return s->n_targets ? NULL : json_at(report, "network");
}

static json_t *network_json(const struct step *s)
{
	return json_pack("{s:o, s:o, s:{s:o, s:o}}", "server", network_side_json(ports_in(s, s->begin.server),
			 ports_in(s, s->end.server), s->loopback), "generator", generator_network(s, false),
			 "connecting", "server",
			 network_side_json(ports_in(s, s->marked), ports_in(s, s->held), s->loopback),
			 "generator", generator_network(s, true));
}

static json_t *messages_total_json(const struct step *s)
{
	return json_pack("{s:I, s:o}", "generator", (json_int_t)s->messages_all, "server",
			 json_whole(step_server_since_mark(s, "events.messages_in")));
}

/* Adds which of several hosts were saturated, and how far apart they started to measure. */
static void add_hosts(json_t *o, const struct step *s)
{
	json_t *saturated = json_array();

	for (uint32_t i = 0; i < STEP_HOSTS_MAX; i++)
		if (s->hosts.saturated[i / 8] & 1 << i % 8)
			json_array_append_new(saturated, json_integer(i));
	json_object_set_new(o, "saturated_hosts", saturated);
	json_object_set_new(o, "hosts_skew", s->hosts.max_skew_ns ?
		json_pack("{s:I, s:I}", "start_skew_ns", (json_int_t)s->hosts.start_skew_ns, "limit_ns",
			  (json_int_t)s->hosts.max_skew_ns) : json_null());
}

/* The drift that decides whether the step was steady; null without intervals. */
static json_t *drift_json(const struct step *s)
{
	struct estimate throughput = intervals_drift(&s->intervals, false), p99 = intervals_drift(&s->intervals, true);

	if (s->intervals.n == 0)
		return json_null();
	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "intervals", (int)s->intervals.n,
			 "throughput_ratio", json_number(throughput.value),
			 "throughput_error_ratio", json_number((throughput.high - throughput.low) / 2),
			 "p99_ratio", json_number(p99.value), "p99_error_ratio", json_number((p99.high - p99.low) / 2));
}

static json_t *follow_up_json(const struct step *s)
{
	if (s->follow_up.tried == 0)
		return json_null();
	return json_pack("{s:i, s:i}", "tried", (int)s->follow_up.tried, "connected", (int)s->follow_up.connected);
}

/* Sets the number at `path` of `o` (a.b: b of the object a), unless the object above it is null or there is no path. */
static void set_at(json_t *o, const char *path, uint64_t value)
{
	const char *dot = strchr(path, '.');
	char parent[32];

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		o = json_object_get(o, parent);
		path = dot + 1;
	}
	if (*path && json_is_object(o))
		json_object_set_new(o, path, json_integer((json_int_t)value));
}

static void add_counters(json_t *o, const struct step *s)
{
#define X(type, name, rule, path) set_at(o, path, s->name);
	STEP_COUNTERS(X)
#undef X
}

json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers)
{
	/* Percentiles of several servers cannot be added; each server's are in `servers`. */
	json_t *stages = s->mark_lost || s->n_targets ? NULL :
			 json_object_get(s->end.server ? s->end.server : s->after, "stages_ns");
	json_t *network = network_json(s);
	json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:o, s:f, s:o}",
		"target_clients", s->target, "repetition", s->repetition, "connected_peak", s->connected_peak,
		"connected_held", s->connected_held, "server_connected",
		s->server_connected < 0 ? json_null() : json_integer(s->server_connected),
		"connect_wall_s", (double)s->connect_wall_ns / 1e9, "steady",
		s->too_short || !s->measured ? json_null() : json_boolean(s->steady));

	json_object_set_new(o, "connect_cpu_ns_per_client", json_pack("{s:o, s:o}",
		"server", json_number(step_connect_cpu_ns(s, SIDE_SERVER)),
		"generator", json_number(step_connect_cpu_ns(s, SIDE_GENERATOR))));
	json_object_set_new(o, "drift", drift_json(s));
	json_object_set_new(o, "connect_ns", connect_json(s->stages, s->total, s->hists.psn_generate));
	json_object_set_new(o, "connect_longest", connect_longest_json(s->stages, s->total));
	json_object_set_new(o, "connect_full_ns", kind_json(s, HANDSHAKE_FULL));
	json_object_set_new(o, "connect_resumed_ns", kind_json(s, HANDSHAKE_RESUMED));
	json_object_set_new(o, "handshakes", json_pack("{s:I, s:I}",
		"full", (json_int_t)hist_count(s->hists.total[HANDSHAKE_FULL]),
		"resumed", (json_int_t)hist_count(s->hists.total[HANDSHAKE_RESUMED])));
	json_object_set_new(o, "phase_ns_per_connection", cfg->phased ? phases_json(s) : json_null());
	json_object_set_new(o, "retried", fail_table_json(&s->retried));
	json_object_set_new(o, "rates", rates_json(s));
	json_object_set_new(o, "churn", cfg->churn_per_s ? churn_json(s, cfg) : json_null());
	json_object_set_new(o, "outages", cfg->reconnect_ns ? outages_json(s) : json_null());
	json_object_set_new(o, "active", json_integer(step_active(s, cfg)));
	json_object_set_new(o, "fairness", fairness_json(s, &s->fairness));
	json_object_set_new(o, "memory", memory_json(s));
	json_object_set(o, "server_stages_ns", stages ? stages : json_null());
	json_object_set_new(o, "response_ns", latency_json(s->hists.response));
	json_object_set_new(o, "offered_per_s", json_number(s->offered_per_s > 0 ? s->offered_per_s : NAN));
	json_object_set_new(o, "one_way_ns", one_way_json(s, cfg));
	/* In the closed loop a message is due when it is sent, so service and response time are the same. */
	json_object_set_new(o, "service_ns", latency_json(loadgen_is_open_loop(cfg) ? s->hists.service :
							  s->hists.response));
	json_object_set_new(o, "schedule_lag_ns", loadgen_is_open_loop(cfg) ? latency_json(s->hists.lag) : json_null());
	json_object_set_new(o, "sent_late", loadgen_is_open_loop(cfg) ? json_integer((json_int_t)s->late) :
			    json_null());
	json_object_set_new(o, "measured_s", json_number(s->measured ? s->measured_s : NAN));
	json_object_set_new(o, "throughput_msgs_per_s", json_number(has_messages(s, cfg) ? s->messages_per_s : NAN));
	json_object_set_new(o, "throughput_bytes_per_s", json_number(has_messages(s, cfg) ? s->bytes_per_s : NAN));
	json_object_set_new(o, "sends_per_s", json_number(has_messages(s, cfg) && cfg->wl->joins ? s->sends_per_s :
							  NAN));
	json_object_set_new(o, "message_bytes", json_integer((json_int_t)s->bytes));
	json_object_set_new(o, "streams", streams_json(s, cfg));
	json_object_set_new(o, "kinds", kinds_json(s, cfg));
	json_object_set_new(o, "rails", rails_json(s, cfg));
	json_object_set_new(o, "queue_pairs", queue_pairs_json(s, cfg));
	json_object_set_new(o, "verified", verified_json(s, cfg));
	json_object_set_new(o, "intervals", intervals_json(s));
	json_object_set_new(o, "resources", json_pack("{s:o, s:o, s:o}", "server",
		with_work(server_resources(s, json_object_get(network, "server")), s, SIDE_SERVER), "generator",
		with_work(generator_resources(s, json_object_get(network, "generator")), s, SIDE_GENERATOR),
		"machine", machine_resources(s)));
	json_object_set_new(o, "network", network);
	json_object_set_new(o, "effective", step_effective_json(s, workers, n_workers));
	json_object_set_new(o, "messages_total", messages_total_json(s));
	json_object_set_new(o, "psns", psns_json(s, cfg));
	json_object_set_new(o, "psn_verified", cfg->transport == TRANSPORT_RDMA ?
			    json_integer((json_int_t)s->psn_verified) : json_null());
	/* With several servers, `servers` has the reports of each. */
	json_object_set(o, "server_before", s->baseline && !s->n_targets ? s->baseline : json_null());
	json_object_set(o, "server_after", s->after && !s->n_targets ? s->after : json_null());
	json_object_set_new(o, "server_pools", json_string(step_pools_names[s->pools]));
	json_object_set_new(o, "follow_up", follow_up_json(s));
	if (s->n_targets)
		json_object_set_new(o, "servers", step_targets_json(s, cfg));
	json_object_set_new(o, "failures", fail_table_json(&s->failures));
	json_object_set_new(o, "littles_law_residual", json_number(step_littles_residual(s, cfg)));
	json_object_set_new(o, "validity", validity_json(s, cfg));
	add_counters(o, s);
	if (s->hosts.n)
		add_hosts(o, s);
	return o;
}
