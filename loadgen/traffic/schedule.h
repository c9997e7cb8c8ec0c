/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedule of clients by due time: a binary heap. Pure. */
#ifndef RAMPART_LOADGEN_SCHEDULE_H
#define RAMPART_LOADGEN_SCHEDULE_H

#include <stdint.h>

struct schedule;

struct schedule_entry {
	double due_ns;
	uint32_t client;
};

/* Makes a schedule for up to `max` entries. 0 or -ENOMEM. */
int schedule_new(uint32_t max, struct schedule **out) __attribute__((warn_unused_result));
void schedule_free(struct schedule *s);	/* NULL-safe */
void schedule_clear(struct schedule *s);
uint32_t schedule_count(const struct schedule *s);

/* Adds an entry; the caller makes sure that there are no more than `max`. */
void schedule_add(struct schedule *s, double due_ns, uint32_t client);
/* The entry that is due first; NULL when there is none. */
const struct schedule_entry *schedule_first(const struct schedule *s);
void schedule_remove_first(struct schedule *s);

/* Time to the next arrival of a Poisson process with this mean interval; advances the random generator's state. */
double schedule_exponential_ns(double mean_ns, uint64_t *state);

#endif
