/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that one thread writes and any thread reads. Loads and stores are relaxed: no locked instruction, and no
 * order between several counters, except by counter_release and counter_acquire. */
#ifndef RAMPART_COMMON_COUNTER_H
#define RAMPART_COMMON_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

/* Any thread. */
static inline uint64_t counter_get(const counter *c)
{
	return atomic_load_explicit((counter *)c, memory_order_relaxed);
}

/* The writer only. */
static inline void counter_set(counter *c, uint64_t v)
{
	atomic_store_explicit(c, v, memory_order_relaxed);
}

/* Writer only. A thread that reads this value with counter_acquire sees everything that the writer stored before. */
static inline void counter_release(counter *c, uint64_t v)
{
	atomic_store_explicit(c, v, memory_order_release);
}

/* Any thread. */
static inline uint64_t counter_acquire(const counter *c)
{
	return atomic_load_explicit((counter *)c, memory_order_acquire);
}

/* The writer only; wraps at 2^64. */
static inline void counter_add(counter *c, uint64_t v)
{
	counter_set(c, counter_get(c) + v);
}

#endif
