/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw times of a worker's measured operations (--trace): kept in memory while they are measured, written when the
 * step is over.
 *
 * Owning thread: the worker's, between its orders; the main thread reads when the worker has stopped.
 */
#ifndef RAMPART_LOADGEN_TRACE_H
#define RAMPART_LOADGEN_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct trace;

struct trace_record {
	uint64_t due_ns, sent_ns, end_ns;	/* CLOCK_MONOTONIC */
	uint32_t client;			/* of the worker */
	uint32_t operation;			/* its number, modulo 2^32 */
};

/* Room for `max` records. 0 or -ENOMEM. */
int trace_new(uint64_t max, struct trace **out) __attribute__((warn_unused_result));
void trace_free(struct trace *t);	/* NULL-safe */
void trace_clear(struct trace *t);
/* Counts it as lost if there is no room. */
void trace_add(struct trace *t, const struct trace_record *r);
uint64_t trace_lost(const struct trace *t);

/* The first line of the file. 0 or -errno. */
int trace_write_title(FILE *f) __attribute__((warn_unused_result));
/* Which step the lines are of. */
struct trace_step {
	uint32_t clients, repetition, worker, n_workers;
	uint64_t bytes;
	uint64_t start_ns;	/* times in the file count from here */
};
/* A line for each record, comma-separated. 0 or -errno. */
int trace_write(const struct trace *t, const struct trace_step *step, FILE *f) __attribute__((warn_unused_result));

#endif
