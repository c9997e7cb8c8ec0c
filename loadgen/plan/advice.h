/* SPDX-License-Identifier: BSD-2-Clause */
/* What to set where a resource of an estimate is short. Pure. */
#ifndef RAMPART_LOADGEN_ESTIMATE_ADVICE_H
#define RAMPART_LOADGEN_ESTIMATE_ADVICE_H

#include <stddef.h>

#include "loadgen/plan/estimate.h"

/* A command or an option with its value, such as "ulimit -n 5120", that gives what in->clients need; in words where no
 * setting helps. Returns `text`. */
const char *advice_text(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size);

#endif
