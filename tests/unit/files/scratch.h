/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for the files of one test, below $TMPDIR (run-unit gives each run one of its own) or /tmp. */
#ifndef RAMPART_TESTS_UNIT_SCRATCH_H
#define RAMPART_TESTS_UNIT_SCRATCH_H

#define SCRATCH_MAX 128

/* 0, or -1 when there is none. */
int scratch_make(char dir[SCRATCH_MAX]);
/* With all that is in it. 0, or -1 when something is left. */
int scratch_remove(const char *dir);

/* Makes a file with this text at `path` in the folder, with the folders above it. A path that ends with a slash makes a
 * folder. */
void scratch_put(const char *dir, const char *path, const char *text);

#endif
