/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice on what to set when a resource of an estimate is short. No I/O. */
#ifndef RAMPART_LOADGEN_ESTIMATE_ADVICE_H
#define RAMPART_LOADGEN_ESTIMATE_ADVICE_H

#include <stddef.h>

#include "loadgen/plan/estimate.h"

/* A command, or an option with its value, that raises the limit to what in->clients need, such as "ulimit -n 5120";
 * words if no setting helps. Returns `text`. */
const char *advice_text(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size);

#endif
