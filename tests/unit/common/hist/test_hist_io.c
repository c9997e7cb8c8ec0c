/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/hist/hist_io.c: what it writes is read back by a decoder of the test's own. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "common/hist/hist_internal.h"
#include "common/hist/hist_io.h"
#include "tests/unit/common/hist/hist_rig.h"

#define HEADER_BYTES  40
#define PAYLOAD_MAX   (HIST_CELLS * 9)

struct written {
	char *text;
	size_t len;
	FILE *stream;
};

static FILE *written_open(struct written *w)
{
	w->stream = open_memstream(&w->text, &w->len);
	assert_non_null(w->stream);
	return w->stream;
}

static char *written_close(struct written *w)
{
	assert_int_equal(fclose(w->stream), 0);
	return w->text;
}

static char *hgrm_of(double unit_ns)
{
	struct written w;

	assert_int_equal(hist_write_hgrm(h, unit_ns, written_open(&w)), 0);
	return written_close(&w);
}

static char *interval_of(const char *tag, double start_s, double length_s)
{
	struct written w;

	assert_int_equal(hist_write_hlog_interval(h, tag, start_s, length_s, written_open(&w)), 0);
	return written_close(&w);
}

/* Reading back, written from the format's description and not from the encoder. */

struct decoded {
	uint64_t significant_digits, lowest, highest, normalizing_offset;
	double ratio;
	unsigned char payload[PAYLOAD_MAX];
	size_t payload_len;
	uint64_t cells[HIST_CELLS];
};

