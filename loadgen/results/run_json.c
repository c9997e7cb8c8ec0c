/* See run_json.h and docs/results.md. */
#include "loadgen/results/run_json.h"

#include "common/base/build_info.h"
#include "common/base/json_at.h"
#include "common/base/res.h"
#include "common/rdma/async.h"
#include "common/rdma/pump.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/limits.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/results/find.h"
#include "loadgen/analysis/memory.h"
#include "loadgen/results/results.h"
#include "loadgen/traffic/workload.h"

static json_t *argv_json(int argc, char **argv)
{
	json_t *a = json_array();

	for (int i = 0; i < argc; i++)
		json_array_append_new(a, json_string(argv[i]));
	return a;
}

static json_t *config_json(const struct loadgen_config *c)
{
	json_t *steps = json_array(), *sizes = json_array();
	const struct tuning *t = &c->tuning;

	for (size_t i = 0; i < c->sizes.n; i++)
		json_array_append_new(sizes, json_integer((json_int_t)c->sizes.v[i]));
	for (size_t i = 0; i < c->steps.n && !c->find_capacity; i++)
		json_array_append_new(steps, json_integer((json_int_t)c->steps.v[i]));
	return json_pack("{s:s, s:o, s:s?, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b,"
			 " s:I, s:b, s:b, s:o, s:I, s:o,"
			 " s:o, s:o, s:o, s:s, s:s, s:I, s:s, s:{s:i, s:I, s:I, s:I, s:I, s:s, s:s?, s:b, s:I, s:I}, s:b, s:I,"
			 " s:I, s:s?, s:b, s:f}",
		"workload", loadgen_workload_names[c->workload], "steps", steps, "server", c->server, "duration_s",
		(double)c->duration_ns / 1e9, "warmup_s", (double)c->warmup_ns / 1e9, "message_bytes",
		(json_int_t)c->message_bytes, "inflight", (json_int_t)c->inflight, "connect_concurrency",
		(json_int_t)c->connect_concurrency, "connect_rate", (json_int_t)c->connect_rate, "threads",
		(json_int_t)c->threads, "repeat", (json_int_t)c->repeat, "seed", (json_int_t)c->seed, "poll",
		poll_mode_names[c->poll], "verify", c->verify, "connect_retries", (json_int_t)c->connect_retries,
		"phased", c->phased, "tls_resume", c->tls_resume, "active",
		c->active ? json_integer((json_int_t)c->active) : json_null(), "churn_per_s",
		(json_int_t)c->churn_per_s, "cycles", c->cycles ? json_integer((json_int_t)c->cycles) : json_null(),
		"message_sizes", sizes, "rate_per_s", c->rate ? json_integer((json_int_t)c->rate) : json_null(),
		"rate_per_client_per_s",
		c->rate_per_client ? json_integer((json_int_t)c->rate_per_client) : json_null(), "arrival",
		loadgen_arrival_names[c->arrival], "operation", loadgen_operation_names[c->operation], "chunk_bytes",
		(json_int_t)c->chunk_bytes, "mix", c->mix_text, "tuning", "inline_bytes", (int)t->inline_bytes, "post_list",
		(json_int_t)t->post_list, "signal_every", (json_int_t)t->signal_every, "srq_depth",
		(json_int_t)t->srq_depth, "cq_depth", (json_int_t)t->cq_depth, "path_mtu",
		tuning_mtu_names[t->path_mtu], "cpu_list", t->cpu_list, "realtime", t->realtime,
		"ack_timeout_ns", (json_int_t)tuning_ack_timeout_ns(t), "retry_count", (json_int_t)t->retry_count,
		"message_auth", c->message_auth, "coalesce", (json_int_t)c->coalesce, "clients", (json_int_t)c->clients, "slo", c->slo_text,
		"find_capacity", c->find_capacity, "reconnect_s", (double)c->reconnect_ns / 1e9);
}

/* Values of a column in the rows of one number of clients and size. Returns how many. */
static size_t column(const json_t *rows, json_int_t clients, json_int_t bytes, const char *name, double *out,
		     size_t max)
{
	json_t *row;
	size_t i, n = 0;

	json_array_foreach((json_t *)rows, i, row) {
		json_t *v = json_object_get(row, name);

		if (json_integer_value(json_object_get(row, "clients")) == clients &&
		    json_integer_value(json_object_get(row, "bytes")) == bytes && json_is_number(v) && n < max)
			out[n++] = json_number_value(v);
	}
	return n;
}

static json_t *repetitions_of(const struct outcome *oc, json_int_t clients, json_int_t bytes)
{
	static const char *const names[] = { "connect_p50_ms", "messages_per_s", "mb_per_s", "p50_us", "p99_us" };
	json_t *o = json_pack("{s:I, s:I}", "clients", clients, "bytes", bytes);
	double v[128];

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		size_t n = column(oc->rows, clients, bytes, names[k], v, 128);
		double median = stats_median(v, n); /* sorts */

		if (n)
			json_object_set_new(o, names[k], json_pack("{s:f, s:f, s:f, s:I}", "median", median, "min", v[0],
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

static json_t *environment_json(const struct outcome *oc)
{
	json_t *server = json_object_get(oc->server_info, "environment");
	json_t *clients = res_environment_json();

	if (clients)
		json_object_set_new(clients, "rdma_device", oc->generator_dev ?
				    json_incref(oc->generator_dev) : json_null());
	return json_pack("{s:O, s:o}", "server", server ? server : json_null(), "clients",
			 clients ? clients : json_null());
}

json_t *run_json(const struct outcome *oc, const struct results *results, int argc, char **argv, int exit_status)
{
	char ended[40];
	bool done = oc->search_done || oc->stop_reason == STOP_MAX_REACHED;
	json_t *server_build = json_object_get(oc->server_info, "build");
	json_t *server_config = json_object_get(oc->server_info, "config");
	json_t *run = json_pack("{s:i, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:i, s:i, s:o},"
			 " s:o, s:O, s:O, s:o, s:o, s:O, s:O, s:{s:o, s:o, s:o, s:o}}",
		"schema_version", 1, "run", "id", results_id(results), "started_at", oc->started_at,
		"ended_at", results_time_text(results, ended, sizeof(ended)), "status",
		done ? "completed" : oc->stop_reason == STOP_ABORTED ? "aborted" : "stopped",
		"stop_reason", stop_reason_names[oc->stop_reason], "stop_detail", oc->stop_detail,
		"exit_status", exit_status, "files_incomplete", results_are_incomplete(results), "device_events", async_json(),
		"control_reconnects", oc->control_reconnects, "server_restarts", oc->server_restarts,
		"argv", argv_json(argc, argv),
		"build", build_info_json(), "server_build", server_build ? server_build : json_null(),
		"server_config", server_config ? server_config : json_null(), "environment",
		environment_json(oc), "config", config_json(oc->cfg), "steps", oc->steps, "verdict", oc->verdict,
		"analysis", "repetitions", repetitions_json(oc), "memory", memory_analysis(oc->steps),
		"capacity", find_json(oc), "usl", curve_usl_json(oc->steps));

	/* Last, because it reads all the rest of run.json. */
	if (run)
		json_object_set_new(json_object_get(run, "analysis"), "limits", limits_analysis(run));
	return run;
}
