/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/traffic/payload.c: repeatable, different from message to message, every byte checked. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/traffic/payload.h"

#define BYTES_MAX    4096
#define INFLIGHT_MAX 128	/* the largest --inflight */

static struct payload *make(uint64_t seed, size_t max_bytes)
{
	struct payload *p = NULL;

	assert_int_equal(payload_new(seed, max_bytes, NULL, &p), 0);
	assert_non_null(p);
	return p;
}

TEST(payload__same_seed__same_text)
{
	struct payload *a = make(7, BYTES_MAX), *b = make(7, BYTES_MAX);
	uint8_t text[BYTES_MAX];

	for (uint64_t n = 0; n < 2 * INFLIGHT_MAX; n++) {
		payload_fill(a, payload_shift(0, n), text, sizeof(text));
		assert_true(payload_is(b, payload_shift(0, n), text, sizeof(text)));
	}
	payload_free(a);
	payload_free(b);
	payload_free(NULL);
}

TEST(payload__other_seed__other_text)
{
	struct payload *a = make(0, 64), *b = make(1, 64), *c = make(UINT64_MAX, 64);
	uint8_t text[64];

	payload_fill(a, payload_shift(0, 0), text, sizeof(text));
	assert_false(payload_is(b, payload_shift(0, 0), text, sizeof(text)));
	assert_false(payload_is(c, payload_shift(0, 0), text, sizeof(text)));
	payload_free(a);
	payload_free(b);
	payload_free(c);
}

/* The echo of a wrong message must not pass, so any two messages that a client can have in flight differ. */
TEST(payload__neighbours_in_flight__differ)
{
	static uint8_t texts[3 * INFLIGHT_MAX][48];
	struct payload *p = make(1, 48);

	for (size_t n = 0; n < N_ELEMENTS(texts); n++)
		payload_fill(p, payload_shift(0, n), texts[n], sizeof(texts[n]));
	for (size_t n = 0; n < N_ELEMENTS(texts); n++)
		for (size_t k = n + 1; k < n + INFLIGHT_MAX && k < N_ELEMENTS(texts); k++)
			if (payload_is(p, payload_shift(0, k), texts[n], sizeof(texts[n])))
				fail_msg("messages %zu and %zu are alike", n, k);
	payload_free(p);
}

TEST(payload_is__any_byte_changed__false)
{
	static const size_t sizes[] = { 1, 2, 15, 16, 48, 63, 64, 65, 1000, BYTES_MAX };
	struct payload *p = make(3, BYTES_MAX);
	uint8_t text[BYTES_MAX];

	for (size_t s = 0; s < N_ELEMENTS(sizes); s++) {
		payload_fill(p, payload_shift(0, s * 37), text, sizes[s]);
		for (size_t i = 0; i < sizes[s]; i++)
			for (int bit = 0; bit < 8; bit++) {
				text[i] ^= (uint8_t)(1 << bit);
				assert_false(payload_is(p, payload_shift(0, s * 37), text, sizes[s]));
				text[i] ^= (uint8_t)(1 << bit);
			}
		assert_true(payload_is(p, payload_shift(0, s * 37), text, sizes[s]));
	}
	payload_free(p);
}

/* Each payload object is just large enough, so that a sanitizer notices reads beyond it. */
TEST(payload__every_size__filled_and_no_further)
{
	for (size_t size = 0; size <= BYTES_MAX; size += size < 130 || size >= BYTES_MAX - 2 ? 1 : 61) {
		struct payload *p = make(size, size);
		uint8_t *text = malloc(size + 1);

		assert_non_null(text);
		for (uint64_t n = 0; n < 2 * INFLIGHT_MAX; n += 15) {
			text[size] = 0xee;
			payload_fill(p, payload_shift(0, n), text, size);
			assert_int_equal(text[size], 0xee);
			assert_true(payload_is(p, payload_shift(0, n), text, size));
		}
		free(text);
		payload_free(p);
	}
}

TEST(payload__message_number_beyond_32_bits__taken)
{
	struct payload *p = make(5, 64);
	uint8_t text[64];

	payload_fill(p, payload_shift(0, UINT64_MAX), text, sizeof(text));
	assert_true(payload_is(p, payload_shift(0, UINT64_MAX), text, sizeof(text)));
	assert_false(payload_is(p, payload_shift(0, UINT64_MAX - 1), text, sizeof(text)));
	payload_free(p);
}

/* A message of one client must not pass for another client's message with the same number. */
TEST(payload__clients__differ)
{
	for (uint64_t client = 1; client < 4000; client++)
		assert_int_not_equal(payload_shift(client, 7), payload_shift(0, 7));
}

TEST(payload__memory_given__text_stands_there)
{
	size_t bytes = payload_bytes(3 << 20);
	uint8_t *memory = malloc(bytes + 1);
	struct payload *p, *heap = make(9, 3 << 20);

	assert_non_null(memory);
	memory[bytes] = 0xee;
	assert_int_equal(payload_new(9, 3 << 20, memory, &p), 0);
	assert_int_equal(memory[bytes], 0xee);
	assert_ptr_equal(payload_text(p, 5), memory + 5);
	assert_memory_equal(memory, payload_text(heap, 0), bytes);
	/* A shift by a round number of bytes is noticed. */
	for (size_t shift = 64; shift <= 2 << 20; shift *= 2)
		assert_memory_not_equal(memory, memory + shift, 4096);
	payload_free(p);
	payload_free(heap);
	free(memory);
}

/* Neither constant nor with a short period: all 256 values occur, each about equally often. */
TEST(payload__text__looks_random)
{
	struct payload *p = make(1, BYTES_MAX);
	uint32_t counts[256] = { 0 };
	uint8_t text[BYTES_MAX];

	payload_fill(p, payload_shift(0, 0), text, sizeof(text));
	for (size_t i = 0; i < sizeof(text); i++)
		counts[text[i]]++;
	for (size_t i = 0; i < 256; i++)
		assert_in_range(counts[i], 1, 48);	/* 16 are expected */
	payload_free(p);
}
