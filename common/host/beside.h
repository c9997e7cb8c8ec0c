/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a program that lies beside the running one, such as scripts/softroce. Any thread. */
#ifndef RAMPART_COMMON_BESIDE_H
#define RAMPART_COMMON_BESIDE_H

#include <stddef.h>

/* Runs `relative`, a path below the folder of the running program, with the arguments `words`, which end with NULL, and
 * waits for it. Its stdin is empty; its stderr is ours. Writes the first line of its stdout to `line`, cut to `size`
 * bytes; "" if there is none. Returns its exit status, 255 if a signal ended it, or -errno if it did not run. */
int beside_ask(const char *relative, const char *const words[], char *line, size_t size)
	__attribute__((warn_unused_result));

#endif
