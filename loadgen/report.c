/* run.json, and the summary for people. See report.h. */
#include "loadgen/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/build_info.h"
#include "common/hist.h"
#include "common/pump.h"
#include "loadgen/environment.h"
#include "loadgen/verdict.h"

static json_t *argv_json(int argc, char **argv)
{
	json_t *a = json_array();

	for (int i = 0; i < argc; i++)
		json_array_append_new(a, json_string(argv[i]));
	return a;
}

static json_t *config_json(const struct loadgen_config *c)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < c->steps.n; i++)
		json_array_append_new(steps, json_integer((json_int_t)c->steps.v[i]));
	return json_pack("{s:s, s:o, s:s?, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b}",
		"workload", "echo", "steps", steps, "server", c->server, "duration_s",
		(double)c->duration_ns / 1e9, "warmup_s", (double)c->warmup_ns / 1e9, "message_bytes",
		(json_int_t)c->message_bytes, "inflight", (json_int_t)c->inflight, "connect_concurrency",
		(json_int_t)c->connect_concurrency, "connect_rate", (json_int_t)c->connect_rate, "threads",
		(json_int_t)c->threads, "repeat", (json_int_t)c->repeat, "seed", (json_int_t)c->seed, "poll",
		poll_mode_names[c->poll], "verify", c->verify);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Values of a column in the rows of one number of clients, sorted. Returns how many. */
static size_t column(const json_t *rows, json_int_t clients, const char *name, double *out, size_t max)
{
	json_t *row;
	size_t i, n = 0;

	json_array_foreach((json_t *)rows, i, row) {
		json_t *v = json_object_get(row, name);

		if (json_integer_value(json_object_get(row, "clients")) == clients && json_is_number(v) &&
		    n < max)
			out[n++] = json_number_value(v);
	}
	qsort(out, n, sizeof(out[0]), by_value);
	return n;
}

