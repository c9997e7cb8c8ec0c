/* Paths of files: beside the program, and folders to make. Any thread. */
#ifndef RAMPART_COMMON_PATHS_H
#define RAMPART_COMMON_PATHS_H

#include <stddef.h>

/* Writes to `out`, of `size` bytes, the path of `relative` below the folder of the running program. Returns 0,
 * -ENAMETOOLONG if `out` is too small, or the -errno of readlink(2) on /proc/self/exe. */
int path_beside_program(const char *relative, char *out, size_t size)
	__attribute__((warn_unused_result));

/* Makes every folder of `path` that is missing, as mkdir -p does. Returns 0, -ENAMETOOLONG for an empty path or one
 * above PATH_MAX, or the -errno of mkdir(2). */
int path_make_dirs(const char *path) __attribute__((warn_unused_result));

#endif
