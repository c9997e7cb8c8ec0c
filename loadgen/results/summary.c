/* Tables and verdict. See summary.h. */
#include "loadgen/results/summary.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

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

static void print_table(const json_t *rows, FILE *out)
{
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
		cell(out, row, "clients", 6, 0);
		cell(out, row, "bytes", 9, 0);
		cell(out, row, "held", 7, 0);
		cell(out, row, "failed", 7, 0);
		cell(out, row, "connect_p50_ms", 9, 2);
		cell(out, row, "connect_p99_ms", 8, 2);
		cell(out, row, "messages_per_s", 9, 0);
		cell(out, row, "mb_per_s", 9, 1);
		cell(out, row, "p50_us", 8, 0);
		cell(out, row, "p95_us", 8, 0);
		cell(out, row, "p99_us", 8, 0);
		cell(out, row, "p99_9_us", 8, 0);
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
		fprintf(out, "%6lld clients, %lld bytes, median (range): %.0f (%.0f to %.0f) msgs/s",
			json_integer_value(json_object_get(o, "clients")),
			json_integer_value(json_object_get(o, "bytes")),
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

static double value(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* With --phased: what each phase took for each connection. */
static void print_phases(const json_t *run, FILE *out)
{
	json_t *step, *phases;
	size_t i;
	bool titled = false;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		phases = json_object_get(step, "phase_ns_per_connection");
		if (!json_is_object(phases) || json_object_size(phases) == 0)
			continue;
		if (!titled)
			fprintf(out, "\nphase us/conn tcp     tls hs  psn exch      addr     route  qp setup"
				"      rdma  1st reply\n");
		titled = true;
		fprintf(out, "%6lld", json_integer_value(json_object_get(step, "target_clients")));
		for (int k = 0; k < STAGE_TIMED; k++) {
			double ns = value(phases, stage_names[k]);

			if (isfinite(ns))
				fprintf(out, " %9.1f", ns / 1e3);
			else
				fprintf(out, " %9s", "-");
		}
		fprintf(out, "\n");
	}
}

/* Prints nothing for a figure that is not known. */
static void __attribute__((format(printf, 2, 0))) figure(FILE *out, const char *format, double v)
{
	if (isfinite(v))
		fprintf(out, format, v);
}

static void print_churn(const json_t *step, FILE *out)
{
	const json_t *c = json_object_get(step, "churn"), *away = json_object_get(c, "away_ns");

	if (!json_is_object(c))
		return;
	fprintf(out, "%6lld clients: %lld left and came back, %lld did not",
		json_integer_value(json_object_get(step, "target_clients")),
		json_integer_value(json_object_get(c, "cycles")),
		json_integer_value(json_object_get(c, "cycles_failed")));
	figure(out, "; %.0f a second", value(c, "cycles_per_s"));
	figure(out, "; away p50 %.1f ms", value(away, "p50") / 1e6);
	figure(out, "; queue pair pool hit rate %.2f %%", 100 * value(c, "qp_pool_hit_ratio"));
	figure(out, ", recycled after p50 %.2f s", value(json_object_get(c, "qp_recycle_ns"), "p50") / 1e9);
	fprintf(out, "\n");
}

static void print_fairness(const json_t *step, FILE *out)
{
	const json_t *f = json_object_get(step, "fairness");

	if (!json_is_object(f))
		return;
	fprintf(out, "%6lld clients: %lld active", json_integer_value(json_object_get(step, "target_clients")),
		json_integer_value(json_object_get(f, "clients")));
	figure(out, ", Jain's index %.4f", value(f, "jain_index"));
	figure(out, ", slowest %.1f", value(f, "slowest_msgs_per_s"));
	figure(out, " and fastest %.1f msgs/s", value(f, "fastest_msgs_per_s"));
	fprintf(out, "\n");
}

static void print_streams(const json_t *step, FILE *out)
{
	const char *name;
	json_t *o;

	json_object_foreach(json_object_get(step, "streams"), name, o)
		fprintf(out, "%6lld clients: %s %.1f MB/s\n", json_integer_value(json_object_get(step, "target_clients")),
			name, value(o, "bytes_per_s") / 1e6);
}

/* Rails, if there are several. */
static void print_rails(const json_t *step, FILE *out)
{
	const json_t *r = json_object_get(step, "rails");
	long long available = json_integer_value(json_object_get(r, "available"));
	long long dropped = json_integer_value(json_object_get(r, "dropped"));

	if (available < 2)
		return;
	fprintf(out, "%6lld clients: striped over %lld of %lld rails",
		json_integer_value(json_object_get(step, "target_clients")),
		json_integer_value(json_object_get(r, "used")), available);
	if (dropped)
		fprintf(out, "; %lld dropped by clients that went on with others", dropped);
	fprintf(out, "\n");
}

static void print_sends(const json_t *run, const json_t *step, FILE *out)
{
	double coalesce = value(json_object_get(run, "config"), "coalesce"), sends = value(step, "sends_per_s");

	if (coalesce > 1 && sends > 0)
		fprintf(out, "%6lld clients: %.0f SENDs/s, %.1f messages in each\n",
			json_integer_value(json_object_get(step, "target_clients")), sends,
			value(step, "throughput_msgs_per_s") / sends);
}

static void print_verified(const json_t *step, FILE *out)
{
	const json_t *v = json_object_get(step, "verified");

	if (!json_is_object(v))
		return;
	fprintf(out, "%6lld clients: %lld of %lld checked operations corrupt",
		json_integer_value(json_object_get(step, "target_clients")),
		json_integer_value(json_object_get(v, "corrupt")), json_integer_value(json_object_get(v, "checked")));
	figure(out, "; at the server %.0f", value(v, "server_corrupt"));
	figure(out, " of %.0f", value(v, "server_checked"));
	fprintf(out, "\n");
}

static void print_memory(const json_t *step, FILE *out)
{
	const json_t *m = json_object_get(step, "memory");
	double rss = value(m, "server_rss_bytes_per_client");

	if (!isfinite(rss))
		return;
	fprintf(out, "%6lld clients: server resident %.1f KiB a client",
		json_integer_value(json_object_get(step, "target_clients")), rss / 1024);
	figure(out, ", pinned %.2f", value(m, "server_pinned_bytes_per_client") / 1024);
	figure(out, "; kernel of the machine %.1f", value(m, "machine_kernel_bytes_per_client") / 1024);
	fprintf(out, "\n");
}

static void print_handshakes(const json_t *step, FILE *out)
{
	const json_t *h = json_object_get(step, "handshakes");
	long long resumed = json_integer_value(json_object_get(h, "resumed"));
	long long retries = json_integer_value(json_object_get(step, "retries"));
	long long clients = json_integer_value(json_object_get(step, "target_clients"));

	if (resumed)
		fprintf(out, "%6lld clients: TLS sessions resumed %lld, full handshakes %lld\n", clients, resumed,
			json_integer_value(json_object_get(h, "full")));
	if (retries)
		fprintf(out, "%6lld clients: %lld attempts to connect were repeated\n", clients, retries);
}

static void print_slopes(const json_t *run, FILE *out)
{
	const json_t *m = json_object_get(json_object_get(run, "analysis"), "memory");

	if (!json_is_object(m))
		return;
	fprintf(out, "Memory slope over the steps: server resident %.1f KiB a client",
		value(m, "server_rss_bytes_per_client") / 1024);
	figure(out, ", pinned %.2f", value(m, "server_pinned_bytes_per_client") / 1024);
	figure(out, "; kernel of the machine %.1f", value(m, "machine_kernel_bytes_per_client") / 1024);
	fprintf(out, "\n");
}

/* True if it was run with more than one size, so that a line must say which it is of. */
static bool has_sizes(const json_t *run)
{
	return json_array_size(json_object_get(json_object_get(run, "config"), "message_sizes")) > 1;
}

/* Figures that the table has no room for. */
static void print_details(const json_t *run, FILE *out)
{
	json_t *step;
	size_t i;

	fprintf(out, "\n");
	json_array_foreach(json_object_get(run, "steps"), i, step) {
		if (has_sizes(run))
			fprintf(out, "Messages of %lld bytes\n", json_integer_value(json_object_get(step, "message_bytes")));
		print_handshakes(step, out);
		print_churn(step, out);
		print_fairness(step, out);
		print_streams(step, out);
		print_rails(step, out);
		print_sends(run, step, out);
		print_verified(step, out);
		print_memory(step, out);
	}
	print_slopes(run, out);
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

/* Of a search, or of a ramp with an SLO: what the steps say of capacity. */
static void print_capacity(const struct loadgen_config *cfg, const json_t *run, FILE *out)
{
	static const struct {
		const char *title, *path, *reason;
	} lines[] = {
		{ "SLO capacity", "analysis.capacity.slo_capacity", "reason" },
		{ "knee", "analysis.capacity.knee", "text" },
		{ "first hard failure", "analysis.capacity.first_hard_failure", "reason" },
	};

	if (!cfg->find_capacity && cfg->slo.n == 0)
		return;
	fprintf(out, "\nCapacity%s%s\n", cfg->slo_text ? ", SLO " : "", cfg->slo_text ? cfg->slo_text : "");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const json_t *c = json_at(run, lines[i].path);
		double clients = json_number_at(c, "clients"), low = json_number_at(c, "low");
		const char *bound = json_is_true(json_object_get(c, "at_least")) ? "at least " : "";
		char number[32] = "-";

		if (isfinite(clients) || (bound[0] && isfinite(low)))
			snprintf(number, sizeof(number), "%s%.0f", bound, isfinite(clients) ? clients : low);
		fprintf(out, "  %-18s  %-14s  %s%s\n", lines[i].title, number, json_text_at(c, lines[i].reason),
			json_is_true(json_object_get(c, "confirmed")) ? " (confirmed)" : "");
	}
}

static void print_verdict(const json_t *run, const char *where, FILE *out)
{
	json_t *c;
	size_t i;

	fprintf(out, "\nVerdict (%s)\n", where);
	json_array_foreach(json_object_get(run, "verdict"), i, c) {
		const char *result = json_string_value(json_object_get(c, "result"));

		fprintf(out, "  %-5s %6lld clients",
			strcmp(result, "pass") == 0 ? "PASS" : strcmp(result, "fail") == 0 ? "FAIL" : "?",
			json_integer_value(json_object_get(c, "clients")));
		if (has_sizes(run) && json_object_get(c, "message_bytes"))
			fprintf(out, ", %lld bytes", json_integer_value(json_object_get(c, "message_bytes")));
		fprintf(out, ": %s %s (required: %s)\n",
			json_string_value(json_object_get(c, "criterion")),
			json_string_value(json_object_get(c, "measured")),
			json_string_value(json_object_get(c, "required")));
	}
	if (json_array_size(json_object_get(run, "verdict")) == 0)
		fprintf(out, "  none: no step was completed\n");
}

void summary_print(const struct outcome *oc, const json_t *run, const char *where, const char *dir, FILE *out)
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
	fprintf(out, "\nStopped: %s%s%s\nResults: %s\n", stop_reason_names[oc->stop_reason],
		oc->stop_detail[0] ? ": " : "", oc->stop_detail, dir);
}
