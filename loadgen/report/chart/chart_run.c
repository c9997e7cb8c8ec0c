/* Running gnuplot. See chart_internal.h. What goes in and comes out are files in memory: nothing is left on a disk,
 * and no pipe can fill up. */
#include "loadgen/report/chart/chart_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/utf8.h"

#define OUTPUT_MAX (64 << 20)
#define ERRORS_MAX 4096

enum { IN, OUT, ERR, FILES };

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		p += w;
		n -= (size_t)w;
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* What a file holds, up to `max`, as a text. NULL when out of memory. */
static char *read_all(int fd, size_t max)
{
	struct stat st;
	size_t size = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0, n = 0;
	char *text;

	size = size < max ? size : max;
	text = malloc(size + 1);
	while (text && n < size) {
		ssize_t r = pread(fd, text + n, size - n, (off_t)n);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	if (text)
		text[n] = '\0';
	return text;
}

/* Its own signals and environment: neither what this program ignores nor what the user set for gnuplot matters. */
static int spawn(const int fds[FILES], pid_t *pid)
{
	char *const argv[] = { "gnuplot", "-d", "-", NULL };
	char *const envp[] = { "LC_ALL=C", "HOME=/", "GNUTERM=dumb", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int ret;

	sigemptyset(&none);
	sigfillset(&all);
	ret = posix_spawn_file_actions_init(&actions);
	if (ret)
		return -ret;
	ret = posix_spawnattr_init(&attr);
	if (ret)
		goto err_actions;
	for (int i = 0; i < FILES && !ret; i++)
		ret = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	if (!ret)
		ret = posix_spawnattr_setsigmask(&attr, &none);
	if (!ret)
		ret = posix_spawnattr_setsigdefault(&attr, &all);
	if (!ret)
		ret = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!ret)
		ret = posix_spawnp(pid, argv[0], &actions, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
err_actions:
	posix_spawn_file_actions_destroy(&actions);
	return -ret;
}

/* 0, or -ETIMEDOUT: it was killed. -EIO: it failed. */
static int await(pid_t pid, int64_t limit_ms)
{
	int64_t deadline = now_ms() + limit_ms;
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		if (now_ms() >= deadline) {
			kill(pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			return -ETIMEDOUT;
		}
		poll(NULL, 0, 10);
	}
	return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* The line of what gnuplot complained that says most: its last one. */
static void last_line(int fd, char *out, size_t size)
{
	char *text = read_all(fd, ERRORS_MAX), *clean = NULL, *line;

	while (text && (line = strrchr(text, '\n')) && !line[1 + strspn(line + 1, " \t\n")])
		*line = '\0';
	line = text ? strrchr(text, '\n') : NULL;
	if (text)
		clean = utf8_clean(line ? line + 1 : text, false);
	snprintf(out, size, "%s", clean && *clean ? clean + strspn(clean, " ") : "it said nothing");
	free(clean);
	free(text);
}

static void explain(int ret, int fd, char *err, size_t err_size)
{
	char said[200];

	if (ret == -ENOENT) {
		snprintf(err, err_size, "gnuplot is not installed, so there are no charts: make deps");
	} else if (ret == -ETIMEDOUT) {
		snprintf(err, err_size, "gnuplot took too long and was stopped, so charts are missing");
	} else if (ret == -EIO) {
		last_line(fd, said, sizeof(said));
		snprintf(err, err_size, "gnuplot failed, so charts are missing: %s", said);
	} else {
		snprintf(err, err_size, "gnuplot cannot be run, so there are no charts: %s", strerror(-ret));
	}
}

int chart_run(const char *script, size_t n, int64_t limit_ms, char **svgs, char *err, size_t err_size)
{
	int fds[FILES] = { -1, -1, -1 }, ret = 0;
	pid_t pid;

	*svgs = NULL;
	for (int i = 0; i < FILES && !ret; i++) {
		fds[i] = memfd_create("chart", MFD_CLOEXEC);
		ret = fds[i] < 0 ? -errno : 0;
	}
	if (!ret)
		ret = write_all(fds[IN], script, n);
	if (!ret)
		ret = spawn(fds, &pid);
	if (!ret) {
		ret = await(pid, limit_ms);
		*svgs = read_all(fds[OUT], OUTPUT_MAX);
		if (!*svgs)
			ret = -ENOMEM;
	}
	if (ret)
		explain(ret, fds[ERR], err, err_size);
	for (int i = 0; i < FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}
