/* SPDX-License-Identifier: BSD-2-Clause */
/* See validity.h. */
#include "loadgen/analysis/validity.h"

#include <string.h>

const struct validity_flag validity_flags[VALIDITY_FLAGS] = {
	[VALIDITY_NOT_STEADY] = { "not_steady", "not steady",
				  "throughput or latency was still changing while it was measured; a longer --duration or --warmup helps" },
	[VALIDITY_GENERATOR_SATURATED] = { "generator_saturated", "generator near saturation",
					   "the load generator was at its own limit; the server can do at least what is shown" },
	[VALIDITY_STEP_TIMEOUT] = { "step_timeout", "connecting timed out", "connecting took longer than --step-timeout" },
	[VALIDITY_MEMORY_FLOOR] = { "memory_floor", "cut short", "a machine had less memory left than --memory-floor" },
	[VALIDITY_CPU_FLOOR] = { "cpu_floor", "cut short", "a machine had less idle CPU than --cpu-floor" },
	[VALIDITY_REPLIES_MISSING] = { "replies_missing", "replies missing",
				       "replies were missing 15 s after the measured time" },
	[VALIDITY_CLOCK_HOLE] = { "clock_hole", "the generator stood still",
				  "the generator or its machine did not run for a while, so the figures say nothing of the server" },
	[VALIDITY_REPLIES_STALLED] = { "replies_stalled", "replies stalled",
				       "for a while nobody got a reply, which percentiles do not show" },
	[VALIDITY_SERVER_POOLS_NOT_RESTORED] = { "server_pools_not_restored", "server kept resources",
						 "after the step the server did not release all that it had taken" },
	[VALIDITY_SERVER_POOLS_UNKNOWN] = { "server_pools_unknown", "server's pools unknown",
					    "the server could not be asked whether it released all that it had taken" },
	[VALIDITY_NOT_MEASURED] = { "not_measured", "not measured", "the step did not reach its measured time" },
	[VALIDITY_LITTLES_LAW_VIOLATED] = { "littles_law_violated", "Little's law violated",
					    "throughput, round trips and clients contradict each other" },
	[VALIDITY_CLIENTS_COME_AND_GO] = { "clients_come_and_go", "clients come and go",
					   "at any time some clients were away (--churn)" },
	[VALIDITY_OUTAGES] = { "outages", "connections lost",
			       "connections were lost, and clients came back or tried to (--reconnect)" },
	[VALIDITY_SERVER_COUNTS_DIFFER] = { "server_counts_differ", "counts differ",
					    "server and generator counted different numbers of clients" },
	[VALIDITY_BEHIND_SCHEDULE] = { "behind_schedule", "behind schedule",
				       "fewer operations ended than were due, by more than 5 %" },
	[VALIDITY_ITERATIONS_MISSING] = { "iterations_missing", "iterations missing",
					  "clients made fewer operations than --iterations" },
	[VALIDITY_RAILS_DROPPED] = { "rails_dropped", "rails dropped", "clients went on without some of their rails" },
	[VALIDITY_SKEW] = { "skew", "hosts began apart", "the load hosts began to measure further apart than --max-skew" },
	[VALIDITY_HOST_LOST_CONTINUED] = { "host_lost_continued", "host lost",
					   "the run went on without a load host that was lost" },
	[VALIDITY_SHARED_MACHINE] = { "server_and_generator_share_the_machine", NULL,
				      "performance_test started the server, so both share the machine" },
};

enum validity validity_find(const char *name)
{
	int i = 0;

	while (i < VALIDITY_FLAGS && strcmp(validity_flags[i].name, name) != 0)
		i++;
	return (enum validity)i;
}
