/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw times of a worker's measured operations (--trace): kept in memory while measuring, written after the step.
 *
 * Owning thread: the worker's; the main thread reads them while the worker is not measuring.
 */
#ifndef RAMPART_LOADGEN_TRACE_H
#define RAMPART_LOADGEN_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct trace;

struct trace_record {
	uint64_t due_ns, sent_ns, end_ns;	/* CLOCK_MONOTONIC */
	uint32_t client;			/* index of the client in its worker */
	uint32_t operation;			/* number of the operation, modulo 2^32 */
};

/* Makes a trace with room for `max` records. 0 or -ENOMEM. */
int trace_new(uint64_t max, struct trace **out) __attribute__((warn_unused_result));
void trace_free(struct trace *t);	/* NULL-safe */
void trace_clear(struct trace *t);
/* Adds a record, or counts it as lost if there is no room. */
void trace_add(struct trace *t, const struct trace_record *r);
uint64_t trace_lost(const struct trace *t);

/* Writes the file's header line. 0 or -errno. */
int trace_write_title(FILE *f) __attribute__((warn_unused_result));
/* The step and worker of the lines that trace_write writes. */
struct trace_step {
	uint32_t clients, repetition, worker, n_workers;
	uint64_t bytes;
	uint64_t start_ns;	/* times in the file are relative to this */
};
/* Writes a line of comma-separated values for each record. 0 or -errno. */
int trace_write(const struct trace *t, const struct trace_step *step, FILE *f) __attribute__((warn_unused_result));

#endif
