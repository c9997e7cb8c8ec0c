/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine made of files in a folder, as `performance_test doctor` looks at one, and what it finds there. */
#ifndef RAMPART_TESTS_UNIT_MACHINE_H
#define RAMPART_TESTS_UNIT_MACHINE_H

#include "loadgen/doctor/base/finding.h"
#include "tests/unit/files/scratch.h"

extern char machine_root[SCRATCH_MAX];
extern struct findings machine_found;

/* Set-up and tear-down of a test: an empty machine. */
int machine_make(void **state);
int machine_remove(void **state);

/* A file with this text, or a symbolic link; the folders that they need are made. */
void machine_put(const char *path, const char *text);
void machine_link(const char *path, const char *target);
/* Takes a file or folder away. */
void machine_take(const char *path);

/* Checks the machine anew. */
void machine_look(void (*check)(const char *root, struct findings *out));
/* The first finding of that kind; NULL if there is none. */
const struct finding *machine_finding(const char *check, enum finding_status status);
/* Fails unless there is such a finding, with `what` in its text. */
void machine_says(const char *check, enum finding_status status, const char *what);
/* Fails unless that is wrong, and mended so. */
void machine_mended_by(const char *check, const char *mend);

#endif
