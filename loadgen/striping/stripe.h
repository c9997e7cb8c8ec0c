/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how an operation is striped over the rails of a client. Pure. */
#ifndef RAMPART_LOADGEN_STRIPE_H
#define RAMPART_LOADGEN_STRIPE_H

#include <stdint.h>

/* The number of rails that an operation of `bytes` is striped over, if `rails` (at least 1) are alive and no part may
 * be smaller than `least_bytes` (at least 1): for a smaller part, another rail would cost more than it gains. */
uint32_t stripe_rails(uint64_t bytes, uint32_t rails, uint64_t least_bytes);

/* The `i`-th of `n` parts, from 0. Parts are contiguous, and all but the last have the same size. */
void stripe_part(uint64_t bytes, uint32_t n, uint32_t i, uint64_t *offset, uint64_t *part_bytes);

#endif
