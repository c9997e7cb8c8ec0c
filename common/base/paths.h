/* Paths of files: beside the program, and folders to make. Any thread. */
#ifndef RAMPART_COMMON_PATHS_H
#define RAMPART_COMMON_PATHS_H

#include <stddef.h>
#include <stdio.h>

/* Writes to `out`, of `size` bytes, the path of `relative` below the folder of the running program. Returns 0,
 * -ENAMETOOLONG if `out` is too small, or the -errno of readlink(2) on /proc/self/exe. */
int path_beside_program(const char *relative, char *out, size_t size)
	__attribute__((warn_unused_result));

/* Makes every folder of `path` that is missing, as mkdir -p does. Returns 0, -ENAMETOOLONG for an empty path or one
 * above PATH_MAX, or the -errno of mkdir(2). */
int path_make_dirs(const char *path) __attribute__((warn_unused_result));

/* Makes or replaces a file with what `write` writes. The file has another name until it is complete, so that it is never
 * half of one. Returns 0, what `write` returned if not 0, -EIO if its output failed, -ENAMETOOLONG, or the -errno of
 * fopen(3), fclose(3) or rename(2). */
typedef int path_write_fn(FILE *out, const void *arg);
int path_write(const char *path, path_write_fn *write, const void *arg) __attribute__((warn_unused_result));

#endif