static int sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static size_t base64_decode(const char *s, size_t len, unsigned char *out)
{
	size_t n = 0;
	uint32_t bits = 0;

	assert_int_equal(len % 4, 0);
	while (len && s[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		assert_true(sextet(s[i]) >= 0);
		bits = bits << 6 | (uint32_t)sextet(s[i]);
		if (i % 4)
			out[n++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
	}
	return n;
}

static uint64_t big_endian(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static int64_t read_zigzag(const unsigned char **p)
{
	uint64_t v = 0;
	int shift = 0;

	for (int i = 0; i < 9; i++, shift += 7) {
		unsigned char byte = *(*p)++;

		if (i == 8) {	/* the ninth byte has no continuation bit */
			v |= (uint64_t)byte << shift;
			break;
		}
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void decode_cells(struct decoded *d)
{
	const unsigned char *p = d->payload, *end = p + d->payload_len;
	size_t at = 0;

	while (p < end) {
		int64_t n = read_zigzag(&p);

		assert_in_range(at, 0, HIST_CELLS - 1);
		if (n < 0)
			at += (size_t)-n;
		else
			d->cells[at++] = (uint64_t)n;
	}
	assert_ptr_equal(p, end);
	assert_in_range(at, 1, HIST_CELLS);
}

/* `line` ends with the base64 field and a newline. What is returned lives until the next call. */
static struct decoded *decode_line(const char *line)
{
	const char *field = strrchr(line, ',') + 1;
	size_t len = strlen(field);
	unsigned char *packed = malloc(len), *plain = malloc(HEADER_BYTES + PAYLOAD_MAX);
	static struct decoded decoded;
	struct decoded *d = &decoded;
	uLongf plain_len = HEADER_BYTES + PAYLOAD_MAX;
	uint64_t ratio_bits;
	size_t packed_len;

	assert_true(packed && plain);
	memset(d, 0, sizeof(*d));
	assert_int_equal(field[len - 1], '\n');
	packed_len = base64_decode(field, len - 1, packed);
	assert_int_equal(big_endian(packed, 4), 0x1c849314);
	assert_int_equal(big_endian(packed + 4, 4), packed_len - 8);
	assert_int_equal(uncompress(plain, &plain_len, packed + 8, packed_len - 8), Z_OK);
	assert_int_equal(big_endian(plain, 4), 0x1c849313);
	d->payload_len = big_endian(plain + 4, 4);
	assert_int_equal(d->payload_len, plain_len - HEADER_BYTES);
	d->normalizing_offset = big_endian(plain + 8, 4);
	d->significant_digits = big_endian(plain + 12, 4);
	d->lowest = big_endian(plain + 16, 8);
	d->highest = big_endian(plain + 24, 8);
	ratio_bits = big_endian(plain + 32, 8);
	memcpy(&d->ratio, &ratio_bits, sizeof(d->ratio));
	memcpy(d->payload, plain + HEADER_BYTES, d->payload_len);
	decode_cells(d);
	free(packed);
	free(plain);
	return d;
}

/* Writes `h` and decodes the result. */
static struct decoded *write_and_decode(void)
{
	char *line = interval_of(NULL, 0, 1);
	struct decoded *d = decode_line(line);

	free(line);
	return d;
}

static void assert_same_cells(const struct decoded *d)
{
	for (size_t i = 0; i < HIST_CELLS; i++)
		assert_int_equal(d->cells[i], counter_get(&h->cell[i]));
}

TEST(hlog_interval__spread_samples__decodes_to_the_same_counts)
{
	struct decoded *d;
	uint64_t seed = 99;

	for (int i = 0; i < 20000; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		hist_record(h, (seed >> 27) >> (seed >> 58) % 37);
	}
	d = write_and_decode();
	assert_int_equal(d->normalizing_offset, 0);
	assert_int_equal(d->significant_digits, 3);
	assert_int_equal(d->lowest, 1);
	assert_int_equal(d->highest, HIST_MAX_TRACKABLE_NS);
	assert_true(d->ratio == 1.0);
	assert_same_cells(d);
}

/* Cells 0, 5 (twice) and 2048: one, four empty, two, 2042 empty, one. */
TEST(hlog_interval__known_cells__known_bytes)
{
	const unsigned char expected[] = { 0x02, 0x07, 0x04, 0xf3, 0x1f, 0x02 };
	const unsigned char lone_zero[] = { 0x02, 0x00, 0x02 };
	struct decoded *d;

	hist_record(h, 0);
	hist_record(h, 5);
	hist_record(h, 5);
	hist_record(h, 2048);
	d = write_and_decode();
	assert_int_equal(d->payload_len, sizeof(expected));
	assert_memory_equal(d->payload, expected, sizeof(expected));

	hist_reset(h);
	hist_record(h, 0);
	hist_record(h, 2);
	d = write_and_decode();
	assert_int_equal(d->payload_len, sizeof(lone_zero));
	assert_memory_equal(d->payload, lone_zero, sizeof(lone_zero));
}

/* Every length of LEB128-64b9B, the ninth byte's eight bits among them. */
TEST(hlog_interval__huge_counts__decode_exactly)
{
	struct decoded *d;

	hist_record(h, 0);
	hist_record(h, 200);
	for (unsigned int bit = 0; bit < 63; bit++) {
		counter_set(&h->cell[2 * bit], (UINT64_C(1) << bit) - 1);
		counter_set(&h->cell[2 * bit + 1], UINT64_C(1) << bit);
	}
	counter_set(&h->cell[150], INT64_MAX);
	d = write_and_decode();
	assert_same_cells(d);
}

TEST(hlog_interval__range_ends__first_and_last_cell)
{
	struct decoded *d;

	d = write_and_decode();
	assert_int_equal(d->payload_len, 1);
	assert_int_equal(d->payload[0], 0);

	hist_record(h, 0);
	hist_record(h, UINT64_MAX);
	d = write_and_decode();
	assert_int_equal(d->cells[0], 1);
	assert_int_equal(d->cells[HIST_CELLS - 1], 1);
}

static size_t padding_of(const char *line)
{
	const char *equals = strchr(line, '=');

	return equals ? strcspn(equals, "\n") : 0;
}

/* Base64 of all three paddings: lengths vary with the contents. */
TEST(hlog_interval__every_padding__decodes)
{
	bool seen[3] = { false };

	for (uint64_t i = 0; i < 300 && !(seen[0] && seen[1] && seen[2]); i++) {
		struct decoded *d;
		char *line;

		hist_record(h, i * i * i);
		line = interval_of(NULL, 0, 1);
		d = decode_line(line);
		assert_same_cells(d);
		seen[padding_of(line)] = true;
		free(line);
	}
	assert_true(seen[0] && seen[1] && seen[2]);
}

TEST(hlog_interval__fields__tag_times_and_maximum)
{
	const char *plain = "12.500,1.001,1.234,HISTFAAA";
	const char *tagged = "Tag=p50_ms_odd,12.500,1.001,1.234,HISTFAAA";
	char *line;

	hist_record(h, 1234400);
	line = interval_of(NULL, 12.5, 1.0012);
	assert_memory_equal(line, plain, strlen(plain));
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	free(line);
	line = interval_of("p50,ms\nodd", 12.5, 1.0012);
	assert_memory_equal(line, tagged, strlen(tagged));
	free(line);
}

TEST(hlog_header__known_instant__version_1_3)
{
	struct written w;

	assert_int_equal(hist_write_hlog_header(1441812279.474, written_open(&w)), 0);
	assert_string_equal(written_close(&w),
			    "#[Histogram log format version 1.3]\n"
			    "#[StartTime: 1441812279.474 (seconds since epoch), "
			    "2015-09-09T15:24:39Z]\n"
			    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
			    "\"Interval_Compressed_Histogram\"\n");
	free(w.text);
}

TEST(hist_io__disk_full__eio)
{
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	hist_record(h, 1);
	assert_int_equal(hist_write_hgrm(h, 1, full), -EIO);
	clearerr(full);
	assert_int_equal(hist_write_hlog_header(0, full), -EIO);
	clearerr(full);
	assert_int_equal(hist_write_hlog_interval(h, NULL, 0, 1, full), -EIO);
	fclose(full);
}

/* The expected text was made with hdr-histogram-js from the same values. */
TEST(hgrm__ten_values__as_hdrhistogram_prints_them)
{
	const uint64_t values[] = { 1000, 2000, 2000, 2047, 1500, 1600, 1700, 1800, 2000, 1000 };
	char *text;

	for (size_t i = 0; i < N_ELEMENTS(values); i++)
		hist_record(h, values[i]);
	text = hgrm_of(1000);
	assert_string_equal(text,
			    "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
			    "       1.000 0.000000000000          2           1.00\n"
			    "       1.000 0.100000000000          2           1.11\n"
			    "       1.000 0.200000000000          2           1.25\n"
			    "       1.500 0.300000000000          3           1.43\n"
			    "       1.600 0.400000000000          4           1.67\n"
			    "       1.700 0.500000000000          5           2.00\n"
			    "       1.800 0.550000000000          6           2.22\n"
			    "       1.800 0.600000000000          6           2.50\n"
			    "       2.000 0.650000000000          9           2.86\n"
			    "       2.000 0.700000000000          9           3.33\n"
			    "       2.000 0.750000000000          9           4.00\n"
			    "       2.000 0.775000000000          9           4.44\n"
			    "       2.000 0.800000000000          9           5.00\n"
			    "       2.000 0.825000000000          9           5.71\n"
			    "       2.000 0.850000000000          9           6.67\n"
			    "       2.000 0.875000000000          9           8.00\n"
			    "       2.000 0.887500000000          9           8.89\n"
			    "       2.000 0.900000000000          9          10.00\n"
			    "       2.047 0.912500000000         10          11.43\n"
			    "       2.047 1.000000000000         10\n"
			    "#[Mean    =        1.665, StdDeviation   =        0.377]\n"
			    "#[Max     =        2.047, Total count    =           10]\n"
			    "#[Buckets =           27, SubBuckets     =         2048]\n");
	free(text);
}

/* Cells of different widths, deviations from hdr-histogram-js again; equal samples have none. */
TEST(hgrm__coarse_cells__deviation_of_their_middles)
{
	char *text;

	hist_record(h, 1000001);
	text = hgrm_of(1);
	assert_says(text, "#[Mean    =  1000001.000, StdDeviation   =        0.000]\n");
	free(text);
	hist_record(h, 100000001);
	text = hgrm_of(1);
	assert_says(text, "#[Mean    = 50500001.000, StdDeviation   = 49487488.000]\n");
	free(text);
}

TEST(hgrm__nothing_recorded__no_rows)
{
	char *text = hgrm_of(1000);

	assert_string_equal(text,
			    "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
			    "#[Mean    =        0.000, StdDeviation   =        0.000]\n"
			    "#[Max     =        0.000, Total count    =            0]\n"
			    "#[Buckets =           27, SubBuckets     =         2048]\n");
	free(text);
}

/* Every row against the histogram: the value is its percentile's, the count is of all up to it. */
TEST(hgrm__many_values__rows_agree_with_the_percentiles)
{
	uint64_t recorded = 100000;
	char *text, *line, *save;
	double last = -1;
	int rows = 0;

	for (uint64_t i = 1; i <= recorded; i++)
		hist_record(h, i * 100);	/* so the count up to v is v / 100 */
	text = hgrm_of(1);
	strtok_r(text, "\n", &save);
	while ((line = strtok_r(NULL, "\n", &save)) && line[0] != '#') {
		double value, quantile;
		uintmax_t count;

		assert_true(sscanf(line, "%lf %lf %ju", &value, &quantile, &count) == 3);
		assert_true(quantile > last);
		assert_int_equal((uint64_t)value, hist_percentile(h, quantile * 100.0));
		assert_int_equal(count, (uint64_t)value / 100);
		assert_true((double)count >= quantile * (double)recorded - 1e-3);
		last = quantile;
		rows++;
	}
	assert_true(last == 1.0);
	assert_in_range(rows, 55, 60);	/* five per halving, to the last cell */
	free(text);
}
