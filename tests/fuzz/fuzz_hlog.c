/* SPDX-License-Identifier: BSD-2-Clause */
/* Interval logs (.hlog). An input with an even first byte is the log itself. Otherwise it is a histogram's cells, which
 * are packed correctly here, because mutations of packed bytes never get that far. */
#include <stdio.h>
#include <zlib.h>

#include <openssl/evp.h>

#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "common/hist/hist_v2.h"
#include "tests/fuzz/input.h"

#define CELLS_MAX 4096

static struct hist *hist, *again;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return hist_new(&hist) || hist_new(&again);
}

/* Writes the log of `hist` and reads it again: both must be equal. */
static void round_trip(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert(f && hist_write_hlog_header(0, f) == 0 && hist_write_hlog_interval(hist, "a tag", 0, 1, f) == 0);
	fclose(f);
	f = fmemopen(text, size, "r");
	assert(f && hist_read_hlog(f, again) == 0);
	fclose(f);
	free(text);
	assert(hist_count(again) == hist_count(hist));
	assert(hist_percentile(again, 50) <= hist_max(again));
}

static void read_log(const void *text, size_t n)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, n, "r");
	int ret;

	assert(f);
	ret = hist_read_hlog(f, hist);
	fclose(f);
	if (ret)
		assert(hist_count(hist) == 0);
	else
		round_trip();
}

static void pack(struct input *in)
{
	static unsigned char plain[V2_HEADER_BYTES + CELLS_MAX], packed[2 * CELLS_MAX], base64[4 * CELLS_MAX];
	static char text[4 * CELLS_MAX + 200];
	uLongf packed_n = sizeof(packed) - COMPRESSED_HEADER_BYTES;
	unsigned max_ms = (unsigned)input_number(in, 3);
	const uint8_t *cells;
	size_t n = input_bytes(in, CELLS_MAX, &cells);

	v2_put_header(plain, n);
	memcpy(plain + V2_HEADER_BYTES, cells, n);
	assert(compress2(packed + COMPRESSED_HEADER_BYTES, &packed_n, plain, V2_HEADER_BYTES + n, 1) == Z_OK);
	v2_put_compressed_header(packed, packed_n);
	EVP_EncodeBlock(base64, packed, (int)(packed_n + COMPRESSED_HEADER_BYTES));
	read_log(text, (size_t)snprintf(text, sizeof(text), "%s0.0,1.0,%u.%03u,%s\n", HLOG_VERSION, max_ms / 1000,
					max_ms % 1000, (char *)base64));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };

	if (n < 2)
		return 0;
	if (data[0] & 1) {
		input_number(&in, 1);
		pack(&in);
	} else {
		read_log(data, n);
	}
	return 0;
}
