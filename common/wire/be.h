/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian fields at any alignment. */
#ifndef RAMPART_COMMON_BE_H
#define RAMPART_COMMON_BE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Stores whole words, because gcc 12 compiles a header written byte by byte to about 60 instructions. */
static inline void be_put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void be_put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void be_put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint16_t be_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be_get32(const uint8_t *p)
{
	return (uint32_t)be_get16(p) << 16 | be_get16(p + 2);
}

static inline uint64_t be_get64(const uint8_t *p)
{
	return (uint64_t)be_get32(p) << 32 | be_get32(p + 4);
}

#endif
