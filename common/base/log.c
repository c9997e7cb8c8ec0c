/* Log lines to stderr. Any thread; the level is set once at start. Non-goal: files and rotation,
 * which belong to whoever owns stderr. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const char *const log_level_names[] = { "error", "warn", "info", "debug", NULL };

static enum log_level log_threshold = LOG_LVL_INFO;
static const char *log_program = "rampart";

void log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_threshold = level;
}

bool log_enabled(enum log_level level)
{
	return level <= log_threshold;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	int n, m;
	va_list ap;

	if (!log_enabled(level))
		return;
	if (level == LOG_LVL_ERROR)
		n = snprintf(line, sizeof(line), "%s: ", log_program);
	else
		n = snprintf(line, sizeof(line), "%s: %s: ", log_program, log_level_names[level]);
	if (n < 0 || (size_t)n >= sizeof(line) - 2)
		return;
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n += m;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nowhere left to say it */
}
