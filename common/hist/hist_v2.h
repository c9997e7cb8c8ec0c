/* Constants of HdrHistogram's V2 encoding and interval log, for the writer (hist_io.c, which names the sources) and the
 * reader (hist_read.c) only. */
#ifndef RAMPART_COMMON_HIST_V2_H
#define RAMPART_COMMON_HIST_V2_H

#include "common/hist/hist_internal.h"

#define V2_ENCODING_COOKIE   (0x1c849303u | 0x10u)
#define V2_COMPRESSED_COOKIE (0x1c849304u | 0x10u)
#define V2_HEADER_BYTES	     40
#define COMPRESSED_HEADER_BYTES 8
#define V2_RATIO_ONE	     UINT64_C(0x3ff0000000000000)	/* 1.0, IEEE 754 */
#define ZIGZAG_MAX_BYTES     9	/* LEB128-64b9B: the ninth byte holds eight bits */
#define PLAIN_MAX_BYTES	     (V2_HEADER_BYTES + (size_t)HIST_CELLS * ZIGZAG_MAX_BYTES)

#define HLOG_VERSION "#[Histogram log format version 1.3]\n"

#endif
