/* Reports on the whole server. See report.h. */
#include "server/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/hist/latency_json.h"
#include "common/base/log.h"
#include "common/rdma/async.h"
#include "common/wire/psn.h"
#include "common/base/res.h"

uint64_t report_sum(const struct server *server, size_t offset)
{
	uint64_t total = counter_get((const counter *)((const char *)&server->control + offset));

	for (uint32_t i = 0; i < server->n_shards; i++)
		total += counter_get((const counter *)((const char *)&server->shards[i]->stats + offset));
	return total;
}

#define SUM(field) ((json_int_t)report_sum(server, offsetof(struct stats, field)))

static void set_int(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

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
		fail_table_add(all, &server->control.failures);
	for (uint32_t i = 0; all && i < server->n_shards; i++)
		fail_table_add(all, &server->shards[i]->stats.failures);
	o = all ? fail_table_json(all) : json_array();
	free(all);
	return o;
}

struct report_mark {
	struct hist *stages[SS_N];
};

/* All shards' histogram of a stage added up. NULL when out of memory. */
static struct hist *stage_hist(const struct server *server, int stage)
{
	struct hist *h;

	if (hist_new(&h))
		return NULL;
	for (uint32_t i = 0; i < server->n_shards; i++)
		hist_add(h, server->shards[i]->stats.stages[stage]);
	return h;
}

static json_t *stage_json(const struct server *server, const struct report_mark *mark, int stage)
{
	struct hist *now = stage_hist(server, stage), *diff = NULL;
	json_t *o;

	if (!now)
		return json_null();
	if (mark && !hist_new(&diff)) {
		hist_diff(diff, now, mark->stages[stage]);
		o = latency_json(diff);
	} else {
		o = latency_json(now);
	}
	hist_free(diff);
	hist_free(now);
	return o;
}

static json_t *kernel_bytes_json(void)
{
	uint64_t bytes;

	return res_machine_kernel_bytes(&bytes) ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *resources_json(const struct server *server)
{
	struct res_usage u;

	memset(&u, 0, sizeof(u));
	if (res_usage_self(&u))
		log_warn("cannot read this process's resources");
	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
			 "cpu_user_s", (double)u.cpu_user_ns / 1e9,
			 "cpu_system_s", (double)u.cpu_system_ns / 1e9,
			 "rss_bytes", (json_int_t)u.rss_bytes, "fds", (json_int_t)u.fds,
			 "threads", (json_int_t)u.threads, "qps", SUM(qps), "cqs", SUM(cqs),
			 "mrs", SUM(mrs), "pinned_bytes", SUM(pinned_bytes),
			 "net_bytes", SUM(bytes_in) + SUM(bytes_out) + SUM(tls_bytes_in) +
			 SUM(tls_bytes_out), "machine_kernel_bytes", kernel_bytes_json());
}

static json_int_t admitted(const struct server *server)
{
	json_int_t n = 0;

	for (uint32_t i = 0; i < server->cfg->n_rails; i++)
		n += atomic_load_explicit(&((struct server *)server)->admitted[i], memory_order_relaxed);
	return n;
}

static json_t *pools_json(const struct server *server)
{
	return json_pack("{s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I},"
			 " s:I, s:I, s:I, s:I}",
			 "qp", "exist", SUM(qps), "free", SUM(qps_free), "in_use", SUM(qps_in_use),
			 "quarantined", SUM(qps_quarantined), "hits", SUM(qp_hits), "misses",
			 SUM(qp_misses), "exhausted", SUM(qp_exhausted), "recycled", SUM(qp_recycled),
			 "buffers", "posted", SUM(bufs_posted), "free", SUM(bufs_free), "total",
			 SUM(bufs_total),
			 "psns_in_use", (json_int_t)psn_in_use(server->psns),
			 "sessions", SUM(sessions), "regions_in_use", SUM(regions_in_use),
			 "admitted", admitted(server));
}

