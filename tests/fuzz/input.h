/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the fuzz targets: libFuzzer's entry points, and functions that take values from the input. */
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
	size_t n;	/* bytes left */
};

/* Takes up to `n` bytes, fewer at the end. Returns how many; *out points to them. */
static inline size_t input_bytes(struct input *in, size_t n, const uint8_t **out)
{
	if (n > in->n)
		n = in->n;
	*out = in->p;
	in->p += n;
	in->n -= n;
	return n;
}

/* Takes a little-endian number of `bytes` bytes; missing bytes are 0. */
static inline uint64_t input_number(struct input *in, size_t bytes)
{
	const uint8_t *p;
	uint64_t v = 0;

	bytes = input_bytes(in, bytes, &p);
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* Copies to memory of exactly that size, so that AddressSanitizer sees reads beyond it. The caller frees the copy. */
static inline uint8_t *input_copy(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	assert(copy);
	memcpy(copy, p, n);
	return copy;
}

/* Copies to a terminated string, which the caller frees. */
static inline char *input_text(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);

	assert(text);
	memcpy(text, p, n);
	text[n] = '\0';
	return text;
}

#endif