/* With --repeat: median and range over the repetitions of each step. */
static json_t *repetitions_json(const struct ramp *r)
{
	static const char *const names[] = { "connect_p50_ms", "messages_per_s", "p50_us", "p99_us" };
	json_t *a = json_array();
	double v[128];

	for (size_t i = 0; r->cfg->repeat > 1 && i < r->cfg->steps.n; i++) {
		json_int_t clients = (json_int_t)r->cfg->steps.v[i];
		json_t *o = json_pack("{s:I}", "clients", clients);

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			size_t n = column(r->rows, clients, names[k], v, 128);

			if (n)
				json_object_set_new(o, names[k], json_pack("{s:f, s:f, s:f, s:I}",
					"median", n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2,
					"min", v[0], "max", v[n - 1], "runs", (json_int_t)n));
		}
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *environment_json(const struct ramp *r)
{
	json_t *server = json_object_get(r->info, "environment");
	json_t *clients = res_environment_json();

	if (clients)
		json_object_set_new(clients, "rdma_device", r->generator_dev ?
				    json_incref(r->generator_dev) : json_null());
	return json_pack("{s:O, s:o}", "server", server ? server : json_null(), "clients",
			 clients ? clients : json_null());
}

static double ms(const struct hist *h, double p)
{
	return (double)hist_percentile(h, p) / 1e6;
}

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *report_row(const struct step *s)
{
	bool has = hist_count(s->response) > 0;

	return json_pack("{s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}",
		"clients", s->target, "repetition", s->repetition, "held", s->connected_held, "failed",
		s->failed + s->dropped,
		"connect_p50_ms", number(hist_count(s->total) ? ms(s->total, 50) : NAN),
		"connect_p99_ms", number(hist_supports(s->total, 99) ? ms(s->total, 99) : NAN),
		"messages_per_s", number(s->measured ? s->messages_per_s : NAN),
		"mb_per_s", number(s->measured ? s->bytes_per_s / 1e6 : NAN),
		"p50_us", number(has ? ms(s->response, 50) * 1e3 : NAN),
		"p95_us", number(hist_supports(s->response, 95) ? ms(s->response, 95) * 1e3 : NAN),
		"p99_us", number(hist_supports(s->response, 99) ? ms(s->response, 99) * 1e3 : NAN),
		"server_cpus", number(step_server_cpus(s)), "generator_cpus", number(step_generator_cpus(s)),
		"server_rss_mib", number(step_report_number(s->end.server, "resources.rss_bytes") / 1048576),
		"steady", s->steady, "generator_saturated", s->generator_saturated);
}

json_t *report_run_json(const struct ramp *r, int argc, char **argv, int exit_status)
{
	char ended[40];
	bool done = r->stop_reason == STOP_MAX_REACHED;
	json_t *server_build = json_object_get(r->info, "build");
	json_t *server_config = json_object_get(r->info, "config");

	return json_pack("{s:i, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:o},"
			 " s:o, s:O, s:O, s:o, s:o, s:O, s:O, s:{s:o}}",
		"schema_version", 1, "run", "id", results_id(r->results), "started_at", r->started_at,
		"ended_at", results_time_text(ended, sizeof(ended)), "status",
		done ? "completed" : r->stop_reason == STOP_ABORTED ? "aborted" : "stopped",
		"stop_reason", stop_reason_names[r->stop_reason], "stop_detail", r->stop_detail,
		"exit_status", exit_status, "argv", argv_json(argc, argv),
		"build", build_info_json(), "server_build", server_build ? server_build : json_null(),
		"server_config", server_config ? server_config : json_null(), "environment",
		environment_json(r), "config", config_json(r->cfg), "steps", r->steps, "verdict", r->verdict,
		"analysis", "repetitions", repetitions_json(r));
}

static void cell(FILE *out, const json_t *row, const char *name, int width, int decimals)
{
	const json_t *v = json_object_get(row, name);

	if (json_is_number(v))
		fprintf(out, " %*.*f", width, decimals, json_number_value(v));
	else
		fprintf(out, " %*s", width, "-");
}

static void percent_cell(FILE *out, const json_t *row, const char *name, int width)
{
	const json_t *v = json_object_get(row, name);

	if (json_is_number(v))
		fprintf(out, " %*.0f", width, 100 * json_number_value(v));
	else
		fprintf(out, " %*s", width, "-");
}

static void print_table(const struct ramp *r, FILE *out)
{
	bool saturated = false;
	json_t *row;
	size_t i;

	if (json_array_size(r->rows) == 0)
		return;
	fprintf(out, "                          connect time ms              round trip us"
		"                CPU %%\n");
	fprintf(out, "clients    held  failed       p50      p99    msgs/s      p50      p95      p99"
		"  server  generator  server MiB  steady\n");
	json_array_foreach(r->rows, i, row) {
		cell(out, row, "clients", 6, 0);
		cell(out, row, "held", 7, 0);
		cell(out, row, "failed", 7, 0);
		cell(out, row, "connect_p50_ms", 9, 2);
		cell(out, row, "connect_p99_ms", 8, 2);
		cell(out, row, "messages_per_s", 9, 0);
		cell(out, row, "p50_us", 8, 0);
		cell(out, row, "p95_us", 8, 0);
		cell(out, row, "p99_us", 8, 0);
		percent_cell(out, row, "server_cpus", 7);
		percent_cell(out, row, "generator_cpus", 10);
		cell(out, row, "server_rss_mib", 11, 0);
		saturated |= json_is_true(json_object_get(row, "generator_saturated"));
		fprintf(out, "  %s%s\n", json_is_true(json_object_get(row, "steady")) ? "yes" : "no",
			json_is_true(json_object_get(row, "generator_saturated")) ? " *" : "");
	}
	if (saturated)
		fprintf(out, "* the generator was saturated: the server can do at least this\n");
}

static void stage_cell(FILE *out, const json_t *stages, const char *name)
{
	const json_t *p50 = json_object_get(json_object_get(stages, name), "p50");

	if (json_is_number(p50))
		fprintf(out, " %9.3f", json_number_value(p50) / 1e6);
	else
		fprintf(out, " %9s", "-");
}

/* Where the time of a connection goes: medians of the client's stages, then of the server's own. */
static void print_stages(const json_t *run, FILE *out)
{
	json_t *step;
	size_t i;

	if (json_array_size(json_object_get(run, "steps")) == 0)
		return;
	fprintf(out, "\nstage p50 ms  tcp     tls hs  psn exch      addr     route  qp setup      rdma"
		"  1st reply | server: tls  psn gen  qp setup  accept\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		const json_t *client = json_object_get(step, "connect_ns");
		const json_t *server = json_object_get(step, "server_stages_ns");

		fprintf(out, "%6lld", json_integer_value(json_object_get(step, "target_clients")));
		for (int k = 0; k < STAGE_TIMED; k++)
			stage_cell(out, client, stage_names[k]);
		fprintf(out, "  |");
		stage_cell(out, server, "tls_accept");
		stage_cell(out, server, "psn_generate");
		stage_cell(out, server, "qp_setup");
		stage_cell(out, server, "accept_to_established");
		fprintf(out, "\n");
	}
}

static void print_repetitions(const json_t *run, FILE *out)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(run, "analysis"), "repetitions"), i, o) {
		json_t *x = json_object_get(o, "messages_per_s"), *p = json_object_get(o, "p99_us");

		if (!x)
			continue;
		fprintf(out, "%6lld clients, median (range): %.0f (%.0f to %.0f) msgs/s",
			json_integer_value(json_object_get(o, "clients")),
			json_number_value(json_object_get(x, "median")),
			json_number_value(json_object_get(x, "min")),
			json_number_value(json_object_get(x, "max")));
		if (p)
			fprintf(out, ", p99 %.0f (%.0f to %.0f) us",
				json_number_value(json_object_get(p, "median")),
				json_number_value(json_object_get(p, "min")),
				json_number_value(json_object_get(p, "max")));
		fprintf(out, "\n");
	}
}

