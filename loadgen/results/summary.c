/* Tables and verdict. See summary.h. */
#include "loadgen/results/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

/* The number at `path` in units of `unit`, in a column; "-" where it is not known. */
static void cell(FILE *out, const json_t *o, const char *path, int width, int decimals, double unit)
{
	double v = json_number_at(o, path);

	if (isfinite(v))
		fprintf(out, " %*.*f", width, decimals, v / unit);
	else
		fprintf(out, " %*s", width, "-");
}

/* The same in a text; nothing where it is not known. */
static void __attribute__((format(printf, 2, 0)))
figure(FILE *out, const char *format, const json_t *o, const char *path, double unit)
{
	double v = json_number_at(o, path);

	if (isfinite(v))
		fprintf(out, format, v / unit);
}

/* Begins a line about a step. */
static void begin(FILE *out, const json_t *step)
{
	figure(out, "%6.0f clients: ", step, "target_clients", 1);
}

static void print_table(const json_t *rows, FILE *out)
{
	static const struct {
		const char *name;
		int width, decimals;
		double unit;
	} columns[] = {
		{ "clients", 6, 0, 1 }, { "bytes", 9, 0, 1 }, { "held", 7, 0, 1 }, { "failed", 7, 0, 1 },
		{ "connect_p50_ms", 9, 2, 1 }, { "connect_p99_ms", 8, 2, 1 }, { "messages_per_s", 9, 0, 1 },
		{ "mb_per_s", 9, 1, 1 }, { "p50_us", 8, 0, 1 }, { "p95_us", 8, 0, 1 }, { "p99_us", 8, 0, 1 },
		{ "p99_9_us", 8, 0, 1 }, { "server_cpus", 7, 0, 0.01 }, { "generator_cpus", 10, 0, 0.01 },
		{ "server_rss_mib", 11, 0, 1 },
	};
	bool saturated = false;
	json_t *row;
	size_t i;

	if (json_array_size(rows) == 0)
		return;
	fprintf(out, "                                     connect time ms                        response us"
		"                         CPU %%\n");
	fprintf(out, "clients     bytes    held  failed       p50      p99    msgs/s      MB/s      p50      p95      p99    p99.9"
		"  server  generator  server MiB  steady\n");
	json_array_foreach((json_t *)rows, i, row) {
		bool was = json_is_true(json_object_get(row, "generator_saturated"));

		for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
			cell(out, row, columns[k].name, columns[k].width, columns[k].decimals, columns[k].unit);
		fprintf(out, "  %s%s\n", json_is_true(json_object_get(row, "steady")) ? "yes" : "no", was ? " *" : "");
		saturated |= was;
	}
	if (saturated)
		fprintf(out, "* the generator was saturated: the server can do at least this\n");
}

/* Where the time of a connection goes: medians of the client's stages, then of the server's own. */
static void print_stages(const json_t *run, FILE *out)
{
	static const char *const server[] = { "tls_accept", "psn_generate", "qp_setup", "accept_to_established" };
	char path[64];
	json_t *step;
	size_t i;

	if (json_array_size(json_object_get(run, "steps")) == 0)
		return;
	fprintf(out, "\nstage p50 ms  tcp     tls hs  psn exch      addr     route  qp setup      rdma"
		"  1st reply | server: tls  psn gen  qp setup  accept\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		figure(out, "%6.0f", step, "target_clients", 1);
		for (int k = 0; k < STAGE_TIMED; k++) {
			snprintf(path, sizeof(path), "connect_ns.%s.p50", stage_names[k]);
			cell(out, step, path, 9, 3, 1e6);
		}
		fprintf(out, "  |");
		for (size_t k = 0; k < sizeof(server) / sizeof(server[0]); k++) {
			snprintf(path, sizeof(path), "server_stages_ns.%s.p50", server[k]);
			cell(out, step, path, 9, 3, 1e6);
		}
		fprintf(out, "\n");
	}
}

static void print_repetitions(const json_t *run, FILE *out)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_at(run, "analysis.repetitions"), i, o) {
		if (!json_object_get(o, "messages_per_s"))
			continue;
		figure(out, "%6.0f clients", o, "clients", 1);
		figure(out, ", %.0f bytes, median (range)", o, "bytes", 1);
		figure(out, ": %.0f", o, "messages_per_s.median", 1);
		figure(out, " (%.0f", o, "messages_per_s.min", 1);
		figure(out, " to %.0f) msgs/s", o, "messages_per_s.max", 1);
		figure(out, ", p99 %.0f", o, "p99_us.median", 1);
		figure(out, " (%.0f", o, "p99_us.min", 1);
		figure(out, " to %.0f) us", o, "p99_us.max", 1);
		fprintf(out, "\n");
	}
}

