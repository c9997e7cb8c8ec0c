/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets tests read the log: stderr goes into memory while it is watched. */
#ifndef RAMPART_TESTS_UNIT_LOG_WATCH_H
#define RAMPART_TESTS_UNIT_LOG_WATCH_H

#include <stddef.h>

/* From now on, from level info. What was watched before is forgotten. */
void log_watch_begin(const char *program);
/* Returns the number of lines, and all of them in `text`. */
int log_watch_read(char *text, size_t size);
/* The log goes to stderr again, errors only. May be called twice. */
void log_watch_end(void);

#endif
