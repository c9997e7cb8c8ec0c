/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates of timeouts, repeated attempts and refusals while the clients of a step connected. Pure. */
#ifndef RAMPART_LOADGEN_RATES_H
#define RAMPART_LOADGEN_RATES_H

#include <stdint.h>

#include <jansson.h>

struct step;

struct rates {
	uint64_t attempts;		/* connection attempts that succeeded, were repeated, or finally failed */
	uint64_t timeouts, retries, refusals;	/* timeouts: of established connections, too */
	double span_s;			/* from when the first client was due until all were told to leave; 0: not
					 * known */
};

/* The rates of a step, after step_collect. */
struct rates rates_of(const struct step *s);

/* `count` per attempt; NAN without an attempt. */
double rates_ratio(const struct rates *r, uint64_t count);

/* `rates` of a step in run.json. NULL when out of memory. */
json_t *rates_json(const struct step *s);

#endif
