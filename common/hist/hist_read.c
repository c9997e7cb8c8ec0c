/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads back the interval logs and the packed histograms that hist_io.c writes.
 *
 * Purpose: the sum of a log's intervals, and a histogram that another process packed, whatever their origin. Non-goals:
 * logs of other layouts, opening files, single intervals. Threads: any, on a histogram of the caller's own. Invariants:
 * input is checked before it is used; the cost of a line is bounded.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "common/hist/hist.h"
#include "common/hist/hist_internal.h"
#include "common/hist/hist_io.h"
#include "common/hist/hist_v2.h"

#define BASE64_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
/* The longest line that the writer makes; longer ones are refused. */
#define LINE_MAX_BYTES (BASE64_MAX_BYTES + 512)
/* A short line may unpack into PLAIN_MAX_BYTES; this many such lines take a few seconds. */
#define INTERVALS_MAX	 10000

struct hlog_reader {
	char line[LINE_MAX_BYTES];
	unsigned char packed[LINE_MAX_BYTES / 4 * 3];
	unsigned char plain[PLAIN_MAX_BYTES];
	uint64_t cells[HIST_CELLS];
};

/* Reads the number at *p and advances *p; false if the number is truncated at `end`. */
static bool get_zigzag(const unsigned char **p, const unsigned char *end, int64_t *out)
{
	uint64_t z = 0;

	for (int i = 0; i < ZIGZAG_MAX_BYTES; i++) {
		bool last = i == ZIGZAG_MAX_BYTES - 1;
		unsigned char byte;

		if (*p == end)
			return false;
		byte = *(*p)++;
		z |= (uint64_t)(last ? byte : byte & 0x7f) << 7 * i;
		if (last || !(byte & 0x80))
			break;
	}
	*out = (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
	return true;
}

static int get_cells(const unsigned char *p, const unsigned char *end, uint64_t cells[HIST_CELLS])
{
	size_t at = 0;
	int64_t n;

	memset(cells, 0, HIST_CELLS * sizeof(*cells));
	while (p < end) {
		if (at == HIST_CELLS || !get_zigzag(&p, end, &n) || n < -(int64_t)(HIST_CELLS - at))
			return -EINVAL;
		if (n < 0)
			at += (size_t)-n;
		else
			cells[at++] = (uint64_t)n;
	}
	return at ? 0 : -EINVAL;
}

static bool has_v2_header(const unsigned char *p, size_t len)
{
	unsigned char expected[V2_HEADER_BYTES];

	v2_put_header(expected, len - V2_HEADER_BYTES);
	return len > V2_HEADER_BYTES && memcmp(p, expected, sizeof(expected)) == 0;
}

static bool has_compressed_header(const unsigned char *p, size_t len)
{
	unsigned char expected[COMPRESSED_HEADER_BYTES];

	v2_put_compressed_header(expected, len - COMPRESSED_HEADER_BYTES);
	return len > COMPRESSED_HEADER_BYTES && memcmp(p, expected, sizeof(expected)) == 0;
}

static int decode_compressed(struct hlog_reader *r, size_t len)
{
	uLong packed_len = len - COMPRESSED_HEADER_BYTES;
	uLongf plain_len = sizeof(r->plain);
	int ret;

	if (!has_compressed_header(r->packed, len))
		return -EINVAL;
	ret = uncompress2(r->plain, &plain_len, r->packed + COMPRESSED_HEADER_BYTES, &packed_len);
	if (ret == Z_MEM_ERROR)
		return -ENOMEM;
	if (ret != Z_OK || packed_len != len - COMPRESSED_HEADER_BYTES || !has_v2_header(r->plain, plain_len))
		return -EINVAL;
	return get_cells(r->plain + V2_HEADER_BYTES, r->plain + plain_len, r->cells);
}

/* Decodes `text`, which must end with `end`, into r->packed. Checks the text first, because OpenSSL accepts padding and
 * spaces in the wrong places. Returns the number of bytes, or -EINVAL. */
static int decode_base64(struct hlog_reader *r, const char *text, const char *end)
{
	size_t digits = strspn(text, BASE64_DIGITS);
	size_t padding = strspn(text + digits, "=");
	size_t len = digits + padding;

	if (strcmp(text + len, end) != 0 || len > BASE64_MAX_BYTES || !digits || padding > 2 || len % 4)
		return -EINVAL;
	if (EVP_DecodeBlock(r->packed, (const unsigned char *)text, (int)len) < 0)
		return -EINVAL;
	return (int)(len / 4 * 3 - padding);
}

/* Records the counted samples, each in the middle of its cell, except the smallest, which is placed at the start of its
 * cell, and the largest, which is `max`. */
static void add_cells(struct hist *out, const uint64_t cells[HIST_CELLS], size_t first, size_t last, uint64_t max)
{
	for (size_t i = first; i <= last; i++) {
		uint64_t n = cells[i], middle = hist_cell_middle(i);

		if (n && i == last) {
			hist_record(out, max);
			n--;
		}
		if (n && i == first) {
			hist_record(out, hist_cell_low(i));
			n--;
		}
		hist_record_n(out, middle < max ? middle : max, n);
	}
}

/* Finds the maximum: a value of the last cell that rounds to Interval_Max. -EINVAL if there is none. */
static int fit_max(size_t last, double logged_ns, uint64_t *max)
{
	const double rounding_ns = 501;
	uint64_t low = hist_cell_low(last), high = last == HIST_CELLS - 1 ? UINT64_MAX : hist_cell_high(last);

	if (logged_ns < (double)low - rounding_ns || logged_ns > (double)high + rounding_ns)
		return -EINVAL;
	*max = logged_ns <= (double)low ? low : logged_ns >= (double)high ? high : (uint64_t)(logged_ns + 0.5);
	return 0;
}

static int add_interval(const struct hlog_reader *r, double logged_max_ns, struct hist *out)
{
	uint64_t total = hist_count(out), max;
	size_t first = HIST_CELLS, last = 0;
	int err;

	for (size_t i = 0; i < HIST_CELLS; i++) {
		if (!r->cells[i])
			continue;
		if (first == HIST_CELLS)
			first = i;
		last = i;
		if (r->cells[i] > INT64_MAX - total)
			return -EINVAL;
		total += r->cells[i];
	}
	err = fit_max(last, logged_max_ns, &max);
	if (!err && first != HIST_CELLS)
		add_cells(out, r->cells, first, last, max);
	return err;
}

/* Reads a non-negative number and the comma after it; false if they are not there. */
static bool get_field(const char **p, double *v)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	*v = strtod(*p, &end);
	*p = end + 1;
	return *end == ',' && isfinite(*v);
}

