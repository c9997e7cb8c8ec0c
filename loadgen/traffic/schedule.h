/* SPDX-License-Identifier: BSD-2-Clause */
/* Which client is due next: a binary heap of times. Pure. */
#ifndef RAMPART_LOADGEN_SCHEDULE_H
#define RAMPART_LOADGEN_SCHEDULE_H

#include <stdint.h>

struct schedule;

struct schedule_entry {
	double due_ns;
	uint32_t client;
};

/* For up to `max` entries. 0 or -ENOMEM. */
int schedule_new(uint32_t max, struct schedule **out) __attribute__((warn_unused_result));
void schedule_free(struct schedule *s);	/* NULL-safe */
void schedule_clear(struct schedule *s);
uint32_t schedule_count(const struct schedule *s);

/* No more than `max` may be in it. */
void schedule_add(struct schedule *s, double due_ns, uint32_t client);
/* The earliest one; NULL when there is none. */
const struct schedule_entry *schedule_first(const struct schedule *s);
void schedule_remove_first(struct schedule *s);

/* Time from one arrival to the next of a Poisson process of this mean; advances the generator's state. */
double schedule_exponential_ns(double mean_ns, uint64_t *state);

#endif
