/* SPDX-License-Identifier: BSD-2-Clause */
/* The open loop (--rate, --rate-per-client): operations begin when they are due, whether earlier ones have ended or
 * not.
 *
 * Each active client has a schedule of its own, even or Poisson. A client with --inflight operations in flight waits
 * until one ends, and then catches up: no operation of the schedule is skipped. Response time is measured from when an
 * operation was due, service time from when it was sent. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_OPEN_LOOP_H
#define RAMPART_LOADGEN_OPEN_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

struct open_loop;
struct traffic;
struct wclient;

/* Makes the open loop for the existing clients of `t`, which must outlive it. 0, or -errno with a line in `err`. */
int open_loop_new(struct traffic *t, struct ev_loop *loop, struct open_loop **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
void open_loop_free(struct open_loop *o);	/* after the loop's end; NULL-safe */

/* Clears the schedule at the beginning of a step. */
void open_loop_reset(struct open_loop *o);
/* Starts the client's schedule. */
void open_loop_start_client(struct open_loop *o, struct wclient *wc);
/* True if no client is scheduled. A client that waits for an operation to end is not, but may have more to begin. */
bool open_loop_is_empty(const struct open_loop *o);
/* Begins the client's operations that are due, as far as --inflight allows. */
void open_loop_begin(struct open_loop *o, struct wclient *wc);

#endif
