/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes HdrHistogram's file formats: percentile text (.hgrm) and interval log (.hlog).
 *
 * Purpose: files that HdrHistogram's own tools and plotters read. Non-goals: reading them back (hist_read.c), opening
 * or closing files, rotating logs. Threads: any, on a histogram that nobody writes to at the same time (a snapshot by
 * hist_add). Sources: HdrHistogram's Java reference: AbstractHistogram.outputPercentileDistribution,
 * PercentileIterator, AbstractHistogram.encodeIntoCompressedByteBuffer (V2), ZigZagEncoding, HistogramLogWriter.
 */
#include "common/hist/hist_io.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "common/hist/hist.h"
#include "common/hist/hist_internal.h"
#include "common/hist/hist_v2.h"

#define TICKS_PER_HALF_DISTANCE 5

/* Assumes that each sample is in the middle of its cell, also for the mean, so that equal samples do not deviate. */
static double hist_stddev(const struct hist *h)
{
	struct hist_range r = hist_range_of(h);
	double count = (double)hist_count(h);
	double sum = 0.0, squares = 0.0;

	if (count == 0.0)
		return 0.0;
	for (size_t i = r.first; i <= r.last; i++)
		sum += (double)hist_cell_middle(i) * (double)counter_get(&h->cell[i]);
	for (size_t i = r.first; i <= r.last; i++) {
		double d = (double)hist_cell_middle(i) - sum / count;

		squares += d * d * (double)counter_get(&h->cell[i]);
	}
	return sqrt(squares / count);
}

/* The percentile after `p`. The step halves whenever the distance to 100 has halved. */
static double next_percentile(double p)
{
	double halvings = floor(log2(100.0 / (100.0 - p))) + 1.0;

	return p + 100.0 / (TICKS_PER_HALF_DISTANCE * exp2(halvings));
}

static void write_row(FILE *out, double value, double percentile, uint64_t seen)
{
	double quantile = percentile / 100.0;

	fprintf(out, "%12.3f %2.12f %10ju", value, quantile, (uintmax_t)seen);
	if (percentile < 100.0)
		fprintf(out, " %14.2f", 1.0 / (1.0 - quantile));
	fputc('\n', out);
}

static void write_rows(const struct hist *h, double unit_ns, FILE *out)
{
	struct hist_range r = hist_range_of(h);
	uint64_t count = hist_count(h);
	double percentile = 0.0;
	uint64_t seen = 0;

	for (size_t i = r.first; i <= r.last && seen < count; i++) {
		uint64_t n = counter_get(&h->cell[i]);
		double reached, value = (double)hist_cell_bound(i, hist_max(h)) / unit_ns;

		seen += n;
		reached = 100.0 * (double)seen / (double)count;
		/* Write a row for each tick that the cell reaches; for the last cell, only one before that of 100 %. */
		while (n && reached >= percentile) {
			write_row(out, value, percentile, seen);
			percentile = next_percentile(percentile);
			if (seen == count)
				break;
		}
	}
	if (count)
		write_row(out, (double)hist_max(h) / unit_ns, 100.0, count);
}

static int stream_status(FILE *out)
{
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int hist_write_hgrm(const struct hist *h, double unit_ns, FILE *out)
{
	fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	write_rows(h, unit_ns, out);
	fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", hist_mean(h) / unit_ns,
		hist_stddev(h) / unit_ns);
	fprintf(out, "#[Max     = %12.3f, Total count    = %12ju]\n",
		(double)hist_max(h) / unit_ns, (uintmax_t)hist_count(h));
	fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HIST_BUCKET_COUNT,
		HIST_SUB_BUCKET_COUNT);
	return stream_status(out);
}

static unsigned char *put_zigzag(unsigned char *p, int64_t v)
{
	uint64_t z = ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
	int n = 1;

	for (; n < ZIGZAG_MAX_BYTES && z > 0x7f; n++, z >>= 7)
		*p++ = (unsigned char)(z | 0x80);
	*p++ = (unsigned char)z;
	return p;
}

