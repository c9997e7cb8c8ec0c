/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to stderr: text for people, or JSON or logfmt, with a time and fields, for programs that collect logs. If
 * stderr is the journal's (JOURNAL_STREAM), each line begins with its priority, <3> to <7>. Lines of one thread keep
 * their order, and lines of several threads do not mix.
 *
 * Between log_start and log_stop no caller waits for stderr's reader, because the log's own thread writes the lines. If
 * the reader stalls, up to 1,024 lines wait; further lines are dropped and counted, and the count is logged when the
 * reader continues. Before log_start and after log_stop the caller writes the line itself.
 *
 * A failure is logged once, where the foreign call failed, with what to do about it. After an abort or a crash, lines
 * that still wait are lost.
 */
#ifndef RAMPART_COMMON_LOG_H
#define RAMPART_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* LOG_LVL_NOTICE is for what the user asked to see; it is logged at any level. */
enum log_level { LOG_LVL_NOTICE = -1, LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };
enum log_format { LOG_FMT_TEXT, LOG_FMT_JSON, LOG_FMT_LOGFMT };

/* The names that --log-level (from LOG_LVL_ERROR on) and --log-format take, in the order of the enums,
 * NULL-terminated. */
extern const char *const log_level_names[];
extern const char *const log_format_names[];

/* Fields of an event, which the text of its line repeats. Fields that are NULL are left out. */
struct log_fields {
	const uint32_t *shard, *connection;	/* index of the shard, and of the connection in it */
	const char *peer, *stage, *reason, *advice;
};

/* Sets the name at the start of each line and the lowest level that is logged. `program` is kept, not copied. Call it
 * before any other thread is started. */
void log_init(const char *program, enum log_level level);

/* Sets the format, at first LOG_FMT_TEXT. Call it before any other thread is started. */
void log_set_format(enum log_format format);

/* Starts the thread that writes the lines. Call it before starting threads that must not wait, and not before an exec
 * that replaces this process. If the thread cannot be created, callers write the lines, and a line says so. */
void log_start(void);

/* Waits until the lines logged so far are written, for at most a second. Call it when the other threads that log have
 * ended. Does nothing without log_start. After a timeout log calls still do not wait, and log_stop may be called
 * again. */
void log_stop(void);

/* True if lines of this level are logged. Any thread. */
bool log_enabled(enum log_level level);

/* Logs a line: program, level (none for a notice or an error), text. Truncates it at 1,023 bytes; in JSON and logfmt it
 * halves the longest field until the line fits. Without memory for JSON, the line is written as text. `fmt` has no
 * newline. Escapes control characters (utf8_show), so that text from a peer cannot start a second line or control the
 * terminal. Any thread, but not in a signal handler, nor in a child between fork and exec, because the child has no
 * writer thread. */
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with fields, which are read during the call only. Most callers use log_event, whose arguments are not
 * evaluated if the level is not logged. */
void log_write_event(enum log_level level, const struct log_fields *fields, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True at most once per `every_ns`: for lines that any client can cause. `*next_ns`, at first 0, is the next time. */
bool log_is_due(uint64_t *next_ns, uint64_t every_ns);

#define log_event(level, ...) \
	do { \
		if (log_enabled(level)) \
			log_write_event(level, __VA_ARGS__); \
	} while (0)
#define log_error(...) log_write(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) \
	do { \
		if (log_enabled(LOG_LVL_DEBUG)) \
			log_write(LOG_LVL_DEBUG, __VA_ARGS__); \
	} while (0)

/* Logs what the user asked to see, at any log level. */
#define log_always(...) log_write(LOG_LVL_NOTICE, __VA_ARGS__)

#endif
