/* SPDX-License-Identifier: BSD-2-Clause */
/* See remarks.h. */
#include "loadgen/results/remarks.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/analysis/validity.h"
#include "loadgen/step/step.h"

static void __attribute__((format(printf, 3, 4)))
line(FILE *out, const json_t *step, const char *format, ...)
{
	double clients = json_number_at(step, "target_clients");
	va_list args;

	if (isfinite(clients))
		fprintf(out, "%6.0f clients: ", clients);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fprintf(out, "\n");
}

/* --- where a "-" stands --- */

/* Percentiles in the tables, with the samples that they take (common/hist/hist.h). */
static const struct {
	const char *name, *of, *path;
	double samples;
} percentiles[] = {
	{ "connect p50", "connect_ns.total.count", "connect_ns.total.p50", 5 },
	{ "connect p99", "connect_ns.total.count", "connect_ns.total.p99", 299 },
	{ "response p95", "response_ns.count", "response_ns.p95", 59 },
	{ "response p99", "response_ns.count", "response_ns.p99", 299 },
	{ "response p99.9", "response_ns.count", "response_ns.p99_9", 2995 },
};

/* "connect p99 (10 of 299), response p99.9 (1200 of 2995)". Without any sample the reason is another one. */
static void print_few(const json_t *step, FILE *out)
{
	char text[256] = "";

	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		double count = json_number_at(step, percentiles[i].of);
		size_t n = strlen(text);

		if (count > 0 && !isfinite(json_number_at(step, percentiles[i].path)))
			snprintf(text + n, sizeof(text) - n, "%s%s (%.0f of %.0f)", n ? ", " : "", percentiles[i].name, count,
				 percentiles[i].samples);
	}
	if (*text)
		line(out, step, "- is too few samples: %s", text);
}

static void print_dashes(const json_t *run, const json_t *step, FILE *out)
{
	const char *workload = json_text_at(run, "config.workload");
	bool silent = workload && (strcmp(workload, "connect") == 0 || strcmp(workload, "idle") == 0);

	if (json_number_at(step, "connect_ns.total.count") == 0)
		line(out, step, "- for connect: no client got connected");
	if (json_number_at(step, "response_ns.count") == 0)
		line(out, step, "- for msgs/s and response: %s", silent ? "this workload has no operations" :
		     isfinite(json_number_at(step, "measured_s")) ? "no operation ended in the measured time" :
		     "nothing was measured");
	print_few(step, out);
	if (json_is_null(json_at(step, "resources.server.cpu_user_s")))
		line(out, step, "- for the server's CPU: its report from before or after the measured time is missing");
	if (json_is_null(json_at(step, "server_stages_ns")))
		line(out, step, "- for the server's stages: its report is missing, or is not of this step alone");
	else if (json_number_at(step, "handshakes.full") == 0 && json_number_at(step, "handshakes.resumed") > 0)
		line(out, step, "- for the server's tls: all TLS sessions were resumed");
}

/* --- validity --- */

static const char *rose(double change)
{
	return change > 0 ? "rose" : "fell";
}

static void print_not_steady(const json_t *step, FILE *out)
{
	double intervals = json_number_at(step, "drift.intervals");
	double throughput = json_number_at(step, "drift.throughput_ratio"), p99 = json_number_at(step, "drift.p99_ratio");

	if (fabs(throughput) > STEP_STEADY_THROUGHPUT)
		line(out, step, "not_steady: throughput %s by %.0f %% over the measured time (%.0f %% are allowed)",
		     rose(throughput), 100 * fabs(throughput), 100 * STEP_STEADY_THROUGHPUT);
	else if (fabs(p99) > STEP_STEADY_P99)
		line(out, step, "not_steady: the p99 %s by %.0f %% over the measured time (%.0f %% are allowed)", rose(p99),
		     100 * fabs(p99), 100 * STEP_STEADY_P99);
	else
		line(out, step, "not_steady: it takes %d intervals to tell, and there were %.0f; a longer --duration has more",
		     STEP_STEADY_INTERVALS, isfinite(intervals) ? intervals : 0);
}

static void print_littles_law(const json_t *step, FILE *out)
{
	double residual = json_number_at(step, "littles_law_residual");

	line(out, step, "littles_law_violated: throughput x mean round trip is %.1f %% %s than the operations that clients keep in "
	     "flight (%.0f %% are allowed): %s", 100 * fabs(residual), residual > 0 ? "less" : "more",
	     100 * STEP_LITTLE_RESIDUAL, residual > 0 ? "clients were idle in between, or had left" :
	     "clients that left had sent, too");
}

static void print_seconds(const json_t *step, FILE *out, const char *flag, const char *words, const char *path)
{
	line(out, step, "%s: %s for %.1f s", flag, words, json_number_at(step, path) / 1e9);
}

static void print_counts(const json_t *step, FILE *out)
{
	line(out, step, "server_counts_differ: the server counted %.0f clients, the generator %.0f",
	     json_number_at(step, "server_connected"), json_number_at(step, "connected_peak"));
}

/* Of one host the table says it; of several, which of them. */
static void print_saturated(const json_t *hosts, const json_t *step, FILE *out)
{
	char names[READ_NAMES_MAX];

	if (*read_saturated_hosts(hosts, step, names))
		line(out, step, "generator_saturated: %s had no more to give: add hosts", names);
}

static void print_skew(const json_t *step, FILE *out)
{
	line(out, step, "skew: the hosts began to measure %.1f ms apart (--max-skew %.1f ms)",
	     json_number_at(step, "hosts_skew.start_skew_ns") / 1e6, json_number_at(step, "hosts_skew.limit_ns") / 1e6);
}

static void print_flag(const json_t *hosts, const json_t *step, const char *flag, FILE *out)
{
	enum validity which = validity_find(flag);

	if (which == VALIDITY_GENERATOR_SATURATED)
		print_saturated(hosts, step, out);
	else if (which == VALIDITY_SKEW)
		print_skew(step, out);
	else if (which == VALIDITY_NOT_STEADY)
		print_not_steady(step, out);
	else if (which == VALIDITY_LITTLES_LAW_VIOLATED)
		print_littles_law(step, out);
	else if (which == VALIDITY_SERVER_COUNTS_DIFFER)
		print_counts(step, out);
	else if (which == VALIDITY_CLOCK_HOLE)
		print_seconds(step, out, flag, "a thread of the generator did not run", "clock_late_ns");
	else if (which == VALIDITY_REPLIES_STALLED)
		print_seconds(step, out, flag, "no reply came", "reply_stall_ns");
	else if (which == VALIDITY_FLAGS)
		line(out, step, "%s", flag);
	else if (which != VALIDITY_SHARED_MACHINE)	/* the verdict's heading says that */
		line(out, step, "%s: %s", flag, validity_flags[which].meaning);
}

void remarks_print(const json_t *run, FILE *out)
{
	json_t *step, *flag;
	size_t i, k;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		print_dashes(run, step, out);
		json_array_foreach(json_object_get(step, "validity"), k, flag) {
			if (json_is_string(flag))
				print_flag(json_object_get(run, "hosts"), step, json_string_value(flag), out);
		}
	}
}
