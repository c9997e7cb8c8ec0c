/* SPDX-License-Identifier: BSD-2-Clause */
/* See stripe.h. */
#include "loadgen/striping/stripe.h"

#include <sys/param.h>

/* Parts begin at a multiple of a cache line. */
#define ALIGNMENT UINT64_C(64)

uint32_t stripe_rails(uint64_t bytes, uint32_t rails, uint64_t least_bytes)
{
	return (uint32_t)MAX(MIN(bytes / roundup(least_bytes, ALIGNMENT), rails), 1);
}

void stripe_part(uint64_t bytes, uint32_t n, uint32_t i, uint64_t *offset, uint64_t *part_bytes)
{
	uint64_t each = n > 1 ? bytes / n / ALIGNMENT * ALIGNMENT : bytes;

	*offset = i * each;
	*part_bytes = i + 1 < n ? each : bytes - *offset;
}
