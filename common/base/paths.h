/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of files beside the program; folders, and the files that are made in them. Any thread.
 *
 * What is made in a folder stays in it: a symbolic link in the place of a file, of its temporary name, or of a folder is an
 * error (-ELOOP) and is left as it is. Only links in the path of the folder itself are followed, since the user named it. */
#ifndef RAMPART_COMMON_PATHS_H
#define RAMPART_COMMON_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes to `out`, of `size` bytes, the path of `relative` below the folder of the running program. Returns 0,
 * -ENAMETOOLONG if `out` is too small, or the -errno of readlink(2) on /proc/self/exe. */
int path_beside_program(const char *relative, char *out, size_t size)
	__attribute__((warn_unused_result));

/* Makes every folder of `path` that is missing, as mkdir -p does. Returns 0, -ENAMETOOLONG for an empty path or one
 * above PATH_MAX, or the -errno of mkdir(2). */
int path_make_dirs(const char *path) __attribute__((warn_unused_result));

/* Opens a folder. Returns a descriptor, or the -errno of open(2). */
int path_open_folder(const char *path) __attribute__((warn_unused_result));

/* Opens the folder `name` of an opened folder, and makes it if it is missing. Returns a descriptor, -ELOOP, or the -errno
 * of mkdirat(2) or openat(2). */
int path_make_folder(int folder, const char *name) __attribute__((warn_unused_result));

/* Makes a file in an opened folder, to be appended to. There must be none yet. Returns a descriptor, -ELOOP, -EEXIST, or
 * the -errno of openat(2). */
int path_make_file(int folder, const char *name) __attribute__((warn_unused_result));

/* Reads a whole regular file, of at most `bytes_max` bytes, into *text: *bytes of it and a final zero; the caller frees it. A pipe,
 * device or folder in its place is not waited for. Links are followed, since the user named the file. Returns 0, -EINVAL
 * if it is not a regular file, -EFBIG if it has more bytes, -ENOMEM, or the -errno of open(2) or read(2). */
int path_read(const char *path, size_t bytes_max, char **text, size_t *bytes) __attribute__((warn_unused_result));

/* Opens a regular file to read, as path_read does. A descriptor, -EINVAL, or the -errno of open(2). */
int path_open_file(const char *path) __attribute__((warn_unused_result));

/* Writes all of `data`. Returns 0 or the -errno of write(2). */
int path_put(int fd, const void *data, size_t bytes) __attribute__((warn_unused_result));

/* Makes or replaces a file in an opened folder with what `write` writes. Until it is complete the file is called
 * NAME.tmp, so that it is never half of one, and what remains of it after an error is removed. Returns 0; the -errno with
 * which the file could not be written, whatever `write` made of that; what `write` returned if not 0; -ELOOP;
 * -ENAMETOOLONG; or the -errno of openat(2), close(2) or renameat(2). */
typedef int path_write_fn(FILE *out, const void *arg);
int path_write_in(int folder, const char *name, path_write_fn *write, const void *arg)
	__attribute__((warn_unused_result));

/* The same for a path. */
int path_write(const char *path, path_write_fn *write, const void *arg) __attribute__((warn_unused_result));

/* Makes a file anew, or adds to the one that is there, what `write` writes. After an error the file is as long as before,
 * and removed if that is empty. Returns as path_write_in does. */
int path_append(const char *path, bool anew, path_write_fn *write, const void *arg) __attribute__((warn_unused_result));

/* What such an error means, in words. */
const char *path_error(int error);

#endif
