/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers from a comparison of transports with --slo whether the work needs RDMA. Pure. */
#ifndef RAMPART_LOADGEN_NEED_H
#define RAMPART_LOADGEN_NEED_H

#include <jansson.h>

struct need_terms {
	unsigned rounds;
	const char *slo;		/* as it was given; NULL: none */
	double cpu_hour_price;		/* of --price; 0: none was given */
};

/* The `need` of a comparison (docs/results.md, "Comparisons"); JSON null without --slo, in a sweep of rates, or if the
 * alternatives do not differ in their transport. `alternatives` are [{name, options}], and `points` are {clients,
 * message_bytes, offered_per_s, figures: [of each alternative], runs: [{steps} of each alternative]}, where a step has
 * target_clients, connected_held, slo and validity as in run.json. A number of clients meets or misses the objective if
 * more than half of the rounds do, and else is not known. NULL when out of memory. */
json_t *need_json(const json_t *alternatives, const json_t *points, const struct need_terms *terms);

#endif
