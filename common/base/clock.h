/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of time, and the monotonic clocks. */
#ifndef RAMPART_COMMON_CLOCK_H
#define RAMPART_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds of CLOCK_MONOTONIC; only differences are meaningful. Any thread; never fails. */
static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* The same for CLOCK_BOOTTIME, which continues while the machine is suspended. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* CPU time of the calling thread. */
static inline uint64_t clock_busy_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* CPU time of all threads of this process. */
static inline uint64_t clock_process_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
