/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON as values of the store: packed values come back unchanged, and values that are read may be anything. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "loadgen/cluster/value.h"

static json_t *long_document(size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all, json_sprintf("text %zu", i % 10));
	return all;
}

TEST(pack__short_and_long__comes_back)
{
	static const size_t lengths[] = { 0, 1, 20, 100, 20000 };

	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		json_t *before = long_document(lengths[i]), *after;
		size_t bytes;
		char *value = value_pack(before, 1 << 20, &bytes);

		assert_non_null(value);
		assert_int_equal(value[0] == 'z', lengths[i] >= 100);
		after = value_unpack(value, bytes, 1 << 20, SIZE_MAX, NULL);
		assert_true(json_equal(before, after));
		json_decref(before);
		json_decref(after);
		free(value);
	}
}

/* Packs what the program itself would not, with zlib's compress(). */
static char *deflated(const char *text, size_t size, size_t *bytes)
{
	uLongf packed = compressBound(size);
	char *value = malloc(packed + 1);

	value[0] = 'z';
	assert_int_equal(compress((Bytef *)value + 1, &packed, (const Bytef *)text, size), Z_OK);
	*bytes = packed + 1;
	return value;
}

TEST(unpack__limits_of_text__exact)
{
	char text[1001], *value;
	json_t *plain_string;
	size_t bytes;

	memset(text, ' ', 1000);
	memcpy(text, "[1]", 3);
	for (size_t size = 999; size <= 1000; size++) {
		json_t *plain = value_unpack(text, size, 999, SIZE_MAX, NULL), *packed;

		value = deflated(text, size, &bytes);
		packed = value_unpack(value, bytes, 999, SIZE_MAX, NULL);
		assert_int_equal(plain != NULL, size == 999);
		assert_int_equal(packed != NULL, size == 999);
		json_decref(plain);
		json_decref(packed);
		free(value);
	}
	plain_string = json_string("1234567890");
	assert_null(value_pack(plain_string, 11, &bytes));
	json_decref(plain_string);
}

TEST(unpack__bomb__stops_at_the_limit)
{
	size_t size = 64 << 20, bytes;
	char *text = malloc(size), *value;

	memset(text, ' ', size);
	value = deflated(text, size, &bytes);
	free(text);
	assert_true(bytes < 100000);
	assert_null(value_unpack(value, bytes, 1 << 20, SIZE_MAX, NULL));
	free(value);
}

TEST(unpack__nonsense_and_each_cut__none)
{
	static const char *const texts[] = { "", "z", "zz", "{", "[1,]", "{\"a\":1,\"a\":2}", "1e999", "99999999999999999999", "[1]x", "\xff" };
	char text[400], *value;
	size_t bytes;

	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		assert_null(value_unpack(texts[i], strlen(texts[i]), 1000, SIZE_MAX, NULL));
	memset(text, '1', sizeof(text));
	text[0] = text[399] = '"';
	value = deflated(text, sizeof(text), &bytes);
	for (size_t cut = 0; cut < bytes; cut++)
		assert_null(value_unpack(value, cut, 1000, SIZE_MAX, NULL));
	free(value);
}

/* A few bytes of text may become much memory. */
TEST(unpack__over_the_limit_of_memory__none)
{
	static const char text[] = "[{},[],{\"a\":[1]},\"b\"]";
	size_t size = strlen(text), memory, again;
	json_t *all = value_unpack(text, size, size, SIZE_MAX, &memory);

	assert_int_equal(json_array_size(all), 4);
	json_decref(all);
	assert_true(memory > 3 * 250);
	assert_null(value_unpack(text, size, size, memory - 1, &again));
	assert_int_equal(again, memory);
}
