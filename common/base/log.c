/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to stderr. See log.h.
 *
 * Between log_start and log_stop, lines go through one ring of fixed slots, which any thread fills and the writer
 * thread empties. A slot's `turn` is the position of the next line to put there, or that position + 1 once the line is
 * there. This is Vyukov's bounded queue: https://www.1024cores.net/home/lock-free-algorithms/queues. Non-goals: files
 * and rotation, which are up to the owner of stderr.
 */
#include "common/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/utf8.h"

#define LINE_BYTES   1024
#define RING_LINES   1024u	/* a power of two, so that positions may wrap */
#define STOP_SECONDS 1		/* how long log_stop waits for stderr's reader */

const char *const log_level_names[] = { "error", "warn", "info", "debug", NULL };

static enum log_level log_threshold = LOG_LVL_INFO;
static const char *log_program = "rampart";

static struct {
	struct slot {
		_Atomic uint32_t turn;
		uint32_t len;
		char line[LINE_BYTES];
	} slots[RING_LINES];
	_Atomic uint32_t tail;		/* position of the next line to put in */
	uint32_t head;			/* position of the next line to write; for the writer only */
	_Atomic uint64_t dropped;	/* lines that found no slot, not yet reported */
	sem_t filled;			/* posted for each line, and by log_stop */
	atomic_bool running, stopping;
	pthread_t writer;
} ring;

void log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_threshold = level;
}

bool log_enabled(enum log_level level)
{
	return level <= log_threshold;
}

bool log_is_due(uint64_t *next_ns, uint64_t every_ns)
{
	uint64_t now = clock_now_ns();

	if (now < *next_ns)
		return false;
	*next_ns = now + every_ns;
	return true;
}

/* A line that cannot be written is lost, because there is no other place to report it. */
static void write_line(const char *line, size_t len)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

	while (len) {
		ssize_t n = write(STDERR_FILENO, line, len);

		if (n > 0) {
			line += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			poll(&room, 1, -1);
		} else if (n == 0 || errno != EINTR) {
			return;
		}
	}
}

/* False if the ring is full. */
static bool put_line(const char *line, size_t len)
{
	uint32_t at = atomic_load_explicit(&ring.tail, memory_order_relaxed);
	struct slot *slot;

	for (;;) {
		int32_t ahead;

		slot = &ring.slots[at % RING_LINES];
		ahead = (int32_t)(atomic_load_explicit(&slot->turn, memory_order_acquire) - at);
		if (ahead < 0)
			return false;
		if (ahead > 0)
			at = atomic_load_explicit(&ring.tail, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&ring.tail, &at, at + 1, memory_order_relaxed,
							       memory_order_relaxed))
			break;
	}
	memcpy(slot->line, line, len);
	slot->len = (uint32_t)len;
	atomic_store_explicit(&slot->turn, at + 1, memory_order_release);
	sem_post(&ring.filled);
	return true;
}

/* False if the next line is not in its slot yet; the thread that puts it there posts `filled` again. */
static bool take_line(void)
{
	struct slot *slot = &ring.slots[ring.head % RING_LINES];

	if (atomic_load_explicit(&slot->turn, memory_order_acquire) != ring.head + 1)
		return false;
	write_line(slot->line, slot->len);
	atomic_store_explicit(&slot->turn, ring.head + RING_LINES, memory_order_release);
	ring.head++;
	return true;
}

static void report_dropped(void)
{
	uint64_t n = atomic_exchange_explicit(&ring.dropped, 0, memory_order_relaxed);
	char line[LINE_BYTES];
	int len;

	if (!n)
		return;
	len = snprintf(line, sizeof(line), "%.64s: warn: %llu log lines were dropped: stderr is read too slowly\n",
		       log_program, (unsigned long long)n);
	write_line(line, (size_t)len);
}

static void *run_writer(void *arg)
{
	bool last;

	do {
		while (sem_wait(&ring.filled))
			;
		last = atomic_load(&ring.stopping);
		for (uint32_t n = 1; take_line(); n++)
			if (n % RING_LINES == 0)
				report_dropped();
		report_dropped();
	} while (!last);
	return arg;
}

void log_start(void)
{
	sigset_t all, before;
	int ret;

	for (uint32_t i = 0; i < RING_LINES; i++)
		atomic_store_explicit(&ring.slots[i].turn, i, memory_order_relaxed);
	ring.head = 0;
	atomic_store(&ring.tail, 0);
	atomic_store(&ring.stopping, false);
	sem_init(&ring.filled, 0, 0);
	/* Block all signals in the writer, because the main thread handles them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&ring.writer, NULL, run_writer, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(ring.writer, "log");
	if (ret)
		log_warn("no thread for the log (%s): a slow reader of stderr will hold up this program",
			 strerror(ret));
	atomic_store(&ring.running, !ret);
}

void log_stop(void)
{
	struct timespec deadline;

	if (!atomic_load(&ring.running))
		return;
	atomic_store(&ring.stopping, true);
	sem_post(&ring.filled);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += STOP_SECONDS;
	if (pthread_timedjoin_np(ring.writer, NULL, &deadline) == 0)
		atomic_store(&ring.running, false);
}

/* Returns the length of the line, which ends in a newline; 0 if there is nothing to write. */
static size_t format_line(char line[LINE_BYTES], enum log_level level, const char *fmt, va_list ap)
{
	const char *name = level == LOG_LVL_ERROR ? "" : log_level_names[level];
	char text[LINE_BYTES];
	int n;

	n = snprintf(line, LINE_BYTES, "%s: %s%s", log_program, name, *name ? ": " : "");
	if (n < 0 || n >= LINE_BYTES - 2)
		return 0;
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		return 0;
	/* Escape the text, because parts of it may come from a peer. */
	n += (int)strlen(utf8_show(text, line + n, LINE_BYTES - (size_t)n - 1));
	line[n] = '\n';
	return (size_t)n + 1;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;
	size_t len;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	len = format_line(line, level, fmt, ap);
	va_end(ap);
	if (!atomic_load_explicit(&ring.running, memory_order_acquire))
		write_line(line, len);
	else if (!put_line(line, len))
		atomic_fetch_add_explicit(&ring.dropped, 1, memory_order_relaxed);
}
