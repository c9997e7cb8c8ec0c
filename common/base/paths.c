/* Paths of files. See paths.h. */
#include "common/base/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
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

int path_write(const char *path, path_write_fn *write, const void *arg)
{
	char temporary[PATH_MAX];
	FILE *out;
	int ret;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	out = fopen(temporary, "we");
	if (!out)
		return -errno;
	ret = write(out, arg);
	if (ferror(out) && !ret)
		ret = -EIO;
	if (fclose(out) && !ret)
		ret = -errno;
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
	return ret;
}