static void print_failures(const json_t *run, FILE *out)
{
	json_t *step, *f;
	size_t i, k;

	json_array_foreach(json_object_get(run, "steps"), i, step)
		json_array_foreach(json_object_get(step, "failures"), k, f)
			fprintf(out, "%6lld clients: %lld failed at %s: %s (%s)\n",
				json_integer_value(json_object_get(step, "target_clients")),
				json_integer_value(json_object_get(f, "count")),
				json_string_value(json_object_get(f, "stage")),
				json_string_value(json_object_get(f, "code")),
				json_string_value(json_object_get(f, "meaning")));
}

/* What makes figures questionable, in words of run.json; that both sides share a machine is said by
 * the verdict's environment. */
static void print_validity(const json_t *run, FILE *out)
{
	json_t *step, *flag;
	size_t i, k;

	json_array_foreach(json_object_get(run, "steps"), i, step)
		json_array_foreach(json_object_get(step, "validity"), k, flag) {
			const char *text = json_string_value(flag);

			if (strcmp(text, "not_steady") != 0 && strcmp(text, "generator_saturated") != 0 &&
			    strcmp(text, "server_and_generator_share_the_machine") != 0)
				fprintf(out, "%6lld clients: %s\n",
					json_integer_value(json_object_get(step, "target_clients")), text);
		}
}

static void print_verdict(const json_t *run, FILE *out)
{
	json_t *c;
	size_t i;
	char where[256];
	const json_t *env = json_object_get(json_object_get(run, "environment"), "clients");

	fprintf(out, "\nVerdict (%s)\n", environment_describe(env, where, sizeof(where)));
	json_array_foreach(json_object_get(run, "verdict"), i, c) {
		const char *result = json_string_value(json_object_get(c, "result"));

		fprintf(out, "  %-5s %6lld clients: %s %s (required: %s)\n",
			strcmp(result, "pass") == 0 ? "PASS" : strcmp(result, "fail") == 0 ? "FAIL" : "?",
			json_integer_value(json_object_get(c, "clients")),
			json_string_value(json_object_get(c, "criterion")),
			json_string_value(json_object_get(c, "measured")),
			json_string_value(json_object_get(c, "required")));
	}
	if (json_array_size(json_object_get(run, "verdict")) == 0)
		fprintf(out, "  none: no step was completed\n");
}

void report_print(const struct ramp *r, const json_t *run, FILE *out)
{
	print_table(r, out);
	print_stages(run, out);
	print_repetitions(run, out);
	print_failures(run, out);
	print_validity(run, out);
	print_verdict(run, out);
	fprintf(out, "\nStopped: %s%s%s\nResults: %s\n", stop_reason_names[r->stop_reason],
		r->stop_detail[0] ? ": " : "", r->stop_detail, results_dir(r->results));
}
