/* SPDX-License-Identifier: BSD-2-Clause */
/* How large the files of a run become, about: what is checked before it starts. Pure. */
#ifndef RAMPART_LOADGEN_SPACE_H
#define RAMPART_LOADGEN_SPACE_H

#include <stdint.h>

struct loadgen_config;

/* Bytes of a run's folder, its report included. The file of --trace is not: how many operations it will hold is not
 * known, and it may be on another disk. */
uint64_t space_needed(const struct loadgen_config *cfg);

#endif
