/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and verdict. See summary.h. */
#include "loadgen/results/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "loadgen/analysis/read.h"
#include "loadgen/results/hosts_table.h"
#include "loadgen/results/remarks.h"

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

static void print_table(const json_t *rows, size_t hosts, FILE *out)
{
	static const struct {
		const char *name;
		int width, decimals;
		double unit;
	} columns[] = {
		{ "clients", 6, 0, 1 }, { "bytes", 9, 0, 1 }, { "held", 7, 0, 1 }, { "failed", 7, 0, 1 },
		{ "connect_p50_ms", 9, 2, 1 }, { "connect_p99_ms", 8, 2, 1 }, { "messages_per_s", 9, 0, 1 },
		{ "mb_per_s", 9, 1, 1 }, { "gbit_per_s", 7, 2, 1 }, { "min_us", 8, 0, 1 }, { "mean_us", 8, 0, 1 },
		{ "p50_us", 8, 0, 1 }, { "p95_us", 8, 0, 1 }, { "p99_us", 8, 0, 1 },
		{ "p99_9_us", 8, 0, 1 }, { "server_cpus", 7, 0, 0.01 }, { "generator_cpus", 10, 0, 0.01 },
		{ "server_rss_mib", 11, 0, 1 },
	};
	bool saturated = false;
	json_t *row;
	size_t i;

	if (json_array_size(rows) == 0)
		return;
	fprintf(out, "                                     connect time ms                                response us"
		"                                           CPU %%\n");
	fprintf(out, "clients     bytes    held  failed       p50      p99    msgs/s      MB/s  Gbit/s      min     mean      p50"
		"      p95      p99    p99.9  server  generator  server MiB  steady\n");
	json_array_foreach((json_t *)rows, i, row) {
		bool was = json_is_true(json_object_get(row, "generator_saturated"));

		for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
			cell(out, row, columns[k].name, columns[k].width, columns[k].decimals, columns[k].unit);
		fprintf(out, "  %s%s\n", json_is_true(json_object_get(row, "steady")) ? "yes" : "no", was ? " *" : "");
		saturated |= was;
	}
	if (saturated)
		fprintf(out, "* the generator was saturated: the server can do at least this%s\n", hosts > 1 ? "; add hosts" : "");
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
	fprintf(out, "\nstage p50 ms  tcp     tls hs  psn exch    socket      addr     route  qp setup      rdma"
		"  1st reply | psn gen | server: tls  psn gen  qp setup  accept\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		figure(out, "%6.0f", step, "target_clients", 1);
		for (int k = 0; k < STAGE_TIMED; k++) {
			snprintf(path, sizeof(path), "connect_ns.%s.p50", stage_names[k]);
			cell(out, step, path, 9, 3, 1e6);
		}
		fprintf(out, "  |");
		cell(out, step, "connect_ns.psn_generate.p50", 7, 3, 1e6);
		fprintf(out, "  |");
		for (size_t k = 0; k < sizeof(server) / sizeof(server[0]); k++) {
			snprintf(path, sizeof(path), "server_stages_ns.%s.p50", server[k]);
			cell(out, step, path, 9, 3, 1e6);
		}
		fprintf(out, "\n");
	}
}

/* What an operation costs both ends, and the most that a step took of them. */
static void print_work(const json_t *run, FILE *out)
{
	static const struct {
		const char *path;
		int width, decimals;
		double unit;
	} columns[] = {
		{ "cpu_ns_per_op", 10, 1, 1e3 }, { "switches_per_op", 12, 3, 1 }, { "peak.cpus", 10, 0, 0.01 },
		{ "peak.threads", 8, 0, 1 }, { "peak.fds", 7, 0, 1 }, { "peak.machine_available_least_bytes", 15, 0, 1048576 },
	};
	static const char *const sides[] = { "server", "generator" };
	json_t *step;
	size_t i;

	if (json_array_size(json_object_get(run, "steps")) == 0)
		return;
	fprintf(out, "\nclients          side  CPU us/op  switches/op  CPU %% peak  threads    fds  MiB free least\n");
	json_array_foreach(json_object_get(run, "steps"), i, step)
		for (size_t k = 0; k < 2; k++) {
			const json_t *o = json_object_get(json_object_get(step, "resources"), sides[k]);

			figure(out, "%6.0f", step, "target_clients", 1);
			fprintf(out, "  %13s", sides[k]);
			for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
				cell(out, o, columns[c].path, columns[c].width, columns[c].decimals, columns[c].unit);
			fprintf(out, "\n");
		}
}