/* Writes the cells up to that of the maximum. A run of more than one empty cell is written as its negative length. */
static unsigned char *put_cells(unsigned char *p, const struct hist *h)
{
	size_t limit = hist_index(hist_max(h)) + 1;

	for (size_t i = 0; i < limit;) {
		uint64_t n = counter_get(&h->cell[i++]);
		int64_t zeros = 1;

		if (n) {
			p = put_zigzag(p, n < INT64_MAX ? (int64_t)n : INT64_MAX);
			continue;
		}
		for (; i < limit && !counter_get(&h->cell[i]); i++)
			zeros++;
		p = put_zigzag(p, zeros > 1 ? -zeros : 0);
	}
	return p;
}

/* A histogram in the three forms it takes on its way into the log. */
struct encoded {
	unsigned char plain[PLAIN_MAX_BYTES];
	unsigned char packed[PACKED_MAX_BYTES];
	unsigned char base64[BASE64_MAX_BYTES + 1];	/* a string */
};

/* Returns 0, or -ENOMEM if zlib is out of memory; with this much room it cannot fail for another reason. */
static int encode(const struct hist *h, struct encoded *e)
{
	unsigned char *payload = e->plain + V2_HEADER_BYTES, *end = put_cells(payload, h);
	uLongf packed_bytes = PACKED_MAX_BYTES - COMPRESSED_HEADER_BYTES;

	v2_put_header(e->plain, (size_t)(end - payload));
	if (compress2(e->packed + COMPRESSED_HEADER_BYTES, &packed_bytes, e->plain, (uLong)(end - e->plain),
		      Z_DEFAULT_COMPRESSION) != Z_OK)
		return -ENOMEM;
	v2_put_compressed_header(e->packed, packed_bytes);
	EVP_EncodeBlock(e->base64, e->packed, (int)(COMPRESSED_HEADER_BYTES + packed_bytes));
	return 0;
}

static json_t *pack_number(uint64_t v)
{
	return json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

json_t *hist_pack(const struct hist *h)
{
	struct encoded *e;
	json_t *o = NULL;

	if (!hist_count(h))
		return json_null();
	e = malloc(sizeof(*e));
	if (e && !encode(h, e))
		o = json_pack("{s:o, s:o, s:o, s:o, s:s}", "count", pack_number(hist_count(h)), "sum",
			      pack_number(counter_get(&h->sum)), "min", pack_number(hist_min(h)), "max",
			      pack_number(hist_max(h)), "cells", e->base64);
	free(e);
	return o;
}

int hist_write_hlog_header(double start_unix_s, FILE *out)
{
	time_t seconds = (time_t)start_unix_s;
	struct tm tm;
	char when[32];

	if (!gmtime_r(&seconds, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		when[0] = '\0';
	fputs(HLOG_VERSION, out);
	fprintf(out, "#[StartTime: %.3f (seconds since epoch), %s]\n", start_unix_s, when);
	fprintf(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
		     "\"Interval_Compressed_Histogram\"\n");
	return stream_status(out);
}

/* The format has no escapes, so characters that would end the field become underscores. */
static void write_tag(const char *tag, FILE *out)
{
	fputs("Tag=", out);
	for (; *tag; tag++)
		fputc(strchr(", \t\r\n", *tag) ? '_' : *tag, out);
	fputc(',', out);
}

int hist_write_hlog_interval(const struct hist *h, const char *tag, double start_s, double length_s,
			     FILE *out)
{
	struct encoded *e = malloc(sizeof(*e));
	int err = e ? encode(h, e) : -ENOMEM;

	if (!err) {
		if (tag)
			write_tag(tag, out);
		fprintf(out, "%.3f,%.3f,%.3f,%s\n", start_s, length_s, (double)hist_max(h) / 1e6, e->base64);
		err = stream_status(out);
	}
	free(e);
	return err;
}
