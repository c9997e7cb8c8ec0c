/* SPDX-License-Identifier: BSD-2-Clause */
/* See metrics.h. */
#include "server/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/version.h"
#include "common/hist/hist.h"
#include "common/host/res.h"
#include "common/metrics/exposition.h"
#include "common/port/figures.h"
#include "common/port/port.h"
#include "server/certificates.h"
#include "server/report.h"

#define BUCKETS 17

/* Metrics whose values are taken from STATS (docs/protocol.md, "Reports"). */
static const struct metric rows[] = {
#define ROW(suffix, kind, text, ...) \
	{ .name = "rampart_server_" suffix, .type = METRIC_##kind, .help = text, __VA_ARGS__ }
#define MORE(suffix, kind, ...) { .name = "rampart_server_" suffix, .type = METRIC_##kind, __VA_ARGS__ }
	ROW("uptime_seconds", GAUGE, "Time since the server started", .path = "uptime_s"),
	ROW("clients", GAUGE, "Clients by state: connected, in the TLS bootstrap, closing, or control session",
	    .path = "clients.connected", .labels = "state=\"connected\""),
	MORE("clients", GAUGE, .path = "clients.handshakes", .labels = "state=\"handshake\""),
	MORE("clients", GAUGE, .path = "clients.closing", .labels = "state=\"closing\""),
	MORE("clients", GAUGE, .path = "clients.control", .labels = "state=\"control\""),
	ROW("clients_peak", GAUGE, "Most clients connected at once since the start (sum of the shards' peaks)",
	    .path = "clients.connected_peak"),
	ROW("clients_admitted", GAUGE, "Clients that were granted or are connected, which --max-clients limits",
	    .path = "pools.admitted"),
	ROW("sessions", GAUGE, "Grants that wait for their connection", .path = "pools.sessions"),
	ROW("tcp_accepted", COUNTER, "TCP connections accepted on the TLS port", .path = "events.tcp_accepted"),
	ROW("tls_shared", COUNTER, "Further connections announced on the TLS connection of an earlier one",
	    .path = "events.tls_shared"),
	ROW("tls_handshakes", COUNTER, "TLS handshakes completed",
	    .path = "events.handshakes_full", .labels = "kind=\"full\""),
	MORE("tls_handshakes", COUNTER, .path = "events.handshakes_resumed", .labels = "kind=\"resumed\""),
	ROW("tls_tickets", COUNTER, "TLS session tickets sent", .path = "events.tickets"),
	ROW("grants", COUNTER, "Clients that got a grant", .path = "events.granted"),
	ROW("connections", COUNTER, "Clients that connected", .path = "events.established"),
	ROW("refusals", COUNTER, "Clients refused, by reason (docs/protocol.md)", .path = "events.refused",
	    .label = "code"),
	ROW("closes", COUNTER, "Connections closed, by reason", .path = "events.closed", .label = "reason"),
	ROW("failures", COUNTER, "Connections that failed, by stage and code", .path = "failures",
	    .label = "stage,code", .member = "count"),
	ROW("messages", COUNTER, "Messages", .path = "events.messages_in", .labels = "direction=\"in\""),
	MORE("messages", COUNTER, .path = "events.messages_out", .labels = "direction=\"out\""),
	ROW("message_bytes", COUNTER, "Bytes of messages with their headers",
	    .path = "events.bytes_in", .labels = "direction=\"in\""),
	MORE("message_bytes", COUNTER, .path = "events.bytes_out", .labels = "direction=\"out\""),
	ROW("messages_checked", COUNTER, "Messages whose checksum was verified, right or wrong",
	    .path = "events.messages_checked"),
	ROW("messages_corrupt", COUNTER, "Messages whose checksum was wrong", .path = "events.messages_corrupt"),
	ROW("probes", COUNTER, "Probes sent to silent clients", .path = "events.probes"),
	ROW("receive_shortfalls", COUNTER, "Times that fewer receives were posted than clients have credits for",
	    .path = "events.receive_shortfalls"),
	ROW("psns_in_use", GAUGE, "Packet sequence numbers in use by connections", .path = "pools.psns_in_use"),
	ROW("psn_conflicts", COUNTER, "Packet sequence numbers proposed by clients that were already in use",
	    .path = "events.psn_conflicts"),
	ROW("psn_redraws", COUNTER, "Packet sequence numbers that the server drew again because they were in use",
	    .path = "events.psn_redraws"),
	ROW("psn_verified", COUNTER, "Connections whose packet sequence numbers were read back as agreed (--verify)",
	    .path = "events.psn_verified"),
	ROW("psn_mismatches", COUNTER, "Connections whose packet sequence numbers were read back other than agreed",
	    .path = "events.psn_mismatches"),
	ROW("queue_pairs", GAUGE, "Queue pairs by state: in use, free in the pool, or in quarantine",
	    .path = "pools.qp.in_use", .labels = "state=\"in_use\""),
	MORE("queue_pairs", GAUGE, .path = "pools.qp.free", .labels = "state=\"free\""),
	MORE("queue_pairs", GAUGE, .path = "pools.qp.quarantined", .labels = "state=\"quarantined\""),
	ROW("queue_pairs_in_use_peak", GAUGE, "Most queue pairs in use at once (sum of the shards' peaks)",
	    .path = "pools.qp.in_use_peak"),
	ROW("queue_pair_requests", COUNTER, "Requests for queue pairs: free (hit), made (miss), none left (exhausted)",
	    .path = "pools.qp.hits", .labels = "result=\"hit\""),
	MORE("queue_pair_requests", COUNTER, .path = "pools.qp.misses", .labels = "result=\"miss\""),
	MORE("queue_pair_requests", COUNTER, .path = "pools.qp.exhausted", .labels = "result=\"exhausted\""),
	ROW("queue_pairs_recycled", COUNTER, "Queue pairs back from quarantine", .path = "pools.qp.recycled"),
	ROW("receives_posted", GAUGE, "Receives posted in the shared receive queues", .path = "pools.buffers.posted"),
	ROW("buffers", GAUGE, "Message buffers", .path = "pools.buffers.total"),
	ROW("buffers_free", GAUGE, "Message buffers that are free", .path = "pools.buffers.free"),
	ROW("regions_in_use", GAUGE, "One-sided regions that clients have", .path = "pools.regions_in_use"),
	ROW("completion_queues", GAUGE, "Completion queues", .path = "resources.cqs"),
	ROW("memory_regions", GAUGE, "Registered memory regions", .path = "resources.mrs"),
	ROW("pinned_bytes", GAUGE, "Registered memory", .path = "resources.pinned_bytes"),
	ROW("work_requests", COUNTER, "Work requests posted", .path = "effective.requests"),
	ROW("doorbells", COUNTER, "Doorbells rung", .path = "effective.doorbells"),
	ROW("completions", COUNTER, "Completions polled", .path = "effective.completions"),
	ROW("polls", COUNTER, "Polls of completion queues", .path = "effective.polls"),
	ROW("empty_polls", COUNTER, "Polls that found no completion", .path = "effective.empty_polls"),
	ROW("device_events", COUNTER, "Asynchronous events of RDMA devices", .path = "events.device",
	    .label = "event"),
	ROW("shard_clients", GAUGE, "Clients connected to a shard", .path = "shards", .label = "shard",
	    .member = "connected"),
	ROW("cpu_seconds", COUNTER, "CPU time of the server's threads",
	    .path = "resources.cpu_user_s", .labels = "mode=\"user\""),
	MORE("cpu_seconds", COUNTER, .path = "resources.cpu_system_s", .labels = "mode=\"system\""),
	ROW("resident_bytes", GAUGE, "Resident memory", .path = "resources.rss_bytes"),
	ROW("heap_bytes", GAUGE, "Memory that is allocated and not freed", .path = "resources.heap_bytes"),
	ROW("open_fds", GAUGE, "Open descriptors", .path = "resources.fds"),
	ROW("threads", GAUGE, "Threads", .path = "resources.threads"),
	ROW("network_bytes", COUNTER, "Bytes over RDMA, TCP and TLS connections, without network headers",
	    .path = "resources.net_bytes"),
	ROW("certificate_reloads", COUNTER, "Times that certificates were read again, by result",
	    .path = "certificates.reloads", .labels = "result=\"used\""),
	MORE("certificate_reloads", COUNTER, .path = "certificates.failed_reloads", .labels = "result=\"failed\""),
	ROW("machine_cpu_seconds", COUNTER, "CPU time of the machine, busy and idle",
	    .path = "resources.machine_cpu_s"),
	ROW("machine_steal_seconds", COUNTER, "CPU time that the hypervisor gave to other guests",
	    .path = "resources.machine_steal_s"),
	ROW("throttled_seconds", COUNTER, "Time for which the control group was throttled",
	    .path = "resources.cgroup_throttled_s"),
	ROW("machine_available_bytes", GAUGE, "Memory that the server may still use",
	    .path = "resources.machine_available_bytes"),
#undef ROW
#undef MORE
};

static void add_build(struct exposition *x)
{
	char label[128];

	exposition_family(x, "rampart_server_build_info", METRIC_GAUGE, "Version of the server; the value is 1");
	exposition_sample(x, exposition_label("version", RAMPART_VERSION, label, sizeof(label)), 1);
}

static void add_limits(struct exposition *x, const struct server_config *c)
{
	exposition_family(x, "rampart_server_clients_max", METRIC_GAUGE,
			  "Maximum number of clients (--max-clients, for each rail)");
	exposition_sample(x, NULL, (double)(c->max_clients * c->n_rails));
	exposition_family(x, "rampart_server_receives_max", METRIC_GAUGE,
			  "Messages that all clients together may have in flight (depth of the receive queues)");
	exposition_sample(x, NULL, (double)((uint64_t)c->recv_depth * server_config_shards(c)));
	exposition_family(x, "rampart_server_client_credits_max", METRIC_GAUGE,
			  "Messages that one client may have in flight (--credits)");
	exposition_sample(x, NULL, (double)c->credits);
}

static double unix_time(int64_t seconds)
{
	return seconds == INT64_MAX ? NAN : (double)seconds;
}

static void add_expiry(struct exposition *x, const struct certificates *c)
{
	int64_t certificate = INT64_MAX, list = INT64_MAX;

	certificates_dates(c, &certificate, &list);
	exposition_family(x, "rampart_server_certificate_expiry_timestamp_seconds", METRIC_GAUGE,
			  "When the first certificate of the server's chain, or revocation list, expires");
	exposition_sample(x, "file=\"cert\"", unix_time(certificate));
	exposition_sample(x, "file=\"crl\"", unix_time(list));
}

/* Buckets count cells of our histograms, whose width is 0.1 % of the value. */
static void add_stages(struct exposition *x, const struct server *server)
{
	double bounds[BUCKETS];
	uint64_t counts[BUCKETS];
	char label[64];

	for (int i = 0; i < BUCKETS; i++)
		bounds[i] = (double[]){ 1, 2.5, 5 }[i % 3] * pow(10, i / 3 - 5);
	exposition_family(x, "rampart_server_stage_seconds", METRIC_HISTOGRAM,
			  "Time of a connection's stages (docs/results.md)");
	for (int stage = 0; stage < SS_N; stage++) {
		struct hist *h = report_stage(server, stage);

		for (int i = 0; h && i < BUCKETS; i++)
			counts[i] = hist_count_between(h, 0, (uint64_t)(bounds[i] * 1e9));
		if (h)
			exposition_histogram(x, exposition_label("stage", server_stage_names[stage], label,
								 sizeof(label)),
					     bounds, counts, BUCKETS, hist_count(h),
					     hist_mean(h) * (double)hist_count(h) / 1e9);
		hist_free(h);
	}
}

static void add_lags(struct exposition *x, const struct server *server)
{
	double bounds[STATS_LAGS];
	char label[32];

	for (int i = 0; i < STATS_LAGS; i++)
		bounds[i] = (double)stats_lag_bounds_ns[i] / 1e9;
	exposition_family(x, "rampart_server_loop_lag_seconds", METRIC_HISTOGRAM,
			  "How late a shard's event loop ran a timer of 10 ms");
	for (uint32_t i = 0; i < server->n_shards; i++) {
		const struct stats *s = &server->shards[i]->stats;
		uint64_t counts[STATS_LAGS], n = 0;

		for (int k = 0; k < STATS_LAGS; k++)
			counts[k] = n += counter_get(&s->loop_lags[k]);
		snprintf(label, sizeof(label), "shard=\"%u\"", i);
		exposition_histogram(x, label, bounds, counts, STATS_LAGS, n + counter_get(&s->loop_lags[STATS_LAGS]),
				     (double)counter_get(&s->loop_lag_ns) / 1e9);
	}
}

static void add_threads(struct exposition *x, const struct server *server)
{
	char label[32];
	uint64_t ns;

	exposition_family(x, "rampart_server_shard_cpu_seconds", METRIC_COUNTER, "CPU time of a shard's thread");
	for (uint32_t i = 0; i < server->n_shards; i++) {
		snprintf(label, sizeof(label), "shard=\"%u\"", i);
		if (!res_thread_cpu(counter_get(&server->shards[i]->stats.effective.tid), &ns))
			exposition_sample(x, label, (double)ns / 1e9);
	}
}

static void add_ports(struct exposition *x, const struct server *server)
{
	json_t *readings = port_read_all(server->ports, server->n_ports), *port;
	char name[64], labels[128];
	size_t i;

	for (size_t f = 0; f < PORT_FIGURES; f++) {
		snprintf(name, sizeof(name), "rampart_server_port_%s", port_figures[f].name);
		exposition_family(x, name, METRIC_COUNTER, port_figures[f].help);
		json_array_foreach(json_object_get(readings, "ports"), i, port) {
			exposition_label("device", json_text_at(port, "device"), labels, sizeof(labels));
			exposition_sample(x, labels, port_figure_value(&port_figures[f],
								       json_object_get(port, "counters")));
		}
	}
	json_decref(readings);
}

char *metrics_text(void *arg, bool openmetrics, size_t *len)
{
	const struct server *server = arg;
	struct exposition *x;
	json_t *counts;

	counts = report_counts(server);
	if (!counts || exposition_new(openmetrics, &x)) {
		json_decref(counts);
		return NULL;
	}
	add_build(x);
	add_limits(x, server->cfg);
	exposition_add(x, rows, sizeof(rows) / sizeof(rows[0]), counts);
	add_expiry(x, server->certificates);
	add_stages(x, server);
	add_lags(x, server);
	add_threads(x, server);
	add_ports(x, server);
	json_decref(counts);
	return exposition_end(x, len);
}
