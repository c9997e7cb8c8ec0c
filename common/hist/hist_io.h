/* Standard file formats of HdrHistogram: percentile text (.hgrm) and V2 compressed log (.hlog).
 * Works on streams it is given; owns none of them. */
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

/* The sum of all intervals of a log as the two functions above write it, of any origin: it may be damaged or hostile.
 * What `out` held before is forgotten; its owner is its writer. The minimum and the mean are as exact as cells are
 * (a thousandth), the maximum as Interval_Max, which is rounded to a microsecond. Returns 0; -EINVAL for anything
 * such a log would not have, among them one cut off within a line or without an interval; -ENOMEM or -EIO. After an
 * error `out` is empty. */
int hist_read_hlog(FILE *in, struct hist *out) __attribute__((warn_unused_result));

#endif
