/* SPDX-License-Identifier: BSD-2-Clause */
/* How an operation is striped over the rails of a client. Pure. */
#ifndef RAMPART_LOADGEN_STRIPE_H
#define RAMPART_LOADGEN_STRIPE_H

#include <stdint.h>

/* No part of a striped operation is smaller: another rail would cost more than it gains. */
#define STRIPE_BYTES_MIN (16u << 10)

/* The number of rails that an operation of `bytes` is striped over, with `rails` (1 and more) alive. */
uint32_t stripe_rails(uint64_t bytes, uint32_t rails);

/* The `i`-th of `n` parts, 0 first: they follow one another without gaps, all but the last of one size. */
void stripe_part(uint64_t bytes, uint32_t n, uint32_t i, uint64_t *offset, uint64_t *part_bytes);

#endif
