/* SPDX-License-Identifier: BSD-2-Clause */
/* The planning table: hosts, CPUs and memory for a number of clients. Pure: reads run.json. */
#ifndef RAMPART_LOADGEN_ANALYSIS_GROWTH_H
#define RAMPART_LOADGEN_ANALYSIS_GROWTH_H

#include <jansson.h>

struct growth_options {
	double headroom;		/* share of a host's capacity to keep free, 0 to 0.9 */
	double growth;			/* further clients, as a share of those planned for: 0.5 adds half */
	const double *clients;		/* to plan for, in rising order; NULL: chosen from the run */
	size_t n_clients;
};

/* {capacity_clients, capacity_source ("slo_capacity", "first_hard_failure" (the most below it), "largest_step_held";
 * null without one), at_least (bool: the capacity is a lower bound), message_bytes (of the steps that count: the
 * largest), base: {memory_bytes, pinned_bytes, qps, fds}, per_client: the same, rows: [{clients, with_growth, hosts,
 * clients_per_host, cores, memory_bytes, pinned_bytes, qps, fds, messages_per_s, source, beyond (with_growth / most
 * clients measured, if above 1)}]}. Unknown figures are null. NULL when out of memory.
 *
 * A host holds at most capacity (1 - headroom) clients. It needs base + per_client x its clients, along the lines
 * through the steps. A row's figures are those of all its hosts. source: "measured" if a step on one host had that
 * number, "interpolated" if both the total and each host's share lie between steps, else "extrapolated". Rows chosen
 * from the run: the steps measured, the capacity, twice the capacity, and 1, 2 and 5 times powers of ten from there up
 * to ten times the capacity or 50,000, whichever is more. */
json_t *growth_analysis(const json_t *run, const struct growth_options *o);

#endif
