/* SPDX-License-Identifier: BSD-2-Clause */
/* How often connecting did not go straight in a step: timeouts, attempts that were repeated, refusals. Pure. */
#ifndef RAMPART_LOADGEN_RATES_H
#define RAMPART_LOADGEN_RATES_H

#include <stdint.h>

#include <jansson.h>

struct step;

struct rates {
	uint64_t attempts;		/* to connect: those that succeeded, were repeated, or failed for good */
	uint64_t timeouts, retries, refusals;	/* of connections and of attempts to make one */
	double span_s;			/* from when the first client was due until all were told to leave; 0: not known */
};

/* Of a step that was collected. */
struct rates rates_of(const struct step *s);

/* `count` for each attempt; NAN without an attempt. */
double rates_ratio(const struct rates *r, uint64_t count);

/* An element's `rates` in run.json. NULL when out of memory. */
json_t *rates_json(const struct step *s);

#endif
