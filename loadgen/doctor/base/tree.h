/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads small files of /sys, /proc and /dev below a folder, which is "" but in tests. What is in them may be anything. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_TREE_H
#define RAMPART_LOADGEN_DOCTOR_BASE_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The path of a file below the folder; "" if it is too long, so that there is no such file. */
struct tree_path {
	char v[PATH_MAX];
};
struct tree_path tree_at(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The whole file, or as much of it as fits. 0, or the -errno of open(2) or read(2); then `out` is "". */
int tree_text(struct tree_path at, char *out, size_t size);
/* The same of its first line, without its end. */
int tree_line(struct tree_path at, char *out, size_t size);
/* A decimal number without a sign, alone in its file. False if there is none. */
bool tree_number(struct tree_path at, long *out);
/* True if there is such a file or folder. */
bool tree_has(struct tree_path at);
/* The last name of what a symbolic link points to. False if there is none, it does not fit, or a shell does not take it as
 * it is. */
bool tree_link(struct tree_path at, char *out, size_t size);

/* Calls `each` for every name in the folder that a shell takes as it is (letters, digits, '.', '_', '-', ':'). Returns how
 * many there were, or the -errno of opendir(3). */
int tree_each(const char *root, const char *folder, void (*each)(void *arg, const char *name), void *arg);

/* True if a shell takes it as it is, and no program as an option. */
bool tree_is_name(const char *name);

#endif
