/* Standard file formats of HdrHistogram: percentile text (.hgrm) and V2 compressed log (.hlog).
 * Writes to streams it is given; owns none of them. */
#ifndef RAMPART_COMMON_HIST_IO_H
#define RAMPART_COMMON_HIST_IO_H

#include <stdint.h>
#include <stdio.h>

struct hist;

/* The percentile distribution text that HdrHistogram's outputPercentileDistribution writes, 5 ticks
 * per half distance, values divided by `unit_ns` (1000 for microseconds). Returns 0 or -EIO. */
int hist_write_hgrm(const struct hist *h, double unit_ns, FILE *out) __attribute__((warn_unused_result));

/* Header lines of an interval log, version 1.3; `start_unix_s` is the wall clock at its start. */
int hist_write_hlog_header(double start_unix_s, FILE *out) __attribute__((warn_unused_result));

/* One interval line: optional tag (NULL for none), start and length in seconds relative to the
 * log's start, maximum in ms, and the histogram in base64 of V2 deflate-compressed form. Returns 0,
 * -ENOMEM or -EIO. */
int hist_write_hlog_interval(const struct hist *h, const char *tag, double start_s, double length_s,
			     FILE *out) __attribute__((warn_unused_result));

#endif
