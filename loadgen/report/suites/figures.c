/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of suite.json in tables and charts. See figures.h; loadgen/suites/suite_results.h makes them. */
#include "loadgen/report/suites/figures.h"

#include <math.h>

#include "common/base/json_at.h"

static const struct page_column columns[] = {
	{ "clients#", "clients", 1, 0 },
	{ "size#bytes", "message_bytes", 1, 0 },
	{ "alternative", "name", 0, 0 },
	{ "connections#1/s", "connects_per_s", 1, 1 },
	{ "connecting p50#ms", "connect_p50_ns", 1e-6, 2 },
	{ "connecting p99#ms", "connect_p99_ns", 1e-6, 2 },
	{ "full handshake p50#ms", "connect_full_p50_ns", 1e-6, 2 },
	{ "resumed p50#ms", "connect_resumed_p50_ns", 1e-6, 2 },
	{ "server CPU#ms/connection", "server_cpu_ns_per_connection", 1e-6, 2 },
	{ "generator CPU#ms/connection", "generator_cpu_ns_per_connection", 1e-6, 2 },
	{ "messages#1/s", "throughput_msgs_per_s", 1, 0 },
	{ "bandwidth#GB/s", "throughput_bytes_per_s", 1e-9, 5 },
	{ "to the server#GB/s", "to_server_bytes_per_s", 1e-9, 5 },
	{ "from the server#GB/s", "from_server_bytes_per_s", 1e-9, 5 },
	{ "mean#us", "response_mean_ns", 1e-3, 1 },
	{ "p50#us", "response_p50_ns", 1e-3, 1 },
	{ "one way (half of it)#us", "one_way_p50_ns", 1e-3, 1 },
	{ "p95#us", "response_p95_ns", 1e-3, 1 },
	{ "p99#us", "response_p99_ns", 1e-3, 1 },
	{ "p99.9#us", "response_p99_9_ns", 1e-3, 1 },
	{ "jitter, p99/p50#", "jitter_ratio", 1, 2 },
	{ "came back#1/s", "churn_cycles_per_s", 1, 1 },
	{ "away p50#ms", "churn_away_p50_ns", 1e-6, 2 },
	{ "server CPU#us/op", "server_cpu_ns_per_message", 1e-3, 1 },
	{ "generator CPU#us/op", "generator_cpu_ns_per_message", 1e-3, 1 },
	{ "server resident#KiB/client", "server_rss_bytes_per_client", 1 / 1024.0, 1 },
	{ "kernel#KiB/client", "machine_kernel_bytes_per_client", 1 / 1024.0, 1 },
	{ 0 }
};

bool figures_are_known(const json_t *steps, const char *name)
{
	const json_t *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		if (isfinite(json_number_at(step, name)))
			return true;
	}
	return false;
}

size_t figures_count_distinct(const json_t *steps, const char *name)
{
	const json_t *step;
	double last = NAN;
	size_t i, n = 0;

	json_array_foreach(steps, i, step) {
		double v = json_number_at(step, name);

		n += isfinite(v) && v != last;
		last = v;
	}
	return n;
}

void figures_curve(struct page *p, struct chart *c, const json_t *steps, const char *x_name,
		   const struct page_column *curve)
{
	size_t n = json_array_size(steps) < FIGURES_STEPS_MAX ? json_array_size(steps) : FIGURES_STEPS_MAX;
	double *x = page_numbers(p, n), *y = page_numbers(p, n);

	if (!x || !y || !figures_are_known(steps, curve->path))
		return;
	for (size_t i = 0; i < n; i++) {
		x[i] = json_number_at(json_array_get(steps, i), x_name);
		y[i] = json_number_at(json_array_get(steps, i), curve->path) * curve->scale;
	}
	page_series(c, (struct chart_series){ .label = curve->title, .mark = CHART_LINE, .x = x, .y = y, .n = n });
}

void figures_table(struct page *p, const char *name, const char *caption, const json_t *steps, size_t max)
{
	page_objects(p, name, caption, columns, steps, max);
}
