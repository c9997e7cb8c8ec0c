/* See tree.h. */
#include "loadgen/doctor/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
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

int tree_line(const char *root, char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;
	int fd, ret;

	out[0] = '\0';
	va_start(args, format);
	ret = make_path(root, path, sizeof(path), format, args) ? 0 : -ENAMETOOLONG;
	va_end(args);
	if (ret)
		return ret;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	ret = n < 0 ? -errno : 0;
	close(fd);
	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return ret;
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
