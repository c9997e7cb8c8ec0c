/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to stderr. Lines of one thread keep their order, and lines of several threads do not mix.
 *
 * Between log_start and log_stop no caller waits for stderr's reader: a thread of the log writes the lines. If the
 * reader stalls, up to 1,024 lines wait; those beyond are dropped and counted, and the count is logged when the reader
 * goes on. Before log_start and after log_stop the caller writes the line itself.
 *
 * A failure is logged once, where the foreign call failed, with what to do about it. After an abort or a crash the lines
 * that still wait are lost.
 */
#ifndef RAMPART_COMMON_LOG_H
#define RAMPART_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

/* The names --log-level takes, in the order of the enum, NULL-terminated. */
extern const char *const log_level_names[];

/* Sets the name that begins each line and the lowest level that is logged. `program` is kept, not copied. Call it
 * before any other thread is started. */
void log_init(const char *program, enum log_level level);

/* Starts the thread that writes the lines. Call it before the threads that must not wait, and not before an exec that
 * replaces this process. If the thread cannot be made, lines are written by their callers, and a line says so. */
void log_start(void);

/* Waits until the lines logged so far are written, for a second at most. Call it when the other threads that log have
 * ended. Nothing happens without log_start. If the second was not enough, log calls still do not wait, and log_stop may
 * be called again. */
void log_stop(void);

/* True if lines of this level are logged. Any thread. */
bool log_enabled(enum log_level level);

/* Logs a line: program, level (none for an error), text. It is cut at 1,023 bytes; `fmt` has no newline. Control characters
 * are shown (utf8_show), so that a text from a peer cannot make a second line or control the terminal. Any thread, but
 * not in a signal handler, nor in a child between fork and exec: the child has no thread that empties the ring. */
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True at most once in that time: for lines that every client may cause. `*next_ns` is when the next one may be, 0 at first. */
bool log_is_due(uint64_t *next_ns, uint64_t every_ns);

#define log_error(...) log_write(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) \
	do { \
		if (log_enabled(LOG_LVL_DEBUG)) \
			log_write(LOG_LVL_DEBUG, __VA_ARGS__); \
	} while (0)

/* What the user asked to see, whatever the level is. */
#define log_always(...) log_write(LOG_LVL_ERROR, __VA_ARGS__)

#endif
