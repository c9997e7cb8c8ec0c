/* SPDX-License-Identifier: BSD-2-Clause */
/* See beside.h. */
#include "common/host/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/paths.h"

#define WORDS_MAX 4

extern char **environ;

/* Starts the program with the writing end of the pipe as its stdout. Returns 0 or -errno. */
static int start_program(const char *program, const char *const words[], int out, pid_t *pid)
{
	char *argv[WORDS_MAX + 2] = { (char *)program };
	posix_spawn_file_actions_t files;
	int ret;

	for (int i = 0; i < WORDS_MAX && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	ret = posix_spawn_file_actions_init(&files);
	if (ret)
		return -ret;
	ret = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!ret)
		ret = posix_spawn(pid, program, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return -ret;
}

/* Reads to the end, so that the program never waits for a reader. */
static void read_first_line(int in, char *line, size_t size)
{
	FILE *f = fdopen(in, "r");
	char rest[256];

	line[0] = '\0';
	if (!f) {
		close(in);
		return;
	}
	if (fgets(line, (int)size, f))
		line[strcspn(line, "\n")] = '\0';
	while (fgets(rest, sizeof(rest), f))
		;
	fclose(f);
}

int beside_ask(const char *relative, const char *const words[], char *line, size_t size)
{
	char program[PATH_MAX];
	int ends[2], status, ret;
	pid_t pid;

	line[0] = '\0';
	ret = path_beside_program(relative, program, sizeof(program));
	if (ret)
		return ret;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	ret = start_program(program, words, ends[1], &pid);
	close(ends[1]);
	if (ret) {
		close(ends[0]);
		return ret;
	}
	read_first_line(ends[0], line, size);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}
