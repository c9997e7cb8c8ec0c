/* SPDX-License-Identifier: BSD-2-Clause */
/* Histograms in HdrHistogram's file formats, percentile text (.hgrm) and compressed interval log (.hlog, V2), and as
 * JSON for another process.
 *
 * The caller owns the streams and histograms. Any thread, on a histogram that nobody records into at the same time,
 * such as a snapshot by hist_add. Writers flush the stream, so that the call that meets a full disk reports it.
 */
#ifndef RAMPART_COMMON_HIST_IO_H
#define RAMPART_COMMON_HIST_IO_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct hist;

/* Writes the percentiles as HdrHistogram's outputPercentileDistribution does, 5 ticks per half distance. Values are
 * divided by `unit_ns`: 1000 makes them microseconds. Returns 0 or -EIO. */
int hist_write_hgrm(const struct hist *h, double unit_ns, FILE *out) __attribute__((warn_unused_result));

/* Writes the header of an interval log, version 1.3. `start_unix_s` is the wall clock at its start. Returns 0 or
 * -EIO. */
int hist_write_hlog_header(double start_unix_s, FILE *out) __attribute__((warn_unused_result));

/* Writes the line of one interval: the tag (NULL for none; a comma or white space in it becomes an underscore), its
 * start and length in seconds since the start of the log, its maximum in ms, and the histogram, compressed, in base64.
 * Returns 0, -ENOMEM or -EIO. */
int hist_write_hlog_interval(const struct hist *h, const char *tag, double start_s, double length_s,
			     FILE *out) __attribute__((warn_unused_result));

/* Reads such a log, which may be damaged or hostile, and sets `out` to the sum of its intervals. The caller is out's
 * writer. Minimum and mean are as exact as cells are (to a thousandth), the maximum as its field in the log, which is
 * rounded to a microsecond. Returns 0, or an error with `out` empty: -EINVAL for content that the writer cannot
 * produce, a truncated line, or no interval; -ENOMEM; -EIO. */
int hist_read_hlog(FILE *in, struct hist *out) __attribute__((warn_unused_result));

/* The whole histogram, exact: {count, sum, min, max, cells}, where cells is encoded as in an interval of the log:
 * compressed and in base64; a JSON null if it is empty. The caller owns the result. A NULL pointer when out of
 * memory. */
json_t *hist_pack(const struct hist *h) __attribute__((warn_unused_result));
/* Sets `out` from the output of hist_pack, of any origin. The caller is out's writer. Returns 0, or an error with `out`
 * empty: -EINVAL for data that hist_pack cannot produce, such as cells that contradict the other figures; -ENOMEM. */
int hist_unpack(const json_t *packed, struct hist *out) __attribute__((warn_unused_result));

#endif
