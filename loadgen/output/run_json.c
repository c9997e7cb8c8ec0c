/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_json.h and docs/results.md. */
#include "loadgen/output/run_json.h"

#include <math.h>

#include "common/base/build_info.h"
#include "common/base/json_at.h"
#include "common/host/res.h"
#include "common/rdma/async.h"
#include "common/rdma/pump.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/limits.h"
#include "loadgen/analysis/offered.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/config/deal.h"
#include "loadgen/output/find.h"
#include "loadgen/measurement/series.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/results.h"
#include "loadgen/traffic/workload.h"

static json_t *argv_json(int argc, char **argv)
{
	json_t *a = json_array();

	for (int i = 0; i < argc; i++)
		json_array_append_new(a, json_string(argv[i]));
	return a;
}

static json_t *count_or_null(uint64_t n, bool known)
{
	return known ? json_integer((json_int_t)n) : json_null();
}

static json_t *rates_json(const struct loadgen_config *c)
{
	json_t *a = json_array();

	for (size_t i = 0; i < c->rates.n; i++)
		json_array_append_new(a, json_integer((json_int_t)c->rates.v[i]));
	return a;
}

static json_t *targets_json(const struct loadgen_config *c)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < c->targets.n; i++)
		json_array_append_new(a, json_string(c->targets.v[i].name));
	return a;
}

/* Adds rates, iterations and targets to the configuration, and returns it. */
static json_t *with_counts(const struct loadgen_config *c, json_t *config)
{
	json_object_set_new(config, "rates_per_s", rates_json(c));
	json_object_set_new(config, "find_rate", json_boolean(c->find_rate));
	json_object_set_new(config, "connect",
			    c->transport == TRANSPORT_RDMA ? json_string(connect_way_names[c->connect]) : json_null());
	json_object_set_new(config, "iterations", count_or_null(c->iterations, c->iterations));
	json_object_set_new(config, "warmup_iterations", count_or_null(c->warmup_iterations, c->iterations));
	if (c->targets.n) {
		json_object_set_new(config, "targets", targets_json(c));
		json_object_set_new(config, "deal", json_string(deal_names[c->deal]));
	}
	return config;
}

static json_t *config_json(const struct loadgen_config *c)
{
	json_t *steps = json_array(), *sizes = json_array();

	for (size_t i = 0; i < c->sizes.n; i++)
		json_array_append_new(sizes, json_integer((json_int_t)c->sizes.v[i]));
	for (size_t i = 0; i < c->steps.n && !c->find_capacity; i++)
		json_array_append_new(steps, json_integer((json_int_t)c->steps.v[i]));
	return json_pack("{s:I, s:s, s:s, s:b, s:s, s:o, s:s?, s:f, s:f, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I,"
			 " s:s, s:b,"
			 " s:I, s:b, s:b, s:o, s:I, s:o,"
			 " s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:s, s:o, s:b, s:I,"
			 " s:I, s:s?, s:b, s:f, s:f, s:f, s:f, s:f, s:o}",
		"floor", (json_int_t)c->floor, "judge", loadgen_judge_names[c->judge], "transport",
		transport_names[c->transport], "transport_fell_back", c->fell_back, "workload",
		loadgen_workload_names[c->workload], "steps", steps, "server", c->server, "duration_s",
		(double)c->duration_ns / 1e9, "warmup_s", (double)c->warmup_ns / 1e9, "message_bytes",
		(json_int_t)c->message_bytes, "inflight", (json_int_t)c->inflight, "total_inflight",
		c->total_inflight ? json_integer((json_int_t)c->total_inflight) : json_null(), "qps",
		(json_int_t)c->qps, "connect_concurrency", (json_int_t)c->connect_concurrency, "connect_rate",
		(json_int_t)c->connect_rate, "threads", (json_int_t)c->threads, "repeat",
		(json_int_t)c->repeat, "seed", (json_int_t)c->seed, "poll",
		poll_mode_names[c->poll], "verify", c->verify, "connect_retries", (json_int_t)c->connect_retries,
		"phased", c->phased, "tls_resume", c->tls_resume, "active",
		c->active ? json_integer((json_int_t)c->active) : json_null(), "churn_per_s",
		(json_int_t)c->churn_per_s, "cycles", c->cycles ? json_integer((json_int_t)c->cycles) : json_null(),
		"message_sizes", sizes, "rate_per_s", c->rates.n == 1 ? json_integer((json_int_t)c->rates.v[0]) :
		json_null(), "rate_per_client_per_s",
		c->rate_per_client ? json_integer((json_int_t)c->rate_per_client) : json_null(), "arrival",
		loadgen_arrival_names[c->arrival], "operation", loadgen_operation_names[c->operation], "chunk_bytes",
		(json_int_t)c->chunk_bytes, "stripe_min_bytes", (json_int_t)c->stripe_min_bytes, "mix", c->mix_text,
		"tuning", tuning_json(&c->tuning),
		"message_auth", c->message_auth, "coalesce", (json_int_t)c->coalesce, "clients", (json_int_t)c->clients,
		"slo", c->slo_text, "find_capacity", c->find_capacity, "reconnect_s", (double)c->reconnect_ns / 1e9,
		"sample_interval_s", (double)c->sample_interval_ns / 1e9, "max_steal_ratio",
		(double)c->max_steal_percent / 100, "memory_floor_ratio",
		(double)c->memory_floor_percent / 100, "cpu_floor_ratio", (double)c->cpu_floor_percent / 100,
		"tcp", tcp_options_json(&c->sock.tcp));
}

