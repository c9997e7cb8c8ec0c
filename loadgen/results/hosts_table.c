/* SPDX-License-Identifier: BSD-2-Clause */
/* See hosts_table.h. */
#include "loadgen/results/hosts_table.h"

#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

static void cell(FILE *out, double v, int width, int decimals)
{
	if (isfinite(v))
		fprintf(out, " %*.*f", width, decimals, v);
	else
		fprintf(out, " %*s", width, "-");
}

static void print_host(const json_t *hosts, uint32_t rank, FILE *out)
{
	const json_t *host = json_array_get(hosts, rank), *steps = json_object_get(host, "steps");
	const json_t *step = json_array_get(steps, json_array_size(steps) - 1), *own = json_object_get(step, "own");
	char name[READ_NAMES_MAX];

	fprintf(out, "%4u  %-20.20s", rank, read_host_name(hosts, rank, name));
	cell(out, read_amount(step, "share"), 8, 0);
	cell(out, read_amount(own, "connected_held"), 8, 0);
	cell(out, read_amount(own, "throughput_msgs_per_s"), 10, 0);
	cell(out, read_amount(own, "response_ns.p50") / 1e3, 9, 0);
	cell(out, read_amount(own, "response_ns.p99") / 1e3, 9, 0);
	cell(out, read_cores(own, "generator") * 100, 7, 0);
	cell(out, json_number_at(host, "clock.offset_ns") / 1e6, 14, 3);
	cell(out, read_amount(host, "clock.error_ns") / 1e6, 7, 3);
	cell(out, read_amount(step, "start_skew_ns") / 1e6, 8, 3);
	fprintf(out, "%s\n", read_has_flag(own, "generator_saturated") ? "  saturated: add hosts" : "");
}

void hosts_table_print(const json_t *run, FILE *out)
{
	const json_t *hosts = json_object_get(run, "hosts");
	char name[READ_NAMES_MAX];

	if (json_array_size(hosts) < 2)
		return;
	fprintf(out, "\nLoad hosts, in the last step of each                                response us            "
		"     clock ms           start\n");
	fprintf(out, "rank  name                  clients     held    msgs/s      p50       p99   CPU %%         offset  error  skew ms"
		"\n");
	for (uint32_t i = 0; i < json_array_size(hosts); i++)
		print_host(hosts, i, out);
	for (uint32_t i = 0; i < json_array_size(hosts); i++) {
		const json_t *lost = json_object_get(json_array_get(hosts, i), "lost");

		if (json_is_object(lost))
			fprintf(out, "%s was lost after %.1f s: %s\n", read_host_name(hosts, i, name), json_number_at(lost, "at_s"),
				json_text_at(lost, "why") ? json_text_at(lost, "why") : "");
	}
}
