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

struct tree_path tree_at(const char *root, const char *format, ...)
{
	int n, m = -1;
	struct tree_path at;
	va_list args;

	va_start(args, format);
	n = snprintf(at.v, sizeof(at.v), "%s", root);
	if (n >= 0 && (size_t)n < sizeof(at.v))
		m = vsnprintf(at.v + n, sizeof(at.v) - (size_t)n, format, args);
	va_end(args);
	if (m < 0 || (size_t)(n + m) >= sizeof(at.v))
		at.v[0] = '\0';
	return at;
}

/* Reads in a loop, because files of /proc return partial reads. */
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

int tree_text(struct tree_path at, char *out, size_t size)
{
	int fd = open(at.v, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	out[0] = '\0';
	if (fd < 0)
		return -errno;
	ret = read_all(fd, out, size);
	close(fd);
	if (ret)
		out[0] = '\0';
	return ret;
}

int tree_line(struct tree_path at, char *out, size_t size)
{
	int ret = tree_text(at, out, size);

	out[strcspn(out, "\n")] = '\0';
	return ret;
}

bool tree_number(struct tree_path at, long *out)
{
	char text[32], *end;
	int ret = tree_line(at, text, sizeof(text));

	errno = 0;
	*out = strtol(text, &end, 10);
	return !ret && !errno && isdigit((unsigned char)text[0]) && !*end;
}

bool tree_has(struct tree_path at)
{
	return access(at.v, F_OK) == 0;
}

bool tree_link(struct tree_path at, char *out, size_t size)
{
	char target[PATH_MAX], *name;
	ssize_t n = readlink(at.v, target, sizeof(target) - 1);

	out[0] = '\0';
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
	const struct tree_path at = tree_at(root, "%s", folder);
	DIR *dir = opendir(at.v);
	struct dirent *e;
	int n = 0;

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
