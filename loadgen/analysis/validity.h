/* SPDX-License-Identifier: BSD-2-Clause */
/* The validity flags of a step: what run.json, the terminal and the report call them, and what they mean. Pure data. */
#ifndef RAMPART_LOADGEN_ANALYSIS_VALIDITY_H
#define RAMPART_LOADGEN_ANALYSIS_VALIDITY_H

/* In the order in which run.json lists them. */
enum validity {
	VALIDITY_NOT_STEADY,
	VALIDITY_GENERATOR_SATURATED,
	VALIDITY_STEP_TIMEOUT,
	VALIDITY_MEMORY_FLOOR,
	VALIDITY_CPU_FLOOR,
	VALIDITY_REPLIES_MISSING,
	VALIDITY_CLOCK_HOLE,
	VALIDITY_REPLIES_STALLED,
	VALIDITY_SERVER_POOLS_NOT_RESTORED,
	VALIDITY_SERVER_POOLS_UNKNOWN,
	VALIDITY_NOT_MEASURED,
	VALIDITY_LITTLES_LAW_VIOLATED,
	VALIDITY_CLIENTS_COME_AND_GO,
	VALIDITY_OUTAGES,
	VALIDITY_SERVER_COUNTS_DIFFER,
	VALIDITY_BEHIND_SCHEDULE,
	VALIDITY_ITERATIONS_MISSING,
	VALIDITY_RAILS_DROPPED,
	VALIDITY_SKEW,
	VALIDITY_HOST_LOST_CONTINUED,
	VALIDITY_SHARED_MACHINE,
	VALIDITY_FLAGS
};

struct validity_flag {
	const char *name;	/* in run.json */
	const char *badge;	/* in the report; NULL: none, because the heading says it */
	const char *meaning;	/* a clause, without a full stop */
};

extern const struct validity_flag validity_flags[VALIDITY_FLAGS];

/* The flag of that name; VALIDITY_FLAGS if there is none. */
enum validity validity_find(const char *name);

#endif
