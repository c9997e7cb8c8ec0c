/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates the size of a run's files, which is checked before the run starts. Pure. */
#ifndef RAMPART_LOADGEN_SPACE_H
#define RAMPART_LOADGEN_SPACE_H

#include <stdint.h>

struct loadgen_config;

/* Bytes of a run's folder, including its report. The file of --trace does not count: its number of operations is not
 * known, and it may be on another disk. */
uint64_t space_needed(const struct loadgen_config *cfg);

#endif
