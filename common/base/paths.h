/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of files beside the program; folders, and files created in them. Any thread.
 *
 * Files stay in the folder they are created in: a symbolic link in place of a file, its temporary name or a folder is
 * an error (-ELOOP) and is left alone. Links in the path of the folder itself are followed: the user named it. */
#ifndef RAMPART_COMMON_PATHS_H
#define RAMPART_COMMON_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes to `out`, of `size` bytes, the path of `relative` below the folder of the running program. Returns 0,
 * -ENAMETOOLONG if `out` is too small, or the -errno of readlink(2) on /proc/self/exe. */
int path_beside_program(const char *relative, char *out, size_t size)
	__attribute__((warn_unused_result));

/* Writes to `out` the default path of a certificate or key: build/certs/NAME beside the program, or /etc/rampart/NAME
 * where only that exists, as for installed programs. Errors as path_beside_program. */
int path_of_certificate(const char *name, char *out, size_t size) __attribute__((warn_unused_result));

/* Creates every missing folder of `path`, like mkdir -p. Returns 0, -ENAMETOOLONG for an empty path or one above
 * PATH_MAX, or the -errno of mkdir(2). */
int path_make_dirs(const char *path) __attribute__((warn_unused_result));

/* Opens a folder. Returns a descriptor, or the -errno of open(2). */
int path_open_folder(const char *path) __attribute__((warn_unused_result));

/* Opens the folder `name` in an open folder, and creates it if it is missing. Returns a descriptor, -ELOOP, or the
 * -errno of mkdirat(2) or openat(2). */
int path_make_folder(int folder, const char *name) __attribute__((warn_unused_result));

/* Creates a file in an open folder, for appending. It must not exist yet. Returns a descriptor, -ELOOP, -EEXIST, or the
 * -errno of openat(2). */
int path_make_file(int folder, const char *name) __attribute__((warn_unused_result));

/* Reads a whole regular file of at most `bytes_max` bytes into *text, adds a final zero and sets *bytes; the caller
 * frees *text. Does not block on a pipe, device or folder. Follows links, because the user named the file. Returns 0,
 * -EINVAL if it is not a regular file, -EFBIG if it is larger, -ENOMEM, or the -errno of open(2) or read(2). */
int path_read(const char *path, size_t bytes_max, char **text, size_t *bytes) __attribute__((warn_unused_result));

/* Opens a regular file for reading, like path_read. Returns a descriptor, -EINVAL, or the -errno of open(2). */
int path_open_file(const char *path) __attribute__((warn_unused_result));

/* Writes the file's last line that is not empty to `text`, cut to fit; of a line of 256 bytes or more, its last part.
 * Returns false, and writes "", if there is none or the file cannot be read. */
bool path_last_line(const char *path, char *text, size_t size);

/* Writes all of `data`. Returns 0 or the -errno of write(2). */
int path_put(int fd, const void *data, size_t bytes) __attribute__((warn_unused_result));

/* Creates or replaces a file in an open folder with the output of `write`. Until complete, the file is called NAME.tmp,
 * so that NAME is never half written; it is removed after an error. Returns 0; the -errno with which the file could not
 * be written, whatever `write` returned; otherwise what `write` returned, if not 0; -ELOOP; -ENAMETOOLONG; or the
 * -errno of openat(2), close(2) or renameat(2). */
typedef int path_write_fn(FILE *out, const void *arg);
int path_write_in(int folder, const char *name, path_write_fn *write, const void *arg)
	__attribute__((warn_unused_result));

/* The same for a path. */
int path_write(const char *path, path_write_fn *write, const void *arg) __attribute__((warn_unused_result));

/* Tells in advance whether path_write and path_append can work: the folder must exist and be writable, and the path
 * must not be that of a folder or of a symbolic link, nor be too long. Returns 0 or -errno. */
int path_may_write(const char *path) __attribute__((warn_unused_result));

/* Appends the output of `write` to a file, which is created if missing, and first emptied if `anew`. After an error the
 * file is truncated to its length before the append, and removed if that is 0. Returns as path_write_in. */
int path_append(const char *path, bool anew, path_write_fn *write, const void *arg) __attribute__((warn_unused_result));

/* Describes an error of these functions in words. */
const char *path_error(int error);

#endif