/* A server of a step, or all of them: then `o` is the step. */
static void server_line(FILE *out, const json_t *step, const json_t *o, const char *clients, const json_t *connect,
			const json_t *resources, const char *name)
{
	const struct {
		const json_t *of;
		const char *path;
		int width, decimals;
		double unit;
	} columns[] = {
		{ step, "target_clients", 6, 0, 1 }, { o, clients, 7, 0, 1 }, { o, "connected_held", 7, 0, 1 }, { o, "failed", 7, 0, 1 },
		{ o, "dropped", 8, 0, 1 }, { o, "server_connected", 8, 0, 1 }, { connect, "p50", 9, 2, 1e6 },
		{ connect, "p99", 8, 2, 1e6 }, { o, "throughput_msgs_per_s", 9, 0, 1 }, { o, "response_ns.p50", 8, 0, 1e3 },
		{ o, "response_ns.p99", 8, 0, 1e3 }, { resources, "cpus", 6, 0, 0.01 }, { resources, "rss_bytes", 8, 1, 1048576 },
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		cell(out, columns[i].of, columns[i].path, columns[i].width, columns[i].decimals, columns[i].unit);
	fprintf(out, "  %s\n", name);
}

/* Several servers: what each of them had, and all together. */
static void print_servers(const json_t *run, FILE *out)
{
	json_t *step, *o;
	size_t i, k;

	if (json_array_size(json_at(run, "servers")) == 0 || json_array_size(json_object_get(run, "steps")) == 0)
		return;
	fprintf(out, "\n                                       server   connect time ms              response us\n"
		"clients   dealt    held  failed  dropped   counts       p50      p99    msgs/s      p50      p99  CPU %%      MiB"
		"  server\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		json_array_foreach(json_object_get(step, "servers"), k, o) {
			server_line(out, step, o, "clients", json_object_get(o, "connect_total_ns"), json_object_get(o, "resources"),
				    json_text_at(o, "target"));
		}
		server_line(out, step, step, "target_clients", json_at(step, "connect_ns.total"), json_at(step, "resources.server"),
			    "all");
	}
}

/* "tls_handshake 53.1 (29 %)", in a column; "-" where it is not known. */
static void longest_cell(FILE *out, const json_t *longest)
{
	const char *stage = json_text_at(longest, "stage");
	char text[64] = "-";

	if (stage)
		snprintf(text, sizeof(text), "%.24s %.3f (%.0f %%)", stage, json_number_at(longest, "ns") / 1e6,
			 100 * json_number_at(longest, "ratio"));
	fprintf(out, "  %-30s", text);
}

/* A line of connection times: of a step, or of clients that connected one at a time. `alone_ns` is the p50 of these. */
static void connecting_line(FILE *out, const char *who, const json_t *times, const json_t *longest, double alone_ns)
{
	double p50 = json_number_at(times, "total.p50");

	fprintf(out, "%-16s", who);
	cell(out, times, "total.p50", 9, 2, 1e6);
	cell(out, times, "total.p99", 8, 2, 1e6);
	if (isfinite(p50 / alone_ns))
		fprintf(out, " %6.1f", p50 / alone_ns);
	else
		fprintf(out, " %6s", "-");
	longest_cell(out, json_object_get(longest, "p50"));
	longest_cell(out, json_object_get(longest, "p99"));
	fprintf(out, "\n");
}

