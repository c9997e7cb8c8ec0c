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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/utf8.h"

#define LINE_BYTES   1024
#define RING_LINES   1024u	/* a power of two, so that positions may wrap */
#define FIELDS_MAX   10		/* of JSON and logfmt */
#define STOP_SECONDS 1		/* how long log_stop waits for stderr's reader */

const char *const log_level_names[] = { "error", "warn", "info", "debug", NULL };
const char *const log_format_names[] = { "text", "json", "logfmt", NULL };

static enum log_level log_threshold = LOG_LVL_INFO;
static const char *log_program = "rampart";
static enum log_format log_format = LOG_FMT_TEXT;
static bool to_journal;
static const struct log_fields no_fields;

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

/* systemd.exec(5), JOURNAL_STREAM: device and inode of the journal's stream, which may since have been redirected. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return !strcmp(stream, own);
}

void log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_threshold = level;
	to_journal = stderr_is_journal();
}

void log_set_format(enum log_format format)
{
	log_format = format;
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

static const char *level_name(enum log_level level)
{
	return level == LOG_LVL_NOTICE ? "notice" : log_level_names[level];
}

/* The level as the journal reads it (sd-daemon(3)). */
static const char *priority(enum log_level level)
{
	static const char *const prefixes[] = { "<5>", "<3>", "<4>", "<6>", "<7>" };

	return to_journal ? prefixes[level - LOG_LVL_NOTICE] : "";
}

/* The functions format_* write after the first `at` bytes of the line, and return its length without the newline. If
 * that is LINE_BYTES or more, the line did not fit. */

static size_t append(char line[LINE_BYTES], size_t at, const char *text, size_t len)
{
	if (at + len < LINE_BYTES)
		memcpy(line + at, text, len);
	return at + len;
}

static size_t format_text(char line[LINE_BYTES], size_t at, enum log_level level, const char *text)
{
	const char *name = level <= LOG_LVL_ERROR ? "" : level_name(level);

	at += (size_t)snprintf(line + at, LINE_BYTES - at, "%.64s: %s%s", log_program, name, *name ? ": " : "");
	/* Escape the text, because parts of it may come from a peer. */
	return at + strlen(utf8_show(text, line + at, LINE_BYTES - at));
}

struct field {
	const char *name;
	const uint32_t *number;	/* NULL: text */
	char text[LINE_BYTES];
};

static size_t format_logfmt(char line[LINE_BYTES], size_t at, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = fields[i].text;
		bool quoted = !*text || strpbrk(text, " \"=\\");

		at = append(line, at, " ", i > 0);
		at = append(line, at, fields[i].name, strlen(fields[i].name));
		at = append(line, at, "=\"", quoted ? 2 : 1);
		for (; *text; text++) {
			at = append(line, at, "\\", *text == '"' || *text == '\\');
			at = append(line, at, text, 1);
		}
		at = append(line, at, "\"", quoted);
	}
	return at;
}

/* 0 if memory runs out. */
static size_t format_json(char line[LINE_BYTES], size_t at, const struct field *fields, size_t n)
{
	json_t *o = json_object();
	size_t len;
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		ret |= json_object_set_new(o, fields[i].name, fields[i].number ? json_integer(*fields[i].number) :
					   json_string(fields[i].text));
	len = ret ? 0 : json_dumpb(o, line + at, LINE_BYTES - at, JSON_COMPACT);
	json_decref(o);
	return len ? at + len : 0;
}

static void halve_longest(struct field *fields, size_t n)
{
	struct field *longest = fields;
	size_t len;

	for (size_t i = 1; i < n; i++)
		if (strlen(fields[i].text) > strlen(longest->text))
			longest = &fields[i];
	len = strlen(longest->text) / 2;
	while (len && (longest->text[len] & 0xc0) == 0x80)
		len--;	/* keep a character of UTF-8 whole */
	longest->text[len] = '\0';
}

static size_t add_fields(struct field *fields, enum log_level level, const struct log_fields *about, const char *text)
{
	const struct {
		const char *name, *text;
		const uint32_t *number;
	} all[] = {
		{ "level", level_name(level), NULL }, { "program", log_program, NULL }, { "message", text, NULL },
		{ "shard", NULL, about->shard }, { "connection", NULL, about->connection },
		{ "peer", about->peer, NULL }, { "stage", about->stage, NULL }, { "reason", about->reason, NULL },
		{ "advice", about->advice, NULL },
	};
	struct timespec now;
	struct tm utc;
	size_t n = 1, len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	fields[0] = (struct field){ .name = "time" };
	len = strftime(fields[0].text, LINE_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(fields[0].text + len, LINE_BYTES - len, ".%06ldZ", now.tv_nsec / 1000);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct field *f = &fields[n];

		if (!all[i].text && !all[i].number)
			continue;
		*f = (struct field){ .name = all[i].name, .number = all[i].number };
		if (f->number)
			snprintf(f->text, sizeof(f->text), "%u", *f->number);
		else
			utf8_show(all[i].text, f->text, sizeof(f->text));
		n++;
	}
	return n;
}

/* Returns the length of the line with its newline. */
static size_t format_line(char line[LINE_BYTES], enum log_level level, const struct log_fields *about, const char *text)
{
	size_t at = append(line, 0, priority(level), strlen(priority(level))), n, len;
	struct field fields[FIELDS_MAX];

	if (log_format != LOG_FMT_TEXT) {
		n = add_fields(fields, level, about, text);
		while ((len = log_format == LOG_FMT_JSON ? format_json(line, at, fields, n) :
			      format_logfmt(line, at, fields, n)) >= LINE_BYTES)
			halve_longest(fields, n);
		if (len) {
			line[len] = '\n';
			return len + 1;
		}
	}
	len = format_text(line, at, level, text);
	line[len] = '\n';
	return len + 1;
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
	char line[LINE_BYTES], text[128];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%llu log lines were dropped: stderr is read too slowly", (unsigned long long)n);
	write_line(line, format_line(line, LOG_LVL_WARN, &no_fields, text));
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

__attribute__((format(printf, 3, 0)))
static void write_event(enum log_level level, const struct log_fields *fields, const char *fmt, va_list ap)
{
	char text[LINE_BYTES], line[LINE_BYTES];
	size_t len;

	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		return;
	len = format_line(line, level, fields, text);
	if (!atomic_load_explicit(&ring.running, memory_order_acquire))
		write_line(line, len);
	else if (!put_line(line, len))
		atomic_fetch_add_explicit(&ring.dropped, 1, memory_order_relaxed);
}

void log_write(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	write_event(level, &no_fields, fmt, ap);
	va_end(ap);
}

void log_write_event(enum log_level level, const struct log_fields *fields, const char *fmt, ...)
{
	va_list ap;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	write_event(level, fields, fmt, ap);
	va_end(ap);
}