/* Values of a figure in the steps of one number of clients and size. Returns how many. */
static size_t figures_of(const json_t *steps, double clients, double bytes, const char *path, double unit, double *out,
			 size_t max)
{
	const json_t *step;
	size_t i, n = 0;

	json_array_foreach(steps, i, step) {
		double v = json_number_at(step, path);

		if (json_number_at(step, "target_clients") == clients &&
		    json_number_at(step, "message_bytes") == bytes && isfinite(v) && n < max)
			out[n++] = v / unit;
	}
	return n;
}

static json_t *repetitions_of(const struct outcome *oc, json_int_t clients, json_int_t bytes)
{
	static const struct { const char *name, *path; double unit; } figures[] = {
		{ "connect_p50_ms", "connect_ns.total.p50", 1e6 }, { "messages_per_s", "throughput_msgs_per_s", 1 },
		{ "mb_per_s", "throughput_bytes_per_s", 1e6 }, { "p50_us", "response_ns.p50", 1e3 },
		{ "p99_us", "response_ns.p99", 1e3 },
	};
	json_t *o = json_pack("{s:I, s:I}", "clients", clients, "bytes", bytes);
	double v[128];

	for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++) {
		size_t n = figures_of(oc->steps, (double)clients, (double)bytes, figures[k].path, figures[k].unit, v,
				      128);
		double median = stats_median(v, n); /* sorts */

		if (n)
			json_object_set_new(o, figures[k].name, json_pack("{s:f, s:f, s:f, s:I}", "median", median,
									  "min", v[0],
									  "max", v[n - 1], "runs", (json_int_t)n));
	}
	return o;
}

/* With --repeat: median and range over the repetitions of each step. */
static json_t *repetitions_json(const struct outcome *oc)
{
	json_t *a = json_array();

	for (size_t i = 0; oc->cfg->repeat > 1 && i < oc->cfg->steps.n; i++)
		for (size_t k = 0; k < oc->cfg->sizes.n; k++)
			json_array_append_new(a, repetitions_of(oc, (json_int_t)oc->cfg->steps.v[i],
								(json_int_t)oc->cfg->sizes.v[k]));
	return a;
}

/* INFO of the only server; NULL if there are several, or if it did not arrive. */
static const json_t *only_info(const struct outcome *oc)
{
	return loadgen_n_targets(oc->cfg) > 1 ? NULL : oc->server_infos[0];
}