/* Connection times of many at once beside those of one at a time, and where they went. */
static void print_connecting(const json_t *run, FILE *out)
{
	double alone_ns = json_number_at(run, "floor.before.connect_ns.total.p50");
	json_t *step, *after = json_at(run, "floor.after");
	char who[32];
	size_t i;

	if (!json_is_object(json_at(run, "floor.before")) || json_array_size(json_object_get(run, "steps")) == 0)
		return;
	fprintf(out, "\nconnecting, ms        p50      p99  times  longest stage, p50              p99\n");
	connecting_line(out, "one at a time", json_at(run, "floor.before.connect_ns"), json_at(run, "floor.before.longest"),
			alone_ns);
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		snprintf(who, sizeof(who), "%6.0f clients", json_number_at(step, "target_clients"));
		connecting_line(out, who, json_object_get(step, "connect_ns"), json_object_get(step, "connect_longest"),
				alone_ns);
	}
	if (json_is_object(after))
		connecting_line(out, "alone afterwards", json_object_get(after, "connect_ns"),
				json_object_get(after, "longest"), alone_ns);
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
			fprintf(out, "\nphase us/conn tcp     tls hs  psn exch    socket      addr     route  qp setup"
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

/* What a side's ports carried. */
#define NETWORK(side) \
	{ "network of the " side ": sent %.1f MB/s", "network." side ".bytes_out_per_s", 1e6 }, \
	{ ", received %.1f MB/s", "network." side ".bytes_in_per_s", 1e6 }, \
	{ "; %.1f %% of its line", "network." side ".used_ratio", 0.01 }

/* Figures of a step that the table has no room for: a line each, if the number at `path` is above `above`. What is not
 * known is left out. */
static const struct work_line {
	const char *path;
	double above;
	struct { const char *format, *path; double unit; } figures[6];
} lines[] = {
	{ "handshakes.resumed", 0, { { "TLS sessions resumed %.0f", "handshakes.resumed", 1 },
				     { ", full handshakes %.0f", "handshakes.full", 1 } } },
	{ "retries", 0, { { "%.0f attempts to connect were repeated", "retries", 1 },
			  { " (%.2f %% of", "rates.retries.per_attempt_ratio", 0.01 }, { " %.0f)", "rates.attempts", 1 },
			  { ", %.2f a second", "rates.retries.per_s", 1 } } },
	{ "rates.timeouts.count", 0, { { "%.0f attempts to connect, or replies, timed out", "rates.timeouts.count", 1 },
				       { " (%.2f %%)", "rates.timeouts.per_attempt_ratio", 0.01 },
				       { ", %.2f a second", "rates.timeouts.per_s", 1 } } },
	{ "rates.refusals.count", 0, { { "%.0f attempts to connect were refused", "rates.refusals.count", 1 },
				       { " (%.2f %%)", "rates.refusals.per_attempt_ratio", 0.01 },
				       { ", %.2f a second", "rates.refusals.per_s", 1 } } },
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
	{ "one_way_ns.count", 0, { { "one way, half of the round trip: min %.2f", "one_way_ns.min", 1e3 },
				   { ", mean %.2f", "one_way_ns.mean", 1e3 }, { ", p50 %.2f", "one_way_ns.p50", 1e3 },
				   { ", p99 %.2f", "one_way_ns.p99", 1e3 }, { ", p99.9 %.2f", "one_way_ns.p99_9", 1e3 },
				   { ", max %.2f us", "one_way_ns.max", 1e3 } } },
	{ "rails.available", 1, { { "striped over %.0f", "rails.used", 1 }, { " of %.0f rails", "rails.available", 1 } } },
	{ "rails.dropped", 0, { { "%.0f rails dropped by clients that went on with others", "rails.dropped", 1 } } },
	{ "verified.checked", -1, { { "%.0f", "verified.corrupt", 1 },
				    { " of %.0f checked operations corrupt", "verified.checked", 1 },
				    { "; at the server %.0f", "verified.server_corrupt", 1 },
				    { " of %.0f", "verified.server_checked", 1 } } },
	{ "memory.server_rss_bytes_per_client", -1, { MEMORY("memory") } },
	{ "network.server.bytes_out_per_s", -1, { NETWORK("server") } },
	{ "network.generator.bytes_out_per_s", -1, { NETWORK("generator") } },
};

static void print_line(const struct work_line *l, const json_t *o, FILE *out)
{
	for (size_t i = 0; i < sizeof(l->figures) / sizeof(l->figures[0]) && l->figures[i].format; i++)
		figure(out, l->figures[i].format, o, l->figures[i].path, l->figures[i].unit);
	fprintf(out, "\n");
}

/* A line for a side whose device counted anything that a network without faults does not have. */
static void print_faults(const json_t *step, const json_t *network, const char *side, FILE *out)
{
	static const struct {
		const char *name, *words;
	} faults[] = {
		{ "retransmits", "sent again" }, { "retries_exceeded", "connections given up after all retries" },
		{ "rnr_naks_sent", "receiver-not-ready sent" }, { "rnr_naks_received", "receiver-not-ready received" },
		{ "out_of_sequence", "out of sequence" }, { "duplicate_requests", "requests twice" },
		{ "cnps_sent", "congestion notifications sent" }, { "cnps_received", "congestion notifications received" },
	};
	const json_t *o = json_object_get(network, side);
	bool any = false;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		double n = json_number_at(o, faults[i].name);

		if (!(n > 0))
			continue;
		if (!any) {
			begin(out, step);
			fprintf(out, "%sdevice of the %s%s:", network == json_at(step, "network") ? "" : "while connecting, ", side,
				json_is_true(json_object_get(o, "loopback")) ? " (both ends)" : "");
		}
		fprintf(out, "%s %.0f %s", any ? "," : "", n, faults[i].words);
		any = true;
	}
	if (any)
		fprintf(out, "\n");
}

