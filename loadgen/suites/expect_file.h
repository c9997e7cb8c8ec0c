/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the expectations of a suite's entry (`expect`, docs/suites.md). The file may be damaged or hostile. Pure. */
#ifndef RAMPART_LOADGEN_EXPECT_FILE_H
#define RAMPART_LOADGEN_EXPECT_FILE_H

#include <stddef.h>

#include "loadgen/suites/suite_file.h"

#define EXPECT_MAX 32		/* expectations of an entry */
/* Values of `of` that no entry can have for a name. */
#define EXPECT_LINE_RATE "line rate"
#define EXPECT_FIRST "first alternative"

/* Checks `expect` of entry `e`, which is configured; the `n` entries at `earlier` come before it. Returns 0, or -EINVAL
 * with the reason in `why`. */
int expect_check(const struct suite_entry *e, const struct suite_entry *earlier, unsigned n, char *why, size_t why_size)
	__attribute__((warn_unused_result));

#endif
