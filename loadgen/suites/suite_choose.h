/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses entries of a suite (--only). Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUITE_CHOOSE_H
#define RAMPART_LOADGEN_SUITE_CHOOSE_H

#include <stddef.h>

#include "loadgen/suites/suite_file.h"

/* Leaves only the entries that `names` lists, comma-separated, in the suite; their order stays. A name is that of an
 * entry, or its id. Returns 0, or -EINVAL with a line in `err` that names the entries there are. */
int suite_choose(struct suite *s, const char *names, char *err, size_t err_size) __attribute__((warn_unused_result));

#endif
