/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded into the programs whose cost is measured, so that what callgrind counts is the same on any machine.
 *
 * Clock: in every thread but the first, each reading of the clock moves it by a microsecond, and each wait that times
 * out moves it by its timeout; otherwise it stands still. So the number of timers that expire depends on the work done,
 * not on how slowly a machine runs the program under callgrind.
 * For the same reason a wait times out only when the other program is idle, too: before it does, the waiting thread
 * yields the CPU, which both programs share, YIELDS times, and looks again for events each time. One yield is too few,
 * because the other program may need several turns: its threads pass callgrind's lock to one another.
 *
 * Copies: callgrind counts calls, not arguments. For each bit that is set in the size of a copy, copied_bits[bit] is
 * called, so these calls add up to the bytes that the program copied (tests/ledger/cost.awk). Only copies that the
 * program itself makes with memcpy and memmove count, not those of libraries and of the fake devices.
 *
 * Limits: a timerfd, which the open loop uses, goes by the real clock; of a copy of 8 MiB or more the highest bits are
 * lost. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000u
#define READING_NS 1000u
#define YIELDS 100

static __thread uint64_t moved_ns;	/* since the thread's first reading */

static bool is_first_thread(void)
{
	static __thread int first;	/* 1: yes, -1: no, 0: not known yet */

	if (!first)
		first = syscall(SYS_gettid) == getpid() ? 1 : -1;
	return first > 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static __thread struct timespec began[CLOCK_BOOTTIME + 1];
	bool real = is_first_thread() || (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME &&
					  clock != CLOCK_REALTIME);
	uint64_t ns;

	if (real)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	if (!began[clock].tv_sec)
		syscall(SYS_clock_gettime, clock, &began[clock]);
	moved_ns += READING_NS;
	ns = (uint64_t)began[clock].tv_nsec + moved_ns;
	*ts = (struct timespec){ began[clock].tv_sec + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	return 0;
}

int epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms)
{
	int ready = (int)syscall(SYS_epoll_pwait, epfd, events, n, timeout_ms, NULL, 0);

	for (int i = 0; ready == 0 && timeout_ms > 0 && i < YIELDS; i++) {
		syscall(SYS_sched_yield);
		ready = (int)syscall(SYS_epoll_pwait, epfd, events, n, 0, NULL, 0);
	}
	if (ready == 0 && timeout_ms > 0)
		moved_ns += (uint64_t)timeout_ms * NS_PER_MS;
	return ready;
}

static uintptr_t text_begin, text_end;	/* of the program */
static void *(*real_memcpy)(void *, const void *, size_t);
static void *(*real_memmove)(void *, const void *, size_t);

#define COPIED(bit) static void __attribute__((noinline)) copied_##bit(void) { __asm__ volatile(""); }
COPIED(0) COPIED(1) COPIED(2) COPIED(3) COPIED(4) COPIED(5) COPIED(6) COPIED(7) COPIED(8) COPIED(9) COPIED(10)
COPIED(11) COPIED(12) COPIED(13) COPIED(14) COPIED(15) COPIED(16) COPIED(17) COPIED(18) COPIED(19) COPIED(20)
COPIED(21) COPIED(22)

static void (*const copied_bits[])(void) = {
	copied_0, copied_1, copied_2, copied_3, copied_4, copied_5, copied_6, copied_7, copied_8, copied_9, copied_10,
	copied_11, copied_12, copied_13, copied_14, copied_15, copied_16, copied_17, copied_18, copied_19, copied_20,
	copied_21, copied_22,
};

static int find_program_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
			text_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text_end = text_begin + info->dlpi_phdr[i].p_memsz;
		}
	return 1;	/* the program comes first in the list */
}

static void __attribute__((constructor)) find_originals(void)
{
	real_memcpy = (void *(*)(void *, const void *, size_t))dlsym(RTLD_NEXT, "memcpy");
	real_memmove = (void *(*)(void *, const void *, size_t))dlsym(RTLD_NEXT, "memmove");
	dl_iterate_phdr(find_program_text, NULL);
}

static void count_copy(const void *caller, size_t n)
{
	if ((uintptr_t)caller < text_begin || (uintptr_t)caller >= text_end)
		return;
	for (unsigned bit = 0; bit < sizeof(copied_bits) / sizeof(*copied_bits); bit++)
		if (n >> bit & 1)
			copied_bits[bit]();
}

/* The loader and other constructors copy before this file's constructor has run. */
static void *copy_bytes(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (real_memmove)
		return real_memmove(to, from, n);
	for (size_t i = 0; i < n; i++)
		t[t < f ? i : n - 1 - i] = f[t < f ? i : n - 1 - i];
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	count_copy(__builtin_return_address(0), n);
	return real_memcpy ? real_memcpy(to, from, n) : copy_bytes(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
	count_copy(__builtin_return_address(0), n);
	return copy_bytes(to, from, n);
}

/* _FORTIFY_SOURCE turns calls of memcpy and memmove into calls of these functions. */
void *__memcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);

void *__memcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room)
{
	if (n > room)
		abort();
	count_copy(__builtin_return_address(0), n);
	return copy_bytes(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
	if (n > room)
		abort();
	count_copy(__builtin_return_address(0), n);
	return copy_bytes(to, from, n);
}
