/* SPDX-License-Identifier: BSD-2-Clause */
/* See tree.h. */
#include "loadgen/doctor/base/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool make_path(const char *root, char *out, size_t size, const char *format, va_list args)
{
	int n = snprintf(out, size, "%s", root), m;

	if (n < 0 || (size_t)n >= size)
		return false;
	m = vsnprintf(out + n, size - (size_t)n, format, args);
	return m >= 0 && (size_t)m < size - (size_t)n;
}

bool tree_path(const char *root, char *out, size_t size, const char *format, ...)
{
	va_list args;
	bool fits;

	va_start(args, format);
	fits = make_path(root, out, size, format, args);
	va_end(args);
	return fits;
}

/* Files of /proc come in pieces. */
static int read_all(int fd, char *out, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have + 1 < size && (n = read(fd, out + have, size - 1 - have)) != 0) {
		if (n < 0)
			return -errno;
		have += (size_t)n;
	}
	out[have] = '\0';
	return 0;
}

static int read_text(const char *root, char *out, size_t size, const char *format, va_list args)
{
	char path[PATH_MAX];
	int fd, ret;

	out[0] = '\0';
	if (!make_path(root, path, sizeof(path), format, args))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ret = read_all(fd, out, size);
	close(fd);
	if (ret)
		out[0] = '\0';
	return ret;
}

int tree_text(const char *root, char *out, size_t size, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = read_text(root, out, size, format, args);
	va_end(args);
	return ret;
}

int tree_line(const char *root, char *out, size_t size, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = read_text(root, out, size, format, args);
	va_end(args);
	out[strcspn(out, "\n")] = '\0';
	return ret;
}

bool tree_number(const char *root, long *out, const char *format, ...)
{
	char text[32], *end;
	va_list args;
	int ret;

	va_start(args, format);
	ret = read_text(root, text, sizeof(text), format, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	errno = 0;
	*out = strtol(text, &end, 10);
	return !ret && !errno && isdigit((unsigned char)text[0]) && !*end;
}

bool tree_has(const char *root, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	bool fits;

	va_start(args, format);
	fits = make_path(root, path, sizeof(path), format, args);
	va_end(args);
	return fits && access(path, F_OK) == 0;
}

bool tree_link(const char *root, char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX], *name;
	va_list args;
	ssize_t n;
	bool fits;

	out[0] = '\0';
	va_start(args, format);
	fits = make_path(root, path, sizeof(path), format, args);
	va_end(args);
	n = fits ? readlink(path, target, sizeof(target) - 1) : -1;
	if (n < 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	return tree_is_name(name) && (size_t)snprintf(out, size, "%s", name) < size;
}

bool tree_is_name(const char *name)
{
	if (!isalnum((unsigned char)name[0]))
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-:", *c))
			return false;
	return true;
}

int tree_each(const char *root, const char *folder, void (*each)(void *arg, const char *name), void *arg)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;
	int n = 0;

	if (!tree_path(root, path, sizeof(path), "%s", folder))
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (tree_is_name(e->d_name)) {
			each(arg, e->d_name);
			n++;
		}
	closedir(dir);
	return n;
}
