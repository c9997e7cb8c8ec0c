/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads small files of /sys, /proc and /dev below a root folder ("" except in tests). Their content may be anything. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_TREE_H
#define RAMPART_LOADGEN_DOCTOR_BASE_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The path of a file below the root; "", which no file has, if it is too long. */
struct tree_path {
	char v[PATH_MAX];
};
struct tree_path tree_at(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the whole file, or as much as fits. Returns 0, or -errno of open(2) or read(2) with "" in `out`. */
int tree_text(struct tree_path at, char *out, size_t size);
/* Like tree_text for the first line, without the line end. */
int tree_line(struct tree_path at, char *out, size_t size);
/* Reads a file that contains only an unsigned decimal number. False for any other content. */
bool tree_number(struct tree_path at, long *out);
/* True if there is such a file or folder. */
bool tree_has(struct tree_path at);
/* The last component of the target of a symbolic link. False if there is none, it does not fit, or tree_is_name rejects
 * it. */
bool tree_link(struct tree_path at, char *out, size_t size);

/* Calls `each` for every name in the folder that tree_is_name accepts. Returns their number, or -errno of
 * opendir(3). */
int tree_each(const char *root, const char *folder, void (*each)(void *arg, const char *name), void *arg);

/* True if a name is safe unquoted in a shell: letters, digits, '.', '_', '-', ':', starting with a letter or digit. */
bool tree_is_name(const char *name);

#endif
