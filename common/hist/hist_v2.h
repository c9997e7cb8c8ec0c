/* SPDX-License-Identifier: BSD-2-Clause */
/* HdrHistogram's V2 encoding and interval log: the part that the writer (hist_io.c, which names the sources) and the
 * reader (hist_read.c) share. For these two files only. */
#ifndef RAMPART_COMMON_HIST_V2_H
#define RAMPART_COMMON_HIST_V2_H

#include "common/hist/hist_internal.h"

#define V2_HEADER_BYTES	 40
#define COMPRESSED_HEADER_BYTES 8
#define ZIGZAG_MAX_BYTES 9	/* LEB128-64b9B: the ninth byte holds eight bits */
#define PLAIN_MAX_BYTES	 (V2_HEADER_BYTES + (size_t)HIST_CELLS * ZIGZAG_MAX_BYTES)
/* At least COMPRESSED_HEADER_BYTES plus zlib's compressBound() of PLAIN_MAX_BYTES. */
#define PACKED_MAX_BYTES (COMPRESSED_HEADER_BYTES + PLAIN_MAX_BYTES + PLAIN_MAX_BYTES / 1024 + 64)
#define BASE64_MAX_BYTES ((PACKED_MAX_BYTES + 2) / 3 * 4)

#define HLOG_VERSION "#[Histogram log format version 1.3]\n"

static inline unsigned char *v2_put_be(unsigned char *p, uint64_t v, int bytes)
{
	for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
		*p++ = (unsigned char)(v >> shift);
	return p;
}

/* The header before `payload_bytes` of cells. */
static inline void v2_put_header(unsigned char p[V2_HEADER_BYTES], size_t payload_bytes)
{
	p = v2_put_be(p, 0x1c849303 | 0x10, 4);	/* cookie */
	p = v2_put_be(p, payload_bytes, 4);
	p = v2_put_be(p, 0, 4);			/* normalizing index offset */
	p = v2_put_be(p, HIST_SIGNIFICANT_DIGITS, 4);
	p = v2_put_be(p, HIST_LOWEST_DISCERNIBLE, 8);
	p = v2_put_be(p, HIST_MAX_TRACKABLE_NS, 8);
	v2_put_be(p, UINT64_C(0x3ff0000000000000), 8);	/* ratio of integers to doubles: 1.0 */
}

/* The header before `packed_bytes` of zlib's output. */
static inline void v2_put_compressed_header(unsigned char p[COMPRESSED_HEADER_BYTES], size_t packed_bytes)
{
	v2_put_be(v2_put_be(p, 0x1c849304 | 0x10, 4), packed_bytes, 4);
}

#endif