/* The descriptions that each of several servers gave of itself. */
static json_t *servers_json(const struct outcome *oc)
{
	static const char *const of_info[] = { "build", "config", "environment" };
	json_t *a = json_array();

	for (uint32_t i = 0; i < oc->cfg->targets.n; i++) {
		json_t *o = json_pack("{s:s, s:I}", "target", oc->cfg->targets.v[i].name, "tls_port",
				      (json_int_t)oc->cfg->targets.v[i].port);

		for (size_t k = 0; k < sizeof(of_info) / sizeof(of_info[0]); k++) {
			json_t *v = json_object_get(oc->server_infos[i], of_info[k]);

			json_object_set(o, of_info[k], v ? v : json_null());
		}
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *environment_json(const struct outcome *oc)
{
	json_t *server = json_object_get(only_info(oc), "environment");
	json_t *clients = res_environment_json();

	if (clients && oc->generator_place)
		json_object_update(clients, oc->generator_place);
	if (clients)
		json_object_set_new(clients, "rdma_device", oc->generator_dev ?
				    json_incref(oc->generator_dev) : json_null());
	return json_pack("{s:O, s:o}", "server", server ? server : json_null(), "clients",
			 clients ? clients : json_null());
}

/* Adds members that only some runs have, and analyses of the rest of run.json. Nonzero when out of memory. */
static int add_rest(json_t *run, const struct outcome *oc)
{
	json_t *analysis = json_object_get(run, "analysis");
	int failed = 0;

	if (loadgen_n_targets(oc->cfg) > 1)
		failed |= json_object_set_new(run, "servers", servers_json(oc));
	if (oc->series)
		failed |= json_object_set_new(run, "resources_series",
					      series_json(oc->series, (double)oc->cfg->sample_interval_ns / 1e9));
	failed |= json_object_set_new(run, "floor", json_pack("{s:O?, s:O?}", "before", oc->floor_before, "after",
							      oc->floor_after));
	if (oc->hosts)
		failed |= json_object_set_new(run, "hosts", load_hosts_json(oc->hosts));
	/* limits_analysis reads all members above. */
	failed |= json_object_set_new(analysis, "limits", limits_analysis(run));
	if (loadgen_is_swept(oc->cfg))
		failed |= json_object_set_new(analysis, "offered_load", json_pack("{s:o, s:o}", "slo_rate",
					      find_rate_json(oc), "curves", offered_curves_json(oc->steps)));
	return failed;
}

json_t *run_json(const struct outcome *oc, const struct results *results, int argc, char **argv, int exit_status)
{
	char ended[40];
	bool done = oc->search_done || oc->stop_reason == STOP_MAX_REACHED;
	json_t *server_build = json_object_get(only_info(oc), "build");
	json_t *server_config = json_object_get(only_info(oc), "config");
	json_t *run = json_pack("{s:i, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:i, s:i, s:o},"
			 " s:o, s:O, s:O, s:o, s:o, s:O, s:O, s:{s:o, s:o, s:o, s:o, s:O}}",
		"schema_version", 2, "run", "id", results_id(results), "started_at", oc->started_at,
		"ended_at", results_time_text(results, ended, sizeof(ended)), "status",
		done ? "completed" : oc->stop_reason == STOP_ABORTED ? "aborted" : "stopped",
		"stop_reason", stop_reason_names[oc->stop_reason], "stop_detail", oc->stop_detail,
		"exit_status", exit_status, "files_incomplete", results_are_incomplete(results), "device_events",
		async_json(), "control_reconnects", oc->control_reconnects, "server_restarts", oc->server_restarts,
		"argv", argv_json(argc, argv),
		"build", build_info_json(), "server_build", server_build ? server_build : json_null(),
		"server_config", server_config ? server_config : json_null(), "environment",
		environment_json(oc), "config", with_counts(oc->cfg, config_json(oc->cfg)), "steps", oc->steps,
		"verdict", oc->verdict,
		"analysis", "repetitions", repetitions_json(oc), "memory", read_memory_growth_json(oc->steps),
		"capacity", find_json(oc), "usl", curve_usl_json(oc->steps), "not_taken", oc->not_taken);

	if (run && add_rest(run, oc)) {
		json_decref(run);
		run = NULL;
	}
	return run;
}
