/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a step. Each worker counts for itself; a step adds them up over workers and hosts. A new counter
 * needs a row here and the code that counts: worker_stats.[ch] declare and reset it, step.c collects it, step_fields.c
 * passes it from host to host, and step_json.c writes it to run.json. */
#ifndef RAMPART_LOADGEN_STEP_COUNTERS_H
#define RAMPART_LOADGEN_STEP_COUNTERS_H

/* X(type, name, rule, path): the type of the sum (STEP_U32, STEP_U64), how values add up (STEP_ADD, STEP_MAX), and the
 * path in a step of run.json, left out where the object above it is null. If the path is "", step_json.c computes a
 * figure from the counter. */
#define STEP_COUNTERS(X) \
	X(STEP_U32, attempted, STEP_ADD, "attempted")	/* clients that began to connect */ \
	X(STEP_U32, failed, STEP_ADD, "failed")		/* clients that did not get connected */ \
	X(STEP_U32, dropped, STEP_ADD, "dropped")	/* clients that lost their connection for good */ \
	X(STEP_U64, retries, STEP_ADD, "retries")	/* attempts to connect after the first */ \
	X(STEP_U64, rails_dropped, STEP_ADD, "rails.dropped")	/* connections lost by clients that had others */ \
	X(STEP_U64, cycles, STEP_ADD, "churn.cycles")	/* clients that left and came back while measuring */ \
	X(STEP_U64, cycles_failed, STEP_ADD, "churn.cycles_failed")	/* clients that left and did not come back */ \
	X(STEP_U64, outages, STEP_ADD, "outages.lost")	/* connections lost, with --reconnect */ \
	X(STEP_U64, comebacks, STEP_ADD, "outages.attempts")	/* attempts to connect again after an outage */ \
	X(STEP_U64, repeated, STEP_ADD, "outages.repeated")	/* operations in flight at an outage, begun again */ \
	X(STEP_U64, late, STEP_ADD, "")			/* open loop: operations sent over 1 ms after they were due */ \
	X(STEP_U64, checked, STEP_ADD, "verified.checked")	/* operations whose data were compared (--verify) */ \
	X(STEP_U64, corrupt, STEP_ADD, "verified.corrupt")	/* operations whose data were wrong */ \
	X(STEP_U64, psns_exchanged, STEP_ADD, "psns.exchanged")	/* two for each connection made */ \
	X(STEP_U64, psns_shared, STEP_ADD, "")		/* of these, PSNs that another live connection had already */ \
	X(STEP_U64, psns_redrawn, STEP_ADD, "psns.redrawn")	/* by clients, because they were in use */ \
	X(STEP_U64, psn_verified, STEP_ADD, "")		/* connections whose PSNs were compared with the device's */ \
	X(STEP_U64, psn_mismatches, STEP_ADD, "psns.mismatches")	/* connections whose device had other PSNs */ \
	X(STEP_U64, clock_late_ns, STEP_MAX, "clock_late_ns")	/* longest delay of a beat (worker/pulse.h) */ \
	X(STEP_U64, reply_stall_ns, STEP_MAX, "reply_stall_ns")	/* longest time with operations in flight and none
								 * ended */

#endif
