/* SPDX-License-Identifier: BSD-2-Clause */
/* A clock that the test moves. It replaces the kernel's for libev and the rest of the program. Each reading advances it
 * by a microsecond; otherwise it stands still. When no descriptor is ready, an event loop does not sleep: the clock
 * jumps to its next timer. So a test of minutes takes milliseconds, and a busy machine changes no figure.
 *
 * Include it in one .c file of a test program, because it defines functions of libc. (In an archive they would be
 * linked into every test.) Do not use it where other threads or processes answer: the clock would jump before they
 * can. */
#ifndef RAMPART_TESTS_MOVED_CLOCK_H
#define RAMPART_TESTS_MOVED_CLOCK_H

#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

/* How long an event loop really waits before the clock jumps: a busy kernel may deliver a little late what was sent to
 * a socket of this machine. */
#ifndef DELIVERY_MS
#define DELIVERY_MS 1
#endif

static _Atomic uint64_t clock_moved_ns;	/* since the program began */

/* Moves the clock on without running anything, as if the process had been stopped for that time. */
static inline void clock_move(uint64_t ns)
{
	atomic_fetch_add(&clock_moved_ns, ns);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static _Atomic uint64_t start_ns[CLOCK_BOOTTIME + 1];
	uint64_t ns = 0;

	if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	if (!atomic_load(&start_ns[clock])) {
		syscall(SYS_clock_gettime, clock, ts);
		atomic_compare_exchange_strong(&start_ns[clock], &ns, (uint64_t)ts->tv_sec * NS_PER_S +
					       (uint64_t)ts->tv_nsec);
	}
	clock_move(NS_PER_US);
	ns = atomic_load(&start_ns[clock]) + atomic_load(&clock_moved_ns);
	*ts = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

int epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms)
{
	int most_ms = timeout_ms > DELIVERY_MS ? DELIVERY_MS : timeout_ms;
	int ready = (int)syscall(SYS_epoll_pwait, epfd, events, n, most_ms, NULL, 0);

	if (ready == 0 && timeout_ms > 0)
		clock_move((uint64_t)timeout_ms * NS_PER_MS);
	return ready;
}

/* Really waits for a twentieth of the timeout, so that a busy kernel has time to deliver; then the clock moves by all
 * of it. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec most = { .tv_nsec = 0 };
	int ready;

	if (timeout_ms > 0)
		most = (struct timespec){ timeout_ms / 20000, timeout_ms % 20000 * 50000L };
	ready = (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &most, NULL, 0);
	if (ready == 0 && timeout_ms > 0)
		clock_move((uint64_t)timeout_ms * NS_PER_MS);
	return ready;
}

/* _FORTIFY_SOURCE turns a call of poll() into a call of this. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size);

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size)
{
	(void)size;
	return poll(fds, n, timeout_ms);
}

#endif
