/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how an operation is striped over the rails of a client. Pure. */
#ifndef RAMPART_LOADGEN_STRIPE_H
#define RAMPART_LOADGEN_STRIPE_H

#include <stdint.h>

/* Minimum size of a part of a striped operation: for a smaller part, another rail would cost more than it gains. */
#define STRIPE_BYTES_MIN (16u << 10)

/* The number of rails that an operation of `bytes` is striped over, if `rails` (at least 1) are alive. */
uint32_t stripe_rails(uint64_t bytes, uint32_t rails);

/* The `i`-th of `n` parts, from 0. Parts are contiguous, and all but the last have the same size. */
void stripe_part(uint64_t bytes, uint32_t n, uint32_t i, uint64_t *offset, uint64_t *part_bytes);

#endif
