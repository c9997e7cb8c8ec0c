/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports on the whole server. See report.h. */
#include "server/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "common/hist/latency_json.h"
#include "common/port/port.h"
#include "common/rdma/async.h"
#include "common/wire/psn.h"
#include "common/host/cgroup.h"
#include "common/host/res.h"
#include "server/certificates.h"

uint64_t report_sum(const struct server *server, size_t offset)
{
	uint64_t total = counter_get((const counter *)((const char *)&server->control_stats + offset));

	for (uint32_t i = 0; i < server->n_shards; i++)
		total += counter_get((const counter *)((const char *)&server->shards[i]->stats + offset));
	return total;
}

/* A number in a report: one counter, summed over all shards and control sessions. */
struct sum {
	const char *name;
	size_t offset;	/* in struct stats */
};
#define NAMED(name, field) { name, offsetof(struct stats, field) }
#define SUM(field) NAMED(#field, field)

static const struct sum client_sums[] = {
	SUM(connected), SUM(handshakes), SUM(closing), NAMED("control", controls), SUM(connected_peak),
};
static const struct sum event_sums[] = {
	SUM(tcp_accepted), SUM(tls_shared), SUM(granted), SUM(established), SUM(handshakes_full),
	SUM(handshakes_resumed), SUM(tickets),
	SUM(messages_in), SUM(messages_out), SUM(bytes_in), SUM(bytes_out), SUM(messages_checked),
	SUM(messages_corrupt), SUM(probes), SUM(psn_verified), SUM(psn_mismatches), SUM(psn_conflicts),
	SUM(psn_redraws), SUM(receive_shortfalls),
};
static const struct sum qp_sums[] = {
	NAMED("exist", qps), NAMED("free", qps_free), NAMED("in_use", qps_in_use),
	NAMED("in_use_peak", qps_in_use_peak),
	NAMED("quarantined", qps_quarantined), NAMED("hits", qp_hits), NAMED("misses", qp_misses),
	NAMED("exhausted", qp_exhausted), NAMED("recycled", qp_recycled),
};
static const struct sum buffer_sums[] = {
	NAMED("posted", bufs_posted), NAMED("free", bufs_free), NAMED("total", bufs_total),
};
static const struct sum resource_sums[] = { SUM(qps), SUM(cqs), SUM(mrs), SUM(pinned_bytes) };
static const struct sum traffic_sums[] = { SUM(bytes_in), SUM(bytes_out), SUM(tls_bytes_in), SUM(tls_bytes_out) };

