/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads small files of /sys, /proc and /dev below a folder, which is "" but in tests. What is in them may be anything. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_TREE_H
#define RAMPART_LOADGEN_DOCTOR_BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* The path of what `format` names, for system calls. False if it is too long. */
bool tree_path(const char *root, char *out, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The file's first line, without its end. 0, -ENAMETOOLONG, or the -errno of open(2) or read(2); then `out` is "". */
int tree_line(const char *root, char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The whole file, or as much of it as fits. */
int tree_text(const char *root, char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A decimal number without a sign, alone in its file. False if there is none. */
bool tree_number(const char *root, long *out, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* True if there is such a file or folder. */
bool tree_has(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The last name of what a symbolic link points to. False if there is none, it does not fit, or a shell does not take it as
 * it is. */
bool tree_link(const char *root, char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Calls `each` for every name in the folder that a shell takes as it is (letters, digits, '.', '_', '-', ':'). Returns how
 * many there were, or the -errno of opendir(3). */
int tree_each(const char *root, const char *folder, void (*each)(void *arg, const char *name), void *arg);

/* True if a shell takes it as it is, and no program as an option. */
bool tree_is_name(const char *name);

#endif
