/* Log lines to stderr: one write per line, so lines of several threads do not mix.
 *
 * A failure is logged once, where the foreign call failed, with what to do about it.
 */
#ifndef RAMPART_COMMON_LOG_H
#define RAMPART_COMMON_LOG_H

#include <stdbool.h>

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

/* The names --log-level takes, in the order of the enum, NULL-terminated. */
extern const char *const log_level_names[];

/* Call once before any thread is started. `program` must outlive every log call. */
void log_init(const char *program, enum log_level level);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) \
	do { \
		if (log_enabled(LOG_LVL_DEBUG)) \
			log_write(LOG_LVL_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