static int read_interval(struct hlog_reader *r, struct hist *out)
{
	const char *p = r->line;
	double start_s, length_s, max_ms;
	int n;

	if (!strncmp(p, "Tag=", 4)) {
		p = strchr(p, ',');
		if (!p)
			return -EINVAL;
		p++;
	}
	if (!get_field(&p, &start_s) || !get_field(&p, &length_s) || !get_field(&p, &max_ms))
		return -EINVAL;
	n = decode_base64(r, p, "\n");
	if (n >= 0)
		n = decode_compressed(r, (size_t)n);
	return n < 0 ? n : add_interval(r, max_ms * 1e6, out);
}

/* Reads the next line, with its newline, into r->line. Returns 1, 0 at the end of the file, or -errno. */
static int read_line(struct hlog_reader *r, FILE *in)
{
	size_t n;

	if (!fgets(r->line, sizeof(r->line), in))
		return ferror(in) ? -EIO : 0;
	n = strlen(r->line);
	return n && r->line[n - 1] == '\n' ? 1 : -EINVAL;
}

static int read_intervals(struct hlog_reader *r, FILE *in, struct hist *out)
{
	int intervals = 0;
	int err;

	err = read_line(r, in);
	if (err < 0)
		return err;
	if (!err || strcmp(r->line, HLOG_VERSION) != 0)
		return -EINVAL;
	while ((err = read_line(r, in)) > 0) {
		if (r->line[0] == '#' || r->line[0] == '"')
			continue;
		if (++intervals > INTERVALS_MAX)
			return -EINVAL;
		err = read_interval(r, out);
		if (err)
			return err;
	}
	return err || intervals ? err : -EINVAL;
}

int hist_read_hlog(FILE *in, struct hist *out)
{
	struct hlog_reader *r = malloc(sizeof(*r));
	int err = r ? 0 : -ENOMEM;

	hist_reset(out);
	if (!err)
		err = read_intervals(r, in, out);
	if (err)
		hist_reset(out);
	free(r);
	return err;
}

/* The exact figures that accompany the cells. */
struct facts {
	uint64_t count, sum, min, max;
};

static bool get_fact(const json_t *packed, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(packed, name);

	*out = (uint64_t)json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* Largest value that the cell can count; the last cell also counts all values beyond its range. */
static uint64_t greatest_of(size_t cell)
{
	return cell == HIST_CELLS - 1 ? INT64_MAX : hist_cell_high(cell);
}

/* True if samples with these figures can be in these cells. */
static bool cells_fit(const uint64_t cells[HIST_CELLS], const struct facts *f)
{
	size_t first = HIST_CELLS, last = 0;
	unsigned __int128 low = 0, high = 0;
	uint64_t count = 0;

	for (size_t i = 0; i < HIST_CELLS; i++) {
		if (!cells[i])
			continue;
		if (cells[i] > INT64_MAX - count)
			return false;
		first = first < i ? first : i;
		last = i;
		count += cells[i];
		low += (unsigned __int128)cells[i] * hist_cell_low(i);
		high += (unsigned __int128)cells[i] * greatest_of(i);
	}
	return count > 0 && count == f->count && f->min <= f->max && f->min >= hist_cell_low(first) &&
	       f->min <= greatest_of(first) && f->max >= hist_cell_low(last) && f->max <= greatest_of(last) &&
	       (low <= f->sum || f->sum == INT64_MAX) && f->sum <= high;
}

static int unpack(struct hlog_reader *r, const json_t *packed, struct hist *out)
{
	const char *text = json_string_value(json_object_get(packed, "cells"));
	struct facts f;
	int n;

	if (!text || !get_fact(packed, "count", &f.count) || !get_fact(packed, "sum", &f.sum) ||
	    !get_fact(packed, "min", &f.min) || !get_fact(packed, "max", &f.max))
		return -EINVAL;
	n = decode_base64(r, text, "");
	if (n >= 0)
		n = decode_compressed(r, (size_t)n);
	if (n < 0 || !cells_fit(r->cells, &f))
		return n < 0 ? n : -EINVAL;
	/* The histogram is empty, and cells_fit has found the extremes in the outermost cells that are not. */
	for (size_t i = hist_index(f.min); i <= hist_index(f.max); i++)
		counter_set(&out->cell[i], r->cells[i]);
	counter_set(&out->count, f.count);
	counter_set(&out->sum, f.sum);
	counter_set(&out->min, f.min);
	counter_set(&out->max, f.max);
	return 0;
}

int hist_unpack(const json_t *packed, struct hist *out)
{
	struct hlog_reader *r;
	int err;

	hist_reset(out);
	if (json_is_null(packed))
		return 0;
	r = malloc(sizeof(*r));
	err = r ? unpack(r, packed, out) : -ENOMEM;
	free(r);
	return err;
}
