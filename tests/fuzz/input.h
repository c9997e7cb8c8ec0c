/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzz targets share: libFuzzer's entry points, and an input taken bit by bit. */
#ifndef RAMPART_TESTS_FUZZ_INPUT_H
#define RAMPART_TESTS_FUZZ_INPUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct input {
	const uint8_t *p;
	size_t n;	/* left */
};

/* Up to `n` bytes, fewer at the end: how many, and where they are. */
static inline size_t input_bytes(struct input *in, size_t n, const uint8_t **out)
{
	if (n > in->n)
		n = in->n;
	*out = in->p;
	in->p += n;
	in->n -= n;
	return n;
}

/* A little-endian number of `bytes` bytes; what is missing is 0. */
static inline uint64_t input_number(struct input *in, size_t bytes)
{
	const uint8_t *p;
	uint64_t v = 0;

	bytes = input_bytes(in, bytes, &p);
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* A copy in memory of exactly that size, so that AddressSanitizer sees what is read behind it. The caller frees it. */
static inline uint8_t *input_copy(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	assert(copy);
	memcpy(copy, p, n);
	return copy;
}

/* The same as text. */
static inline char *input_text(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);

	assert(text);
	memcpy(text, p, n);
	text[n] = '\0';
	return text;
}

#endif
