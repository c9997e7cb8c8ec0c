/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of this machine whose output doctor reads. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_RUN_H
#define RAMPART_LOADGEN_DOCTOR_BASE_RUN_H

#include <stdio.h>

/* Starts a program of the system's folders, without any of the caller's PATH, and gives its output. `arguments` is for
 * a shell, and may have errors written there too (2>&1). 0; -EPERM: only root's is run, and we are not; -ENOENT: it is not installed; -ENOMEM or another -errno of
 * popen(3). */
int run_open(const char *program, const char *arguments, FILE **out) __attribute__((warn_unused_result));
/* Waits for its end. Its exit status, or -1. */
int run_close(FILE *out);

#endif
