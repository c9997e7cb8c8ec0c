/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of each of several servers in a step. See step.h. */
#include <math.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/latency_json.h"
#include "loadgen/measurement/network.h"
#include "loadgen/measurement/step.h"

static double delta(const json_t *begin, const json_t *end, const char *path)
{
	return json_number_at(end, path) - json_number_at(begin, path);
}

json_t *step_server_resources(const json_t *begin, const json_t *end)
{
	static const char *const gauges[] = { "rss_bytes", "fds", "threads", "qps", "cqs", "mrs", "pinned_bytes",
		"machine_kernel_bytes" };
	json_t *o = json_object();
	char path[64];

	json_object_set_new(o, "cpu_user_s", json_number(delta(begin, end, "resources.cpu_user_s")));
	json_object_set_new(o, "cpu_system_s", json_number(delta(begin, end, "resources.cpu_system_s")));
	json_object_set_new(o, "window_s", json_number(delta(begin, end, "uptime_s")));
	step_add_lost(o, step_lost_between(begin, end));
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		snprintf(path, sizeof(path), "resources.%s", gauges[i]);
		json_object_set_new(o, gauges[i], json_whole(json_number_at(end, path)));
	}
	return o;
}

/* The server's report from the start of measuring; NULL if another process, with its own counters, replaced it. */
static const json_t *begin_of(const struct step_target *t)
{
	const json_t *begin = t->reports[STEP_REPORT_BEGIN], *end = t->reports[STEP_REPORT_END];

	return json_number_at(begin, "started_ns") == json_number_at(end, "started_ns") ? begin : NULL;
}

static json_t *or_null(json_t *report)
{
	return report ? json_incref(report) : json_null();
}

static json_t *resources_of(const struct step_target *t)
{
	json_t *o = step_server_resources(begin_of(t), t->reports[STEP_REPORT_END]);
	double cpu_s = json_number_at(o, "cpu_user_s") + json_number_at(o, "cpu_system_s");

	json_object_set_new(o, "cpus", json_number(cpu_s / json_number_at(o, "window_s")));
	json_object_set_new(o, "peak", series_peak_json(&t->peak));
	return o;
}

static json_t *target_json(const struct step *s, const struct step_target *t, const struct loadgen_config *cfg,
			   const char *name)
{
	bool has = s->measured && !cfg->wl->idle;
	json_t *end = t->reports[STEP_REPORT_END];
	json_t *stages = s->mark_lost ? NULL : json_object_get(end ? end : t->reports[STEP_REPORT_AFTER], "stages_ns");

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}",
		"target", name, "clients", (json_int_t)t->clients, "attempted", (json_int_t)t->attempted,
		"connected_peak",
		(json_int_t)t->connected_peak, "connected_held", (json_int_t)t->connected_held, "failed",
		(json_int_t)t->failed, "dropped", (json_int_t)t->dropped, "server_connected",
		json_whole(json_number_at(t->reports[STEP_REPORT_HELD], "clients.connected")), "connect_total_ns",
		latency_json(t->total), "response_ns", latency_json(t->response), "throughput_msgs_per_s",
		json_number(has ? t->messages_per_s : NAN), "throughput_bytes_per_s",
		json_number(has ? t->messages_per_s * (double)s->bytes : NAN), "resources", resources_of(t), "network",
		network_side_json(json_at(begin_of(t), "network"), json_at(end, "network"), s->loopback),
		"server_stages_ns", or_null(stages), "server_pools", step_pools_names[t->pools], "server_before",
		or_null(t->reports[STEP_REPORT_BASELINE]), "server_after", or_null(t->reports[STEP_REPORT_AFTER]));
}

json_t *step_targets_json(const struct step *s, const struct loadgen_config *cfg)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < s->n_targets; i++)
		json_array_append_new(a, target_json(s, &s->targets[i], cfg, cfg->targets.v[i].name));
	return a;
}

/* The share of a server's clients that were not held. */
static double missing_ratio(const struct step_target *t)
{
	return t->clients ? 1 - (double)t->connected_held / t->clients : 0;
}

static double median_ns(const struct step_target *t)
{
	return hist_supports(t->total, 50) ? (double)hist_percentile(t->total, 50) : 0;
}

/* The server with the greatest figure; NULL if all servers have the same. */
static const struct step_target *worst(const struct step *s, double (*figure)(const struct step_target *t))
{
	const struct step_target *most = s->targets;
	bool differ = false;

	for (uint32_t i = 1; i < s->n_targets; i++) {
		differ |= figure(&s->targets[i]) != figure(s->targets);
		if (figure(&s->targets[i]) > figure(most))
			most = &s->targets[i];
	}
	return differ ? most : NULL;
}

const char *step_fewest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size)
{
	const struct step_target *t = worst(s, missing_ratio);

	text[0] = '\0';
	if (t)
		snprintf(text, size, "fewest at %s: %u of %u", cfg->targets.v[t - s->targets].name, t->connected_held,
			 t->clients);
	return text;
}

const char *step_slowest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size)
{
	const struct step_target *t = worst(s, median_ns);

	text[0] = '\0';
	if (t)
		snprintf(text, size, "slowest at %s: p50 %.3g ms", cfg->targets.v[t - s->targets].name,
			 median_ns(t) / 1e6);
	return text;
}