/* With --phased: what each phase took for each connection. */
static void print_phases(const json_t *run, FILE *out)
{
	json_t *step, *phases;
	size_t i;
	bool titled = false;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		phases = json_object_get(step, "phase_ns_per_connection");
		if (json_object_size(phases) == 0)
			continue;
		if (!titled)
			fprintf(out, "\nphase us/conn tcp     tls hs  psn exch      addr     route  qp setup"
				"      rdma  1st reply\n");
		titled = true;
		figure(out, "%6.0f", step, "target_clients", 1);
		for (int k = 0; k < STAGE_TIMED; k++)
			cell(out, phases, stage_names[k], 9, 1, 1e3);
		fprintf(out, "\n");
	}
}

/* Memory of a client, of a step or as the slope over the steps. */
#define MEMORY(at) \
	{ "server resident %.1f KiB a client", at ".server_rss_bytes_per_client", 1024 }, \
	{ ", pinned %.2f", at ".server_pinned_bytes_per_client", 1024 }, \
	{ "; kernel of the machine %.1f", at ".machine_kernel_bytes_per_client", 1024 }

/* Figures of a step that the table has no room for: a line each, if the number at `path` is above `above`. What is not
 * known is left out. */
static const struct line {
	const char *path;
	double above;
	struct { const char *format, *path; double unit; } figures[6];
} lines[] = {
	{ "handshakes.resumed", 0, { { "TLS sessions resumed %.0f", "handshakes.resumed", 1 },
				     { ", full handshakes %.0f", "handshakes.full", 1 } } },
	{ "retries", 0, { { "%.0f attempts to connect were repeated", "retries", 1 } } },
	{ "churn.cycles", -1, { { "%.0f left and came back", "churn.cycles", 1 },
				{ ", %.0f did not", "churn.cycles_failed", 1 },
				{ "; %.0f a second", "churn.cycles_per_s", 1 },
				{ "; away p50 %.1f ms", "churn.away_ns.p50", 1e6 },
				{ "; queue pair pool hit rate %.2f %%", "churn.qp_pool_hit_ratio", 0.01 },
				{ ", recycled after p50 %.2f s", "churn.qp_recycle_ns.p50", 1e9 } } },
	{ "outages.lost", 0, { { "%.0f connections lost", "outages.lost", 1 },
			       { ", %.0f came back", "outages.ended", 1 },
			       { "; without a connection p50 %.2f s", "outages.outage_ns.p50", 1e9 },
			       { ", at most %.2f s", "outages.outage_ns.max", 1e9 },
			       { "; %.0f operations repeated", "outages.repeated", 1 } } },
	{ "fairness.clients", -1, { { "%.0f active", "fairness.clients", 1 },
				    { ", Jain's index %.4f", "fairness.jain_index", 1 },
				    { ", slowest %.1f", "fairness.slowest_msgs_per_s", 1 },
				    { " and fastest %.1f msgs/s", "fairness.fastest_msgs_per_s", 1 } } },
	{ "rails.available", 1, { { "striped over %.0f", "rails.used", 1 }, { " of %.0f rails", "rails.available", 1 } } },
	{ "rails.dropped", 0, { { "%.0f rails dropped by clients that went on with others", "rails.dropped", 1 } } },
	{ "verified.checked", -1, { { "%.0f", "verified.corrupt", 1 },
				    { " of %.0f checked operations corrupt", "verified.checked", 1 },
				    { "; at the server %.0f", "verified.server_corrupt", 1 },
				    { " of %.0f", "verified.server_checked", 1 } } },
	{ "memory.server_rss_bytes_per_client", -1, { MEMORY("memory") } },
};

static void print_line(const struct line *l, const json_t *o, FILE *out)
{
	for (size_t i = 0; i < sizeof(l->figures) / sizeof(l->figures[0]) && l->figures[i].format; i++)
		figure(out, l->figures[i].format, o, l->figures[i].path, l->figures[i].unit);
	fprintf(out, "\n");
}

static void print_streams(const json_t *step, FILE *out)
{
	const char *name;
	json_t *o;

	json_object_foreach(json_object_get(step, "streams"), name, o) {
		begin(out, step);
		fprintf(out, "%s", name);
		figure(out, " %.1f MB/s\n", o, "bytes_per_s", 1e6);
	}
}

static void print_sends(const json_t *run, const json_t *step, FILE *out)
{
	double sends = json_number_at(step, "sends_per_s");

	if (!(json_number_at(run, "config.coalesce") > 1 && sends > 0))
		return;
	begin(out, step);
	figure(out, "%.0f SENDs/s", step, "sends_per_s", 1);
	figure(out, ", %.1f messages in each\n", step, "throughput_msgs_per_s", sends);
}

/* True if it was run with more than one size, so that a line must say which it is of. */
static bool has_sizes(const json_t *run)
{
	return json_array_size(json_at(run, "config.message_sizes")) > 1;
}

