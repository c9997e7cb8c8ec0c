/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what is logged. See log_watch.h. */
#include "tests/unit/helpers/unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/unit/files/log_watch.h"

static int watched = -1, saved_stderr = -1;
static const char *watched_program;

void log_watch_begin(const char *program)
{
	log_watch_end();
	watched = memfd_create("log", MFD_CLOEXEC);
	saved_stderr = dup(STDERR_FILENO);
	assert_true(watched >= 0 && saved_stderr >= 0);
	assert_true(dup2(watched, STDERR_FILENO) >= 0);
	watched_program = program;
	log_init(program, LOG_LVL_INFO);
}

int log_watch_read(char *text, size_t size)
{
	ssize_t n = pread(watched, text, size - 1, 0);
	int lines = 0;

	assert_true(n >= 0);
	text[n] = '\0';
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	return lines;
}

void log_watch_end(void)
{
	if (watched < 0)
		return;
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(watched);
	saved_stderr = watched = -1;
	log_init(watched_program, LOG_LVL_ERROR);
}
