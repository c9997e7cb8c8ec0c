/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/hist/hist_read.c: what hist_io.c writes comes back, and nothing damaged is taken for a log. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "common/hist/hist_internal.h"
#include "common/hist/hist_io.h"
#include "tests/unit/common/hist/hist_rig.h"

#define HEADER_BYTES 40

/* Values of all magnitudes. */
static void record_random(struct hist *to, uint64_t *seed, int n)
{
	for (int i = 0; i < n; i++)
		hist_record(to, unit_random(seed) >> (27 + unit_random(seed) % 37));
}

struct text {
	char *p;
	size_t len;
};

static struct text log_of(struct hist *const *of, size_t n, const char *tag)
{
	struct text t;
	FILE *f = open_memstream(&t.p, &t.len);

	assert_non_null(f);
	assert_int_equal(hist_write_hlog_header(1441812279.474, f), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(hist_write_hlog_interval(of[i], tag, (double)i, 1, f), 0);
	assert_int_equal(fclose(f), 0);
	return t;
}

static int read_text(const char *p, size_t len, struct hist *out)
{
	FILE *f = len ? fmemopen((void *)(uintptr_t)p, len, "r") : fopen("/dev/null", "r");
	int ret;

	assert_non_null(f);
	ret = hist_read_hlog(f, out);
	fclose(f);
	return ret;
}

static bool same_cells(const struct hist *a, const struct hist *b)
{
	return !memcmp((const void *)a->cell, (const void *)b->cell, sizeof(a->cell));
}

static void assert_read(const char *p, size_t len, const struct hist *expected)
{
	hist_record(h, 77);	/* to be forgotten */
	assert_int_equal(read_text(p, len, h), 0);
	assert_true(same_cells(h, expected));
	assert_int_equal(hist_count(h), hist_count(expected));
}

static void assert_refused(const char *p, size_t len)
{
	hist_record(h, 77);
	assert_int_equal(read_text(p, len, h), -EINVAL);
	assert_int_equal(hist_count(h), 0);
}

static void assert_comes_back(struct hist *of)
{
	struct text t = log_of(&of, 1, "a_tag");

	assert_int_equal(read_text(t.p, t.len, h), 0);
	assert_true(same_cells(h, of));
	assert_int_equal(hist_count(h), hist_count(of));
	assert_int_equal(hist_index(hist_min(h)), hist_index(hist_min(of)));
	assert_int_equal(hist_index(hist_max(h)), hist_index(hist_max(of)));
	assert_true(hist_min(h) <= hist_min(of) || hist_count(of) == 1);
	assert_true(fabs((double)hist_max(h) - (double)hist_max(of)) <= 501);
	assert_true(fabs(hist_mean(h) - hist_mean(of)) <= hist_mean(of) / 1000);
	free(t.p);
}

TEST(read__random_histograms__come_back)
{
	struct hist *written = new_hist();
	uint64_t seed = 4711;

	for (int i = 0; i < 300; i++) {
		hist_reset(written);
		record_random(written, &seed, (int)(unit_random(&seed) % (i % 3 ? 10 : 3000)));
		assert_comes_back(written);
	}
}

TEST(read__ends_of_the_range__come_back)
{
	const uint64_t values[] = { 0, 1, 2047, 2048, HIST_MAX_TRACKABLE_NS - 1, HIST_MAX_TRACKABLE_NS };
	struct hist *written = new_hist();

	for (size_t i = 0; i < N_ELEMENTS(values); i++) {
		hist_reset(written);
		hist_record(written, values[i]);
		assert_comes_back(written);
		hist_record(written, 0);
		assert_comes_back(written);
	}
}

/* Beyond the range the last cell knows nothing, but Interval_Max does. */
TEST(read__maximum_beyond_the_range__is_that_of_the_log)
{
	struct hist *back = new_hist();
	const uint64_t max = UINT64_C(500000000000), huge[] = { INT64_MAX, UINT64_C(3) << 62, UINT64_MAX };
	struct text t;

	hist_record(h, max);
	hist_record(h, 1000);
	t = log_of(&h, 1, NULL);
	assert_int_equal(read_text(t.p, t.len, back), 0);
	assert_int_equal(hist_max(back), max);
	free(t.p);
	for (size_t i = 0; i < N_ELEMENTS(huge); i++) {
		hist_reset(h);
		hist_record(h, huge[i]);
		t = log_of(&h, 1, NULL);
		assert_int_equal(read_text(t.p, t.len, back), 0);
		assert_true(fabs((double)hist_max(back) - (double)huge[i]) <= 1e4);
		free(t.p);
	}
}

TEST(read__several_intervals__their_sum)
{
	struct hist *of[3] = { new_hist(), new_hist(), new_hist() }, *sum = new_hist();
	uint64_t seed = 5;
	struct text t;

	for (size_t i = 0; i < 3; i++) {
		record_random(of[i], &seed, i == 1 ? 0 : 500);
		hist_add(sum, of[i]);
	}
	t = log_of(of, 3, NULL);
	assert_read(t.p, t.len, sum);
	free(t.p);
}

TEST(read__cut_off_anywhere__refused)
{
	struct hist *of[2] = { new_hist(), new_hist() }, *sum = new_hist();
	size_t first_end, header_end;
	uint64_t seed = 8;
	struct text t;

	record_random(of[0], &seed, 50);
	record_random(of[1], &seed, 50);
	hist_add(sum, of[0]);
	hist_add(sum, of[1]);
	t = log_of(of, 0, NULL);
	header_end = t.len;
	free(t.p);
	t = log_of(of, 1, NULL);
	first_end = t.len;
	free(t.p);
	t = log_of(of, 2, NULL);
	for (size_t len = 0; len < t.len; len++) {
		if (len == first_end)	/* a log of one interval, and nothing says that there was another */
			assert_read(t.p, len, of[0]);
		else
			assert_refused(t.p, len);
	}
	assert_true(header_end < first_end);
	assert_read(t.p, t.len, sum);
	free(t.p);
}

/* A changed comment, time or tag cannot be told from another log, but counts never change unnoticed. */
TEST(read__any_byte_changed__refused_or_the_same_counts)
{
	const unsigned char flips[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff };
	struct hist *back = new_hist();
	size_t refused = 0, tried = 0;
	uint64_t seed = 15;
	struct text t;

	record_random(h, &seed, 100);
	t = log_of(&h, 1, "t");
	for (size_t i = 0; i < t.len; i++)
		for (size_t k = 0; k < N_ELEMENTS(flips); k++, tried++) {
			t.p[i] = (char)(t.p[i] ^ flips[k]);
			if (read_text(t.p, t.len, back))
				refused++;
			else
				assert_true(same_cells(back, h));
			t.p[i] = (char)(t.p[i] ^ flips[k]);
		}
	assert_true(refused > tried / 2);
	free(t.p);
}

struct parts {
	uint32_t compressed_cookie, cookie, offset, digits;
	uint64_t lowest, highest, ratio;
	int compressed_len_by, payload_len_by;	/* added to the true lengths */
	const unsigned char *payload;
	size_t payload_len, trailing;	/* trailing: bytes behind the compressed ones */
	const char *max_ms, *before, *after;
};

static const unsigned char payload_of_7[] = { 0x0d, 0x02 };	/* seven empty cells, one sample of 7 */
static const struct parts good = {
	.compressed_cookie = 0x1c849314, .cookie = 0x1c849313, .digits = 3, .lowest = 1,
	.highest = HIST_MAX_TRACKABLE_NS, .ratio = UINT64_C(0x3ff0000000000000), .payload = payload_of_7,
	.payload_len = sizeof(payload_of_7), .max_ms = "0.000", .before = "", .after = "\n",
};

static unsigned char *put(unsigned char *p, uint64_t v, int bytes)
{
	while (bytes--)
		*p++ = (unsigned char)(v >> 8 * bytes);
	return p;
}

/* The V2 form in base64; the caller frees. */
static char *encode_parts(const struct parts *parts)
{
	size_t plain_len = HEADER_BYTES + parts->payload_len;
	uLongf len = compressBound(plain_len);
	unsigned char *plain = malloc(plain_len), *packed = calloc(1, len + 16);
	char *text = malloc(2 * len + 64);
	unsigned char *p = plain;

	assert_true(plain && packed && text);
	p = put(put(p, parts->cookie, 4), parts->payload_len + (size_t)parts->payload_len_by, 4);
	p = put(put(p, parts->offset, 4), parts->digits, 4);
	p = put(put(put(p, parts->lowest, 8), parts->highest, 8), parts->ratio, 8);
	memcpy(p, parts->payload, parts->payload_len);
	assert_int_equal(compress2(packed + 8, &len, plain, plain_len, 9), Z_OK);
	len += parts->trailing;
	put(put(packed, parts->compressed_cookie, 4), len + (size_t)parts->compressed_len_by, 4);
	assert_true(EVP_EncodeBlock((unsigned char *)text, packed, (int)len + 8) > 0);
	free(plain);
	free(packed);
	return text;
}

static int read_parts(const struct parts *parts, struct hist *out)
{
	char *base64 = encode_parts(parts);
	struct text t;
	FILE *f = open_memstream(&t.p, &t.len);
	int ret;

	assert_non_null(f);
	fprintf(f, "#[Histogram log format version 1.3]\n%s0.000,1.000,%s,%s%s", parts->before, parts->max_ms, base64,
		parts->after);
	assert_int_equal(fclose(f), 0);
	ret = read_text(t.p, t.len, out);
	free(base64);
	free(t.p);
	return ret;
}

#define WITH(...) ({ struct parts parts_ = good; struct parts *with = &parts_; __VA_ARGS__; parts_; })

static void assert_parts(struct parts parts, int expected)
{
	assert_int_equal(read_parts(&parts, h), expected);
	assert_int_equal(hist_count(h), expected ? 0 : 1);
	assert_int_equal(hist_min(h), expected ? 0 : 7);
	assert_int_equal(hist_max(h), expected ? 0 : 7);
}

TEST(read__a_header_of_another_layout__refused)
{
	assert_parts(good, 0);
	assert_parts(WITH(with->compressed_cookie ^= 1), -EINVAL);
	assert_parts(WITH(with->cookie ^= 1), -EINVAL);
	assert_parts(WITH(with->offset = 1), -EINVAL);
	assert_parts(WITH(with->digits = 2), -EINVAL);
	assert_parts(WITH(with->lowest = 1000), -EINVAL);
	assert_parts(WITH(with->highest = INT64_MAX), -EINVAL);
	assert_parts(WITH(with->ratio ^= 1), -EINVAL);
	assert_parts(WITH(with->payload_len_by = 1), -EINVAL);
	assert_parts(WITH(with->payload_len_by = -1), -EINVAL);
	assert_parts(WITH(with->compressed_len_by = 1), -EINVAL);
	assert_parts(WITH(with->compressed_len_by = -1), -EINVAL);
	assert_parts(WITH(with->trailing = 3), -EINVAL);
}

TEST(read__a_line_of_another_form__refused)
{
	const char *const max_ms[] = { "", "-0.000", "nan", "inf", "1e999", " 0.000", "0.000x", "0.002", "1e6" };
	const char *const after[] = { "", "=\n", "A\n", "====\n", " \n", "\r\n", "AAAA\n", "\nx", "\n\n" };

	for (size_t i = 0; i < N_ELEMENTS(max_ms); i++)
		assert_parts(WITH(with->max_ms = max_ms[i]), -EINVAL);
	for (size_t i = 0; i < N_ELEMENTS(after); i++)
		assert_parts(WITH(with->after = after[i]), -EINVAL);
	assert_parts(WITH(with->before = "Tag=a"), -EINVAL);
	assert_parts(WITH(with->before = "1,"), -EINVAL);
	assert_parts(WITH(with->before = "\n"), -EINVAL);
	assert_parts(WITH(with->before = "Tag=,"), 0);
	assert_parts(WITH(with->before = "# a comment\n", with->max_ms = "0.00"), 0);
}

static struct parts with_payload(const unsigned char *p, size_t len)
{
	return WITH(with->payload = p, with->payload_len = len);
}
#define PAYLOAD(...) \
	with_payload((const unsigned char[]){ __VA_ARGS__ }, sizeof((const unsigned char[]){ __VA_ARGS__ }))
#define ZIGZAG_GREATEST 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff	/* INT64_MAX */
#define ZIGZAG_LEAST 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff	/* INT64_MIN */

TEST(read__cells_that_cannot_be__refused)
{
	static unsigned char zeros[HIST_CELLS + 1];

	assert_parts(with_payload(payload_of_7, 0), -EINVAL);
	assert_parts(PAYLOAD(0x0d, 0x82), -EINVAL);			/* cut off within a number */
	assert_parts(PAYLOAD(0x0d, 0x02, ZIGZAG_LEAST), -EINVAL);	/* as many empty cells */
	assert_parts(PAYLOAD(0x0d, ZIGZAG_GREATEST, 0x02), -EINVAL);	/* a sum beyond INT64_MAX */
	assert_parts(PAYLOAD(0x0d, 0x02, 0xef, 0xbf, 0x03), 0);		/* 28664 empty: the last of 28672 cells */
	assert_parts(PAYLOAD(0x0d, 0x02, 0xf1, 0xbf, 0x03), -EINVAL);	/* one more */
	assert_parts(with_payload(zeros, HIST_CELLS + 1), -EINVAL);
}

/* A thousand zeros are some bytes: what comes out of it is bounded, not only what goes in. */
TEST(read__unpacks_into_more_than_a_histogram__refused)
{
	size_t len = 64 << 20;
	unsigned char *zeros = calloc(1, len);

	assert_non_null(zeros);
	assert_parts(with_payload(zeros, len), -EINVAL);
	free(zeros);
}

TEST(read__counts_as_great_as_they_can_be__their_sum_is_checked)
{
	static const unsigned char greatest[] = { 0x0d, ZIGZAG_GREATEST };
	struct parts parts = with_payload(greatest, sizeof(greatest));
	char *base64, twice[512];

	assert_int_equal(read_parts(&parts, h), 0);
	assert_int_equal(hist_count(h), INT64_MAX);
	base64 = encode_parts(&parts);
	snprintf(twice, sizeof(twice), "0,1,0,%s\n", base64);
	parts.before = twice;
	assert_int_equal(read_parts(&parts, h), -EINVAL);	/* over two intervals too */
	free(base64);
}

TEST(read__no_log_at_all__refused)
{
	static const char other[] = "#[Histogram log format version 1.2]\n";
	static const char none[] = "#[Histogram log format version 1.3]\n";
	size_t len = 1 << 20;
	char *p = malloc(len);
	FILE *directory = fopen("/", "r");

	assert_non_null(p);
	assert_refused(other, sizeof(other) - 1);
	assert_refused(none, sizeof(none) - 1);
	memset(p, 0, len);
	assert_refused(p, len);
	memset(p, '\n', len);
	assert_refused(p, len);
	memset(p, 'A', len);	/* longer than any line */
	assert_refused(p, len);
	memcpy(p, none, sizeof(none) - 1);
	assert_refused(p, len);
	assert_int_equal(hist_read_hlog(directory, h), -EIO);
	fclose(directory);
	free(p);
}
