/* How an operation is striped over the rails of a client. Pure. */
#ifndef RAMPART_LOADGEN_STRIPE_H
#define RAMPART_LOADGEN_STRIPE_H

#include <stdint.h>

/* No part of an operation that is striped is smaller: what a further rail costs would not be worth it. */
#define STRIPE_BYTES_MIN (16u << 10)

/* Rails that an operation of `bytes` is striped over, of `rails` (1 and more) that are there. */
uint32_t stripe_rails(uint64_t bytes, uint32_t rails);

/* The `i`-th of `n` parts, 0 first: they follow one another without gaps, all but the last of one size. */
void stripe_part(uint64_t bytes, uint32_t n, uint32_t i, uint64_t *offset, uint64_t *part_bytes);

#endif
