/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths, folders and files. See paths.h. */
#include "common/base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int path_beside_program(const char *relative, char *out, size_t size)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	if (snprintf(out, size, "%s/%s", exe, relative) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}

int path_of_certificate(const char *name, char *out, size_t size)
{
	char relative[64], installed[64];
	int ret;

	snprintf(relative, sizeof(relative), "build/certs/%s", name);
	snprintf(installed, sizeof(installed), "/etc/rampart/%s", name);
	ret = path_beside_program(relative, out, size);
	if (!ret && access(out, F_OK) && !access(installed, F_OK) && strlen(installed) < size)
		strcpy(out, installed);
	return ret;
}

int path_make_dirs(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return -errno;
		part[i] = path[i];
	}
	return 0;
}

const char *path_error(int error)
{
	return error == -ELOOP ? "a symbolic link is in its place (or in that of its temporary file, .tmp)" :
	       error == -EINVAL ? "not a regular file" : strerror(-error);
}

/* The file type of `name` (S_IFREG and so on), without following links; 0 if it does not exist. */
static mode_t kind_of(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Returns why `name` could not be opened: -ELOOP for a link, for which the kernel has several errors, else -errno. */
static int open_error(int folder, const char *name)
{
	int error = errno;

	return kind_of(folder, name) == S_IFLNK ? -ELOOP : -error;
}

int path_open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int path_make_folder(int folder, const char *name)
{
	int fd;

	if (mkdirat(folder, name, 0777) && errno != EEXIST)
		return -errno;
	fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? open_error(folder, name) : fd;
}

int path_make_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	return fd < 0 ? open_error(folder, name) : fd;
}

int path_open_file(const char *path)
{
	struct stat st;
	int fd;

	/* Opening a device can have side effects, so stat comes first; fstat checks again, because the path may name
	 * another file by then. With O_NONBLOCK, opening a FIFO without a writer does not block. */
	if (stat(path, &st))
		return -errno;
	fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	if (fd < 0)
		return S_ISREG(st.st_mode) ? -errno : -EINVAL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

/* Reads to the end of the file, or until more than `bytes_max` bytes were read. */
static int read_all(int fd, size_t bytes_max, char **text, size_t *bytes)
{
	size_t room = 0;
	ssize_t n = 1;

	while (n > 0 && *bytes <= bytes_max) {
		if (*bytes + 1 >= room) {
			char *grown = realloc(*text, 2 * room + 4096);

			room = 2 * room + 4096;
			if (!grown)
				return -ENOMEM;
			*text = grown;
		}
		n = read(fd, *text + *bytes, room - *bytes - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		*bytes += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	return *bytes > bytes_max ? -EFBIG : 0;
}

int path_read(const char *path, size_t bytes_max, char **text, size_t *bytes)
{
	int fd = path_open_file(path), ret;

	*text = NULL;
	*bytes = 0;
	if (fd < 0)
		return fd;
	ret = read_all(fd, bytes_max, text, bytes);
	close(fd);
	if (ret) {
		free(*text);
		*text = NULL;
	} else {
		(*text)[*bytes] = '\0';
	}
	return ret;
}

bool path_last_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[256];

	text[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (line[0] != '\n')
			snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
	return text[0];
}

int path_put(int fd, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = write(fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* A stream that keeps the error of a failed write, because stdio and code that writes through it (jansson) only report
 * that there was one. */
struct sink {
	int fd, error;
};

static ssize_t on_stream_write(void *cookie, const char *data, size_t bytes)
{
	struct sink *s = cookie;

	if (!s->error)
		s->error = path_put(s->fd, data, bytes);
	return s->error ? 0 : (ssize_t)bytes;
}

static int write_temporary(int fd, path_write_fn *write, const void *arg)
{
	struct sink s = { .fd = fd };
	FILE *out = fopencookie(&s, "w", (cookie_io_functions_t){ .write = on_stream_write });
	int ret = out ? write(out, arg) : -ENOMEM;

	if (out && fclose(out) && !ret)
		ret = -EIO;
	return s.error ? s.error : ret;
}

/* Creates the temporary file. Removes one that a killed run has left behind. */
static int make_temporary(int folder, const char *name)
{
	int fd = path_make_file(folder, name);

	if (fd == -EEXIST && kind_of(folder, name) == S_IFREG && unlinkat(folder, name, 0) == 0)
		fd = path_make_file(folder, name);
	return fd;
}

int path_write_in(int folder, const char *name, path_write_fn *write, const void *arg)
{
	char temporary[NAME_MAX + 1];
	int fd, ret;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", name) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	if (!*name)
		return -EISDIR;
	if (kind_of(folder, name) == S_IFLNK)
		return -ELOOP;
	fd = make_temporary(folder, temporary);
	if (fd < 0)
		return fd;
	ret = write_temporary(fd, write, arg);
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(folder, temporary, folder, name))
		ret = -errno;
	if (ret)
		unlinkat(folder, temporary, 0);
	return ret;
}

/* Opens the folder that contains a file, and sets `name` to the file's name in it. */
static int open_parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	*name = slash ? slash + 1 : path;
	if (strlen(path) >= sizeof(dir))
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
	return path_open_folder(dir);
}

int path_may_write(const char *path)
{
	const char *name;
	int folder = open_parent(path, &name), ret = 0;

	if (folder < 0)
		return folder;
	if (!*name || kind_of(folder, name) == S_IFDIR)
		ret = -EISDIR;
	else if (kind_of(folder, name) == S_IFLNK)
		ret = -ELOOP;
	else if (strlen(name) + strlen(".tmp") > NAME_MAX)
		ret = -ENAMETOOLONG;
	else if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS))
		ret = -errno;
	close(folder);
	return ret;
}

int path_write(const char *path, path_write_fn *write, const void *arg)
{
	const char *name;
	int folder = open_parent(path, &name), ret;

	if (folder < 0)
		return folder;
	ret = path_write_in(folder, name, write, arg);
	close(folder);
	return ret;
}

/* Opens a file for writing, and sets `bytes` to its length. Returns a descriptor or -errno. */
static int open_to_append(int folder, const char *name, bool anew, off_t *bytes)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (anew ? O_TRUNC : O_APPEND), 0666);

	if (fd < 0)
		return open_error(folder, name);
	*bytes = lseek(fd, 0, SEEK_END);
	return fd;
}

int path_append(const char *path, bool anew, path_write_fn *write, const void *arg)
{
	const char *name;
	int folder = open_parent(path, &name), fd, ret;
	off_t before = 0;

	if (folder < 0)
		return folder;
	ret = fd = open_to_append(folder, name, anew, &before);
	if (fd >= 0) {
		ret = write_temporary(fd, write, arg);
		if (ret && ftruncate(fd, before) == 0 && before == 0)
			unlinkat(folder, name, 0);
		if (close(fd) && !ret)
			ret = -errno;
	}
	close(folder);
	return ret;
}