/* How the kernel spread the clients. */
static json_t *shards_json(const struct server *server)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < server->n_shards; i++) {
		const struct stats *s = &server->shards[i]->stats;

		json_array_append_new(a, json_pack("{s:I, s:I, s:I}", "connected",
			(json_int_t)counter_get(&s->connected), "handshakes_full",
			(json_int_t)counter_get(&s->handshakes_full), "handshakes_resumed",
			(json_int_t)counter_get(&s->handshakes_resumed)));
	}
	return a;
}

json_t *report_stats(const struct server *server, const struct report_mark *mark)
{
	json_t *stages = json_object();

	for (int i = 0; i < SS_N; i++)
		json_object_set_new(stages, server_stage_names[i], stage_json(server, mark, i));
	return json_pack("{s:i, s:f, s:{s:I, s:I, s:I, s:I, s:I},"
			 " s:{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
			 " s:I, s:I, s:o},"
			 " s:o, s:o, s:o, s:o, s:o}",
			 "schema_version", 1,
			 "uptime_s", (double)(clock_now_ns() - server->started_ns) / 1e9,
			 "clients", "connected", SUM(connected), "handshakes", SUM(handshakes), "closing",
			 SUM(closing), "control", SUM(controls), "connected_peak", SUM(connected_peak),
			 "events", "tcp_accepted", SUM(tcp_accepted), "granted", SUM(granted),
			 "established", SUM(established), "handshakes_full", SUM(handshakes_full),
			 "handshakes_resumed", SUM(handshakes_resumed), "tickets", SUM(tickets), "refused", refusals_json(server), "closed",
			 closed_json(server), "messages_in", SUM(messages_in), "messages_out",
			 SUM(messages_out), "bytes_in", SUM(bytes_in), "bytes_out", SUM(bytes_out),
			 "messages_checked", SUM(messages_checked), "messages_corrupt", SUM(messages_corrupt),
			 "probes", SUM(probes), "psn_verified", SUM(psn_verified), "psn_conflicts",
			 SUM(psn_conflicts), "receive_shortfalls", SUM(receive_shortfalls), "device", async_json(),
			 "shards", shards_json(server), "stages_ns", stages, "resources", resources_json(server), "pools",
			 pools_json(server), "failures", failures_json(server));
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

json_t *report_info(const struct server *server)
{
	const struct server_config *c = server->cfg;
	json_t *env = res_environment_json();

	if (env)
		json_object_set_new(env, "rdma_device", dev_json(&server->devices[0]));
	return json_pack("{s:i, s:o, s:i, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:b, s:b, s:f}, s:o, s:o}",
			 "schema_version", 1, "build", build_info_json(), "wire_version", FRAME_VERSION,
			 "config", "threads", (json_int_t)c->threads, "max_clients",
			 (json_int_t)c->max_clients, "message_bytes", (json_int_t)c->message_bytes,
			 "credits", (json_int_t)c->credits, "region_bytes", (json_int_t)c->region_bytes,
			 "receive_buffers", (json_int_t)c->recv_depth * server_config_shards(c), "max_handshakes",
			 (json_int_t)c->max_handshakes * server_config_shards(c), "poll",
			 poll_mode_names[c->poll], "client_auth", c->client_auth == CLIENT_AUTH_REQUIRE,
			 "tls_resume", c->tls_resume, "windows", c->windows,
			 "probe_interval_s", (double)c->probe_interval_ns / 1e9,
			 "rails", rails_json(server), "environment", env ? env : json_null());
}

int report_mark_new(const struct server *server, struct report_mark **out)
{
	struct report_mark *m = calloc(1, sizeof(*m));

	for (int i = 0; m && i < SS_N; i++) {
		m->stages[i] = stage_hist(server, i);
		if (!m->stages[i]) {
			report_mark_free(m);
			m = NULL;
		}
	}
	*out = m;
	return m ? 0 : -ENOMEM;
}

void report_mark_free(struct report_mark *m)
{
	for (int i = 0; m && i < SS_N; i++)
		hist_free(m->stages[i]);
	free(m);
}