static void set_int(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

static json_t *sums_json(const struct server *server, const struct sum *sums, size_t n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		set_int(o, sums[i].name, report_sum(server, sums[i].offset));
	return o;
}
#define SUMS_JSON(server, sums) sums_json(server, sums, sizeof(sums) / sizeof((sums)[0]))

static json_t *refusals_json(const struct server *server)
{
	json_t *o = json_object();

	for (uint32_t code = 0; code < STATS_REFUSE_MAX; code++) {
		uint64_t n = report_sum(server, offsetof(struct stats, refused) + code * sizeof(counter));

		if (n)
			set_int(o, refuse_code_name(code), n);
	}
	return o;
}

static json_t *closed_json(const struct server *server)
{
	json_t *o = json_object();

	for (int i = 0; i < CLOSE_N; i++)
		set_int(o, close_reason_names[i],
			report_sum(server, offsetof(struct stats, closed) + (size_t)i * sizeof(counter)));
	return o;
}

static json_t *failures_json(const struct server *server)
{
	struct fail_table *all = calloc(1, sizeof(*all));
	json_t *o;

	if (all)
		fail_table_add(all, &server->control_stats.failures);
	for (uint32_t i = 0; all && i < server->n_shards; i++)
		fail_table_add(all, &server->shards[i]->stats.failures);
	o = all ? fail_table_json(all) : json_array();
	free(all);
	return o;
}

#define MARK_STAGE_BYTES 1024u	/* JSON objects of a packed histogram, besides its cells */

/* The histograms are packed, because an unpacked one takes 224 KiB, mostly zeros. */
struct report_mark {
	json_t *stages[SS_N];
	size_t bytes;
};

struct hist *report_stage(const struct server *server, int stage)
{
	struct hist *h;

	if (hist_new(&h))
		return NULL;
	for (uint32_t i = 0; i < server->n_shards; i++)
		hist_add(h, server->shards[i]->stats.stages[stage]);
	return h;
}

/* The samples that were recorded after the mark, as a new histogram. NULL when out of memory. */
static struct hist *since_mark(const struct hist *now, const json_t *marked)
{
	struct hist *earlier = NULL, *diff = NULL;
	bool fine = !hist_new(&earlier) && !hist_new(&diff) && (json_is_null(marked) || !hist_unpack(marked, earlier));

	if (fine)
		hist_diff(diff, now, earlier);
	hist_free(earlier);
	if (fine)
		return diff;
	hist_free(diff);
	return NULL;
}

static json_t *stage_json(const struct server *server, const struct report_mark *mark, int stage)
{
	struct hist *now = report_stage(server, stage);
	struct hist *diff = now && mark ? since_mark(now, mark->stages[stage]) : NULL;
	const struct hist *shown = mark ? diff : now;
	json_t *o = shown ? latency_json(shown) : json_null();

	hist_free(diff);
	hist_free(now);
	return o;
}

static json_t *int_or_null(bool known, uint64_t v)
{
	return known ? json_integer((json_int_t)v) : json_null();
}

/* Adds the machine's CPU time, the part that a hypervisor took, and how long our control group was throttled. */
static void add_cpu_time(json_t *o)
{
	struct res_machine_cpu cpu;
	struct cgroup group;
	bool known = res_machine_cpu(&cpu) == 0;

	cgroup_find("", &group);
	json_object_set_new(o, "machine_cpu_s", json_number(known ? (double)(cpu.busy_ns + cpu.idle_ns) / 1e9 : NAN));
	json_object_set_new(o, "machine_steal_s", json_number(known ? (double)cpu.steal_ns / 1e9 : NAN));
	json_object_set_new(o, "cgroup_throttled_s", json_number(cgroup_now(&group, CGROUP_THROTTLED_S)));
}

static json_t *resources_json(const struct server *server)
{
	json_t *o = SUMS_JSON(server, resource_sums);
	uint64_t kernel_bytes = 0, available_bytes = 0, net_bytes = 0, heap_bytes = 0;
	struct res_usage u = { 0 };
	/* Reading the usage needs a descriptor, so it fails if none is free. */
	bool known = res_usage_self(&u) == 0;

	json_object_set_new(o, "cpu_user_s", known ? json_real((double)u.cpu_user_ns / 1e9) : json_null());
	json_object_set_new(o, "cpu_system_s", known ? json_real((double)u.cpu_system_ns / 1e9) : json_null());
	json_object_set_new(o, "switches_voluntary", int_or_null(known, u.switches_voluntary));
	json_object_set_new(o, "switches_involuntary", int_or_null(known, u.switches_involuntary));
	json_object_set_new(o, "rss_bytes", int_or_null(known, u.rss_bytes));
	json_object_set_new(o, "fds", int_or_null(known, u.fds));
	json_object_set_new(o, "threads", int_or_null(known, u.threads));
	known = res_heap_bytes(&heap_bytes) == 0;
	json_object_set_new(o, "heap_bytes", int_or_null(known, heap_bytes));
	for (size_t i = 0; i < sizeof(traffic_sums) / sizeof(traffic_sums[0]); i++)
		net_bytes += report_sum(server, traffic_sums[i].offset);
	set_int(o, "net_bytes", net_bytes);
	known = res_machine_kernel_bytes(&kernel_bytes) == 0;
	json_object_set_new(o, "machine_kernel_bytes", int_or_null(known, kernel_bytes));
	known = res_machine_available_bytes(&available_bytes) == 0;
	json_object_set_new(o, "machine_available_bytes", int_or_null(known, available_bytes));
	add_cpu_time(o);
	return o;
}

static json_t *pools_json(const struct server *server)
{
	json_t *o = json_object();
	uint64_t admitted = 0;

	for (uint32_t i = 0; i < server->cfg->n_rails; i++)
		admitted += atomic_load_explicit(&((struct server *)server)->admitted[i], memory_order_relaxed);
	json_object_set_new(o, "qp", SUMS_JSON(server, qp_sums));
	json_object_set_new(o, "buffers", SUMS_JSON(server, buffer_sums));
	set_int(o, "psns_in_use", psn_in_use(server->psns));
	set_int(o, "sessions", report_sum(server, offsetof(struct stats, sessions)));
	set_int(o, "regions_in_use", report_sum(server, offsetof(struct stats, regions_in_use)));
	set_int(o, "admitted", admitted);
	return o;
}

/* Shows how the kernel spread the clients over the shards. */
static json_t *shards_json(const struct server *server)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < server->n_shards; i++) {
		const struct stats *s = &server->shards[i]->stats;
		json_t *o = json_object();

		set_int(o, "connected", counter_get(&s->connected));
		set_int(o, "handshakes_full", counter_get(&s->handshakes_full));
		set_int(o, "handshakes_resumed", counter_get(&s->handshakes_resumed));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *events_json(const struct server *server)
{
	json_t *o = SUMS_JSON(server, event_sums);

	json_object_set_new(o, "refused", refusals_json(server));
	json_object_set_new(o, "closed", closed_json(server));
	json_object_set_new(o, "device", async_json());
	return o;
}

/* The object `effective`: the work of all shards, and an entry for each shard. */
static json_t *effective_json(const struct server *server)
{
	struct ep_work sum = { 0 };
	json_t *threads = json_array(), *o;

	for (uint32_t i = 0; i < server->n_shards; i++) {
		effective_add_work(&server->shards[i]->stats.effective, &sum);
		json_array_append_new(threads, effective_thread_json(&server->shards[i]->stats.effective));
	}
	o = effective_work_json(&sum);
	json_object_set_new(o, "threads", threads);
	return o;
}

static json_t *stages_json(const struct server *server, const struct report_mark *mark)
{
	json_t *o = json_object();

	for (int i = 0; i < SS_N; i++)
		json_object_set_new(o, server_stage_names[i], stage_json(server, mark, i));
	return o;
}

json_t *report_stats(const struct server *server, const struct report_mark *mark)
{
	json_t *o = report_counts(server);

	if (o)
		json_object_set_new(o, "stages_ns", stages_json(server, mark));
	return o;
}

json_t *report_counts(const struct server *server)
{
	return json_pack("{s:i, s:f, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema_version", 1,
			 "uptime_s", (double)(clock_now_ns() - server->started_ns) / 1e9,
			 "started_ns", (json_int_t)server->started_ns,
			 "clients", SUMS_JSON(server, client_sums), "events", events_json(server),
			 "shards", shards_json(server), "resources", resources_json(server), "network",
			 port_read_all(server->ports, server->n_ports), "pools", pools_json(server),
			 "certificates", certificates_json(server->certificates),
			 "effective", effective_json(server), "failures", failures_json(server));
}

static json_t *rails_json(const struct server *server)
{
	json_t *a = json_array();
	char text[ADDR_TEXT_MAX];

	for (uint32_t i = 0; i < server->cfg->n_rails; i++)
		json_array_append_new(a, json_pack("{s:s, s:s}", "device", server->devices[i].name, "address",
						   addr_host_text(&server->cfg->rails[i].addr, text)));
	return a;
}

/* The names whose bits are set. */
static json_t *names_json(const char *const *names, uint32_t mask)
{
	json_t *a = json_array();

	for (int i = 0; names[i]; i++)
		if (mask >> i & 1)
			json_array_append_new(a, json_string(names[i]));
	return a;
}

json_t *report_info(const struct server *server)
{
	const struct server_config *c = server->cfg;
	uint32_t shards = server_config_shards(c);
	json_t *config = json_object(), *env = res_environment_json();

	set_int(config, "threads", c->threads);
	json_object_set_new(config, "transports", names_json(transport_names, c->transport_mask));
	json_object_set_new(config, "connect", names_json(connect_way_names, server_config_serves(c, TRANSPORT_RDMA) ?
							  c->connect_mask : 0));
	set_int(config, "max_clients", c->max_clients);
	set_int(config, "message_bytes", c->message_bytes);
	set_int(config, "credits", c->credits);
	set_int(config, "region_bytes", c->region_bytes);
	set_int(config, "receive_buffers", (uint64_t)c->recv_depth * shards);
	set_int(config, "max_handshakes", c->max_handshakes * shards);
	set_int(config, "max_per_address", c->max_per_address);
	json_object_set_new(config, "poll", json_string(poll_mode_names[c->poll]));
	json_object_set_new(config, "client_auth", json_boolean(c->client_auth == CLIENT_AUTH_REQUIRE));
	json_object_set_new(config, "tls_resume", json_boolean(c->tls_resume));
	json_object_set_new(config, "windows", json_boolean(c->windows));
	json_object_set_new(config, "probe_interval_s", json_real((double)c->probe_interval_ns / 1e9));
	json_object_set_new(config, "ack_timeout_ns", json_integer((json_int_t)tuning_ack_timeout_ns(&c->tuning)));
	json_object_set_new(config, "retry_count", json_integer((json_int_t)c->tuning.retry_count));
	json_object_set_new(config, "tuning", tuning_json(&c->tuning));
	json_object_set_new(config, "tcp", tcp_options_json(&c->sock.tcp));
	if (env) {
		effective_describe(env);
		json_object_set_new(env, "rdma_device", dev_json(&server->devices[0]));
		json_object_set_new(env, "certificate_expires_at", certificates_expiry_json(server->certificates));
	}
	return json_pack("{s:i, s:o, s:i, s:o, s:o, s:o}", "schema_version", 1, "build", build_info_json(),
			 "wire_version", FRAME_VERSION, "config", config, "rails", rails_json(server),
			 "environment", env ? env : json_null());
}

/* A stage's histogram of all shards, packed for a mark. NULL when out of memory. */
static json_t *packed_stage(const struct server *server, int stage)
{
	struct hist *h = report_stage(server, stage);
	json_t *o = h ? hist_pack(h) : NULL;

	hist_free(h);
	return o;
}

int report_mark_new(const struct server *server, struct report_mark **out)
{
	struct report_mark *m = calloc(1, sizeof(*m));

	for (int i = 0; m && i < SS_N; i++) {
		m->stages[i] = packed_stage(server, i);
		if (!m->stages[i]) {
			report_mark_free(m);
			m = NULL;
		} else {
			m->bytes += MARK_STAGE_BYTES + json_string_length(json_object_get(m->stages[i], "cells"));
		}
	}
	*out = m;
	return m ? 0 : -ENOMEM;
}

size_t report_mark_bytes(const struct report_mark *m)
{
	return m ? m->bytes : 0;
}

void report_mark_free(struct report_mark *m)
{
	for (int i = 0; m && i < SS_N; i++)
		json_decref(m->stages[i]);
	free(m);
}