static void print_network(const json_t *step, const json_t *network, FILE *out)
{
	print_faults(step, network, "server", out);
	/* On one machine both read the same device. */
	if (!json_is_true(json_at(network, "generator.loopback")))
		print_faults(step, network, "generator", out);
}

/* The directions of a workload that has two, or the kinds of its operations. */
static void print_parts(const json_t *step, const char *parts, FILE *out)
{
	static const struct work_line of_part = { .figures = {
		{ " %.0f operations/s", "msgs_per_s", 1 }, { ", %.1f MB/s", "bytes_per_s", 1e6 },
		{ "; p50 %.0f", "response_ns.p50", 1e3 }, { ", p99 %.0f us", "response_ns.p99", 1e3 },
		{ "; Jain's index %.4f", "fairness.jain_index", 1 },
		{ "; %.0f %% of the time behind earlier ones", "head_of_line_ratio", 0.01 } } };
	const char *name;
	json_t *o;

	json_object_foreach(json_object_get(step, parts), name, o) {
		begin(out, step);
		fprintf(out, "%s", name);
		print_line(&of_part, o, out);
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
	static const struct work_line slopes = { .figures = { MEMORY("analysis.memory") } };
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
		print_network(step, json_at(step, "network.connecting"), out);
		print_network(step, json_at(step, "network"), out);
		print_parts(step, "streams", out);
		print_parts(step, "kinds", out);
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

	if ((!cfg->find_capacity && cfg->slo.n == 0) || loadgen_is_swept(cfg))
		return;
	fprintf(out, "\nCapacity%s%s\n", cfg->slo_text ? ", SLO " : "", cfg->slo_text ? cfg->slo_text : "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const json_t *c = json_at(run, rows[i].path);
		double clients = json_number_at(c, "clients"), low = json_number_at(c, "low");
		const char *bound = json_is_true(json_object_get(c, "at_least")) ? "at least " : "";
		char number[32] = "-", hosts[READ_NAMES_MAX];

		/* More hosts would tell the number. */
		if (bound[0] && *read_hosts_at_limit(json_object_get(run, "hosts"), json_object_get(run, "steps"),
						     isfinite(clients) ? clients : low, hosts))
			snprintf(number, sizeof(number), "add hosts");
		else if (isfinite(clients) || (bound[0] && isfinite(low)))
			snprintf(number, sizeof(number), "%s%.0f", bound, isfinite(clients) ? clients : low);
		fprintf(out, "  %-18s  %-14s  %s%s\n", rows[i].title, number, json_text_at(c, rows[i].reason),
			json_is_true(json_object_get(c, "confirmed")) ? " (confirmed)" : "");
	}
}

static bool has_flag(const json_t *step, const char *name)
{
	json_t *flag;
	size_t i;

	json_array_foreach(json_object_get(step, "validity"), i, flag) {
		if (strcmp(json_string_value(flag), name) == 0)
			return true;
	}
	return false;
}

/* Of a sweep: each rate, and where the knee is. */
static void print_offered(const json_t *run, FILE *out)
{
	const json_t *found = json_at(run, "analysis.offered_load.slo_rate");
	json_t *step, *curve;
	size_t i;

	if (!json_is_object(json_at(run, "analysis.offered_load")))
		return;
	fprintf(out, "\n     offered/s    achieved/s  response us p50       p99     p99.9  sent late p99\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		cell(out, step, "offered_per_s", 13, 0, 1);
		cell(out, step, "throughput_msgs_per_s", 13, 0, 1);
		cell(out, step, "response_ns.p50", 16, 0, 1e3);
		cell(out, step, "response_ns.p99", 9, 0, 1e3);
		cell(out, step, "response_ns.p99_9", 9, 0, 1e3);
		cell(out, step, "schedule_lag_ns.p99", 14, 0, 1e3);
		fprintf(out, "%s%s\n", has_flag(step, "behind_schedule") ? "  behind schedule" : "",
			has_flag(step, "generator_saturated") ? " *" : "");
	}
	json_array_foreach(json_at(run, "analysis.offered_load.curves"), i, curve) {
		figure(out, "%.0f clients", curve, "clients", 1);
		figure(out, ", %.0f bytes", curve, "message_bytes", 1);
		figure(out, ": knee at %.0f/s", curve, "knee.per_s", 1);
		fprintf(out, ": %s\n", json_text_at(curve, "knee.text"));
	}
	if (json_is_object(found)) {
		fprintf(out, "SLO rate");
		figure(out, " %.0f/s", found, "per_s", 1);
		fprintf(out, ": %s%s\n", json_text_at(found, "reason"),
			json_is_true(json_object_get(found, "confirmed")) ? " (confirmed)" : "");
	}
}

static void print_verdict(const json_t *run, const char *where, FILE *out)
{
	size_t i, not_judged = 0;
	json_t *c;

	fprintf(out, "\nVerdict (%s)\n", where);
	json_array_foreach(json_object_get(run, "verdict"), i, c) {
		const char *result = json_text_at(c, "result");

		not_judged += strcmp(result, "not_judged") == 0;
		fprintf(out, "  %-5s", strcmp(result, "pass") == 0 ? "PASS" : strcmp(result, "fail") == 0 ? "FAIL" :
			strcmp(result, "not_judged") == 0 ? "-" : "?");
		figure(out, " %6.0f clients", c, "clients", 1);
		if (has_sizes(run))
			figure(out, ", %.0f bytes", c, "message_bytes", 1);
		fprintf(out, ": %s %s (required: %s)\n", json_text_at(c, "criterion"), json_text_at(c, "measured"),
			json_text_at(c, "required"));
	}
	if (json_array_size(json_object_get(run, "verdict")) == 0)
		fprintf(out, "  none: no step was completed\n");
	if (not_judged)
		fprintf(out, "  %zu of %zu criteria were not judged, because times measured here say nothing of hardware; --judge all "
			"judges them\n", not_judged, json_array_size(json_object_get(run, "verdict")));
}

static void write_summary(const struct outcome *oc, const json_t *run, const char *where, FILE *out)
{
	if (oc->cfg->transport != TRANSPORT_RDMA)
		fprintf(out, "Messages over %s, not over RDMA%s: packet sequence numbers do not apply.\n",
			transport_names[oc->cfg->transport],
			oc->cfg->fell_back ? " (--transport auto: this machine has no RDMA device)" : "");
	print_table(oc->rows, json_array_size(json_object_get(run, "hosts")), out);
	print_connecting(run, out);
	print_stages(run, out);
	print_servers(run, out);
	print_work(run, out);
	print_phases(run, out);
	print_details(run, out);
	print_repetitions(run, out);
	print_failures(run, out);
	hosts_table_print(run, out);
	remarks_print(run, out);
	print_capacity(oc->cfg, run, out);
	print_offered(run, out);
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