static void print_details(const json_t *run, FILE *out)
{
	static const struct line slopes = { .figures = { MEMORY("analysis.memory") } };
	json_t *step;
	size_t i;

	fprintf(out, "\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		if (has_sizes(run))
			figure(out, "Messages of %.0f bytes\n", step, "message_bytes", 1);
		for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {
			if (!(json_number_at(step, lines[k].path) > lines[k].above))
				continue;
			begin(out, step);
			print_line(&lines[k], step, out);
		}
		print_streams(step, out);
		print_sends(run, step, out);
	}
	if (json_is_object(json_at(run, "analysis.memory"))) {
		fprintf(out, "Memory slope over the steps: ");
		print_line(&slopes, run, out);
	}
}

static void print_failures(const json_t *run, FILE *out)
{
	json_t *step, *f;
	size_t i, k;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		json_array_foreach(json_object_get(step, "failures"), k, f) {
			begin(out, step);
			fprintf(out, "%lld failed at %s: %s (%s)\n", json_integer_value(json_object_get(f, "count")),
				json_text_at(f, "stage"), json_text_at(f, "code"), json_text_at(f, "meaning"));
		}
	}
}

/* What makes figures questionable, in words of run.json; that both sides share a machine is said by
 * the verdict's environment. */
static void print_validity(const json_t *run, FILE *out)
{
	json_t *step, *flag;
	size_t i, k;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		json_array_foreach(json_object_get(step, "validity"), k, flag) {
			const char *text = json_string_value(flag);

			if (strcmp(text, "not_steady") == 0 || strcmp(text, "generator_saturated") == 0 ||
			    strcmp(text, "server_and_generator_share_the_machine") == 0)
				continue;
			begin(out, step);
			fprintf(out, "%s\n", text);
		}
	}
}

/* Of a search, or of a ramp with an SLO: what the steps say of capacity. */
static void print_capacity(const struct loadgen_config *cfg, const json_t *run, FILE *out)
{
	static const struct {
		const char *title, *path, *reason;
	} rows[] = {
		{ "SLO capacity", "analysis.capacity.slo_capacity", "reason" },
		{ "knee", "analysis.capacity.knee", "text" },
		{ "first hard failure", "analysis.capacity.first_hard_failure", "reason" },
	};

	if (!cfg->find_capacity && cfg->slo.n == 0)
		return;
	fprintf(out, "\nCapacity%s%s\n", cfg->slo_text ? ", SLO " : "", cfg->slo_text ? cfg->slo_text : "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const json_t *c = json_at(run, rows[i].path);
		double clients = json_number_at(c, "clients"), low = json_number_at(c, "low");
		const char *bound = json_is_true(json_object_get(c, "at_least")) ? "at least " : "";
		char number[32] = "-";

		if (isfinite(clients) || (bound[0] && isfinite(low)))
			snprintf(number, sizeof(number), "%s%.0f", bound, isfinite(clients) ? clients : low);
		fprintf(out, "  %-18s  %-14s  %s%s\n", rows[i].title, number, json_text_at(c, rows[i].reason),
			json_is_true(json_object_get(c, "confirmed")) ? " (confirmed)" : "");
	}
}

static void print_verdict(const json_t *run, const char *where, FILE *out)
{
	json_t *c;
	size_t i;

	fprintf(out, "\nVerdict (%s)\n", where);
	json_array_foreach(json_object_get(run, "verdict"), i, c) {
		const char *result = json_text_at(c, "result");

		fprintf(out, "  %-5s", strcmp(result, "pass") == 0 ? "PASS" : strcmp(result, "fail") == 0 ? "FAIL" : "?");
		figure(out, " %6.0f clients", c, "clients", 1);
		if (has_sizes(run))
			figure(out, ", %.0f bytes", c, "message_bytes", 1);
		fprintf(out, ": %s %s (required: %s)\n", json_text_at(c, "criterion"), json_text_at(c, "measured"),
			json_text_at(c, "required"));
	}
	if (json_array_size(json_object_get(run, "verdict")) == 0)
		fprintf(out, "  none: no step was completed\n");
}

static void write_summary(const struct outcome *oc, const json_t *run, const char *where, FILE *out)
{
	print_table(oc->rows, out);
	print_stages(run, out);
	print_phases(run, out);
	print_details(run, out);
	print_repetitions(run, out);
	print_failures(run, out);
	print_validity(run, out);
	print_capacity(oc->cfg, run, out);
	print_verdict(run, where, out);
	fprintf(out, "\nStopped: %s%s%s\n", stop_reason_names[oc->stop_reason], oc->stop_detail[0] ? ": " : "",
		oc->stop_detail);
}

void summary_print(const struct outcome *oc, const json_t *run, const char *where, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return;
	write_summary(oc, run, where, memory);
	if (fclose(memory) == 0)
		utf8_print(text, out);
	free(text);
}
